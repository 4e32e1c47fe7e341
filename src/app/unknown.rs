//! Keys of configuration files that nobody reads: each is told once for a command, however often the
//! file is read.

use crate::config::Warning;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Tell = dyn Fn(&str) + Send + Sync;

/// Who hears of unknown keys. Nobody by default.
#[derive(Clone, Default)]
pub struct UnknownKeys {
    tell: Option<Arc<Tell>>,
    told: Arc<Mutex<BTreeSet<(String, String)>>>,
}

impl UnknownKeys {
    /// Each unknown key is told to `tell`.
    pub fn told_to(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            tell: Some(Arc::new(tell)),
            told: Arc::default(),
        }
    }

    /// Tells of keys that were not told of before. The same file at another commit is the same.
    pub fn note(&self, warnings: &[Warning]) {
        let Some(tell) = &self.tell else { return };
        for warning in warnings {
            let file = warning.file.to_string_lossy();
            let name = file.rsplit([':', '/']).next().unwrap_or(&file);
            let key = (name.to_owned(), warning.key.clone());
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.insert(key) {
                drop(told);
                tell(&warning.to_string());
            }
        }
    }
}

impl fmt::Debug for UnknownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnknownKeys").finish_non_exhaustive()
    }
}
