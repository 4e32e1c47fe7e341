//! Questions that an adapter asks of a tree: programs that read it and run none of its code.

use super::Error;
use super::bench::{Bench, raw, without_paths};
use crate::grade::call::{Call, Raw};
use crate::grade::suite::Suite;
use crate::sandbox::spec::Spec;
use crate::sandbox::{Cancel, Provider};

/// What is asked of a tree, to be answered in any thread.
pub(super) struct Questions<'a> {
    provider: &'a dyn Provider,
    cancel: &'a Cancel,
    asked: Vec<(Call, Spec)>,
}

impl std::fmt::Debug for Questions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Questions({})", self.asked.len())
    }
}

impl<'a> Questions<'a> {
    /// These, each to be asked in a fresh copy of the tree with the sealed files in it.
    pub(super) fn new(bench: &Bench<'a>, suite: &Suite, calls: Vec<Call>) -> Self {
        let question = |call: Call| {
            let spec = Spec {
                hash_after: Vec::new(),
                ..bench.spec(suite, std::slice::from_ref(&call))
            };
            (call, spec)
        };
        Self {
            provider: bench.host.provider.as_ref(),
            cancel: &bench.host.cancel,
            asked: calls.into_iter().map(question).collect(),
        }
    }

    /// Each question with its answer.
    pub(super) fn answers(self) -> Result<Vec<(Call, Raw)>, Error> {
        let Self {
            provider,
            cancel,
            asked,
        } = self;
        let answer = |(call, spec): (Call, Spec)| {
            let ended = provider.run(&spec, cancel, &mut |_| {});
            let outcome = ended.map_err(|error| without_paths(error.into()))?;
            let step = outcome.steps.into_iter().next();
            Ok((call, raw(step.unwrap_or_default())))
        };
        asked.into_iter().map(answer).collect()
    }
}
