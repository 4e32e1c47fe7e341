//! This machine as the flow sees it.

use crate::app::{Error, Here};
use crate::config::env_vars;
use crate::flow;
use crate::flow::host::{Host, Progress};
use crate::model::image::Image;
use crate::model::outcome::Trust;
use crate::sandbox::{self, Cancel, Launcher, Provider};
use crate::store::{Store, pins};
use std::cell::RefCell;
use std::path::PathBuf;

/// How a use case tells what it does, and how it is stopped.
#[derive(Clone)]
pub struct Watch<'a> {
    /// Where progress goes.
    pub progress: &'a dyn Fn(Progress),
    /// Set when the person wants to stop.
    pub cancel: Cancel,
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

/// Loads keys, configuration and a sandbox provider that works here. `require` is the least trust
/// that a grade needs, beside what plan and policy ask for.
pub fn host<'a>(
    here: &Here,
    store: &Store,
    watch: &Watch<'a>,
    provider: Option<&str>,
    require: Option<Trust>,
) -> Result<Host<'a>, Error> {
    pins::record(&store.repo, &store.policy)?;
    let user = here.user()?;
    let data = here.data_dir(&store.policy.repo())?;
    let (worker, grader) = Host::keys(&data)?;
    let named = provider
        .map(str::to_owned)
        .or_else(|| {
            here.var(env_vars::HANGAR_SANDBOX_PROVIDER)
                .map(|name| name.to_string_lossy().into_owned())
        })
        .or_else(|| user.provider.clone());
    Ok(Host {
        worker,
        grader,
        provider: choose(named.as_deref(), user.image.clone())?,
        require: require.unwrap_or_default(),
        binary: binary()?,
        user,
        env: here.env.clone(),
        data,
        cache: here.paths()?.cache,
        health: here.health()?,
        cancel: watch.cancel.clone(),
        progress: watch.progress,
        holding: RefCell::default(),
    })
}

/// The provider that was named, else the first that works. `none` is never chosen by itself.
fn choose(named: Option<&str>, image: Option<Image>) -> Result<Box<dyn Provider>, Error> {
    let launcher = Launcher {
        image,
        ..Launcher::default()
    };
    if let Some(name) = named {
        if let Some(absent) = sandbox::absent(name) {
            return Err(sandbox::Error::from(absent).into());
        }
        let provider = sandbox::provider(name, &launcher).ok_or_else(|| {
            let known: Vec<_> = sandbox::providers(&launcher)
                .iter()
                .map(|one| one.name())
                .collect();
            Error::invalid(format!(
                "there is no sandbox provider called `{name}` in this version; choose one of {}",
                known.join(", ")
            ))
        })?;
        provider.check().map_err(sandbox::Error::from)?;
        return Ok(provider);
    }
    let mut why = None;
    for provider in sandbox::providers(&launcher) {
        if provider.name() == "none" {
            continue;
        }
        match provider.check() {
            Ok(()) => return Ok(provider),
            Err(unavailable) => why = why.or(Some(unavailable)),
        }
    }
    Err(match why {
        Some(unavailable) => sandbox::Error::from(unavailable).into(),
        None => {
            flow::Error::missing("no sandbox provider works here", "see `hangar doctor`").into()
        }
    })
}

/// This very program.
fn binary() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|source| Error::Read {
        path: PathBuf::from("/proc/self/exe"),
        source,
    })
}
