//! What a command says beside its answer: keys of configuration files that nobody reads, and what it
//! could not fetch or publish.

use crate::config::Warning;
use crate::store::{Brought, Heard};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Tell = dyn Fn(&str) + Send + Sync;

/// Who hears of it. Nobody by default.
#[derive(Clone, Default)]
pub struct Notices {
    tell: Option<Arc<Tell>>,
    reading: Heard,
    brought: Brought,
    told: Arc<Mutex<BTreeSet<(String, String)>>>,
}

impl Notices {
    /// Everything is told to `tell`.
    pub fn told_to(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            tell: Some(Arc::new(tell)),
            reading: Heard::default(),
            brought: Brought::default(),
            told: Arc::default(),
        }
    }

    /// Who hears of long readings is `heard`.
    #[must_use]
    pub fn with_reading(self, heard: Heard) -> Self {
        Self {
            reading: heard,
            ..self
        }
    }

    /// Who hears how far a reading of many tasks is.
    pub fn reading(&self) -> Heard {
        self.reading.clone()
    }

    /// Where it is kept what came while something was written.
    pub fn brought(&self) -> Brought {
        self.brought.clone()
    }

    /// Tells it.
    pub fn say(&self, text: &str) {
        if let Some(tell) = &self.tell {
            tell(text);
        }
    }

    /// Tells of unknown keys, each once for a command, however often the file is read. The same
    /// file at another commit is the same.
    pub fn unknown_keys(&self, warnings: &[Warning]) {
        for warning in warnings {
            let file = warning.file.to_string_lossy();
            let name = file.rsplit([':', '/']).next().unwrap_or(&file);
            let key = (name.to_owned(), warning.key.clone());
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.insert(key) {
                drop(told);
                self.say(&warning.to_string());
            }
        }
    }
}

impl Notices {
    /// Tells it once for a command, however often `key` comes up.
    pub fn once(&self, key: &str, text: &str) {
        let key = (String::new(), key.to_owned());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(key) {
            drop(told);
            self.say(text);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}
