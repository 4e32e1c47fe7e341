//! Fixed words of the domain as argument values: listed in help and completed by shells.

use crate::app::tasks::list::Standing;
use crate::model::task::{Mode, Stage};
use crate::store::layout::Prefix;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::str::FromStr;

fn words<T>(list: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(list).try_map(|word| {
        let unknown = || format!("`{word}` is not known");
        word.parse::<T>().map_err(|_| unknown())
    })
}

/// Stages of a task that is worked on.
pub(super) fn stage() -> impl TypedValueParser<Value = Stage> {
    words(&[
        "writing",
        "checking",
        "sealing",
        "awaiting-approval",
        "implementing",
        "verifying",
        "delivering",
    ])
}

/// States of a task, and the stages of one that is worked on.
pub(super) fn standing() -> impl TypedValueParser<Value = Standing> {
    words(&[
        "draft",
        "queued",
        "assigned",
        "working",
        "writing",
        "checking",
        "sealing",
        "awaiting-approval",
        "implementing",
        "verifying",
        "delivering",
        "done",
        "failed",
        "rejected",
        "deleted",
    ])
}

/// Where refs lie.
pub(super) fn prefix() -> impl TypedValueParser<Value = Prefix> {
    PossibleValuesParser::new(Prefix::ALL.map(Prefix::word))
        .try_map(|word| Prefix::from_str(&word).map_err(|()| format!("`{word}` is not known")))
}

/// Kinds of work.
pub(super) fn mode() -> impl TypedValueParser<Value = Mode> {
    words(&["implement", "investigate", "review", "test", "orchestrate"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    /// Every listed word is one that the domain knows.
    fn all<T: Clone + Send + Sync + 'static>(parser: impl TypedValueParser<Value = T>) -> usize {
        let listed: Vec<_> = parser.possible_values().unwrap().collect();
        let command = Command::new("x").arg(Arg::new("word").value_parser(parser));
        for value in &listed {
            let matches = command
                .clone()
                .try_get_matches_from(["x", value.get_name()]);
            assert!(matches.is_ok(), "{}", value.get_name());
        }
        listed.len()
    }

    #[test]
    fn every_listed_word_is_known() {
        assert_eq!((all(standing()), all(stage()), all(mode())), (15, 7, 5));
    }
}
