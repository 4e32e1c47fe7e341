//! What `hangar.toml` at the base of a task says about it.

use super::Error;
use super::basecheck::in_base;
use crate::config::repository;
use crate::grade::adapter::adapter;
use crate::grade::named;
use crate::model::plan::Plan;
use crate::model::task::Task;
use crate::store::Store;
use std::path::Path;

/// What the repository's own configuration at the base says about a task.
#[derive(Debug)]
pub struct Project {
    /// `hangar.toml` at the base.
    pub config: repository::Repository,
    /// The plan that it proposes; `None` where it names no framework.
    pub plan: Option<Plan>,
}

impl Project {
    /// Reads `hangar.toml` at the task's base.
    pub fn at_base(store: &Store, task: &Task) -> Result<Self, Error> {
        let bytes = store
            .repo
            .blob_at(task.base, repository::FILE, 1 << 20)?
            .ok_or_else(|| {
                Error::missing(
                    format!("the base {} has no hangar.toml", task.base.short()),
                    "run `hangar init`, commit hangar.toml, and make a task whose base has it",
                )
            })?;
        let text = String::from_utf8_lossy(&bytes);
        let config = repository::Repository::parse(Path::new(repository::FILE), &text)?;
        let plan = match config.framework() {
            None => None,
            Some(framework) => {
                let own = adapter(framework).protected().iter();
                let mut protected: Vec<String> = own.map(|glob| (*glob).to_owned()).collect();
                let plan = config.to_plan(&protected)?;
                protected.extend(in_base(&store.repo, task.base, |tree| {
                    named::patterns(&plan, tree)
                })?);
                Some(config.to_plan(&protected)?)
            }
        };
        Ok(Self { config, plan })
    }

    /// The plan of a test-first task.
    pub fn plan(&self) -> Result<&Plan, Error> {
        self.plan.as_ref().ok_or_else(|| {
            Error::missing(
                "hangar.toml names no test framework",
                "set `grader.framework` in hangar.toml and commit it to the base",
            )
        })
    }
}
