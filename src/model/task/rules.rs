//! What the values of a task may be.

use super::Refusal;
use crate::model::digest::Digest;
use crate::model::event::Criterion;
use crate::model::ids::CriterionId;
use std::collections::BTreeSet;

/// Longest title in bytes.
pub const MAX_TITLE: usize = 200;
/// Most criteria.
pub const MAX_CRITERIA: usize = 100;

/// SHA-256 over title, mandate and criteria, each preceded by its length (u64, big endian).
pub fn text_digest(title: &str, mandate: &str, criteria: &[Criterion]) -> Digest {
    let mut bytes = b"hangar-task-text-1\n".to_vec();
    let parts = [title, mandate].into_iter();
    let parts = parts.chain(
        criteria
            .iter()
            .flat_map(|criterion| [criterion.id.as_str(), criterion.text.as_str()]),
    );
    for part in parts {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    Digest::of(&bytes)
}

/// A list in which every id stands once. Where people added criteria at the same time, two may have
/// one id: the later one in the list gets the lowest that is free.
pub(super) fn renumbered(mut criteria: Vec<Criterion>) -> Vec<Criterion> {
    let mut used: BTreeSet<CriterionId> = criteria.iter().map(|one| one.id.clone()).collect();
    let mut met = BTreeSet::new();
    for criterion in &mut criteria {
        if met.insert(criterion.id.clone()) {
            continue;
        }
        // One of these is free: there are as many as criteria, and one more.
        let mut numbers = (0..=used.len()).map(CriterionId::at);
        let Some(free) = numbers.find(|id| !used.contains(id)) else {
            continue;
        };
        used.insert(free.clone());
        met.insert(free.clone());
        criterion.id = free;
    }
    criteria
}

pub(super) fn check_title(title: &str) -> Result<(), Refusal> {
    if title.trim().is_empty() || title.len() > MAX_TITLE || title.contains(['\n', '\r']) {
        return Err(Refusal::Value(format!(
            "a title is one line of 1 to {MAX_TITLE} bytes"
        )));
    }
    match title.chars().find(|c| c.is_control()) {
        None => Ok(()),
        Some(c) => Err(Refusal::Value(format!(
            "a title holds no control character, and this one has U+{:04X}",
            u32::from(c)
        ))),
    }
}

pub(super) fn check_priority(priority: u8) -> Result<(), Refusal> {
    if (1..=9).contains(&priority) {
        Ok(())
    } else {
        Err(Refusal::Value(
            "priority goes from 1 (first) to 9 (last)".into(),
        ))
    }
}

pub(super) fn check_criteria(criteria: &[Criterion]) -> Result<(), Refusal> {
    if criteria.len() > MAX_CRITERIA {
        return Err(Refusal::Value(format!("at most {MAX_CRITERIA} criteria")));
    }
    let ids: BTreeSet<_> = criteria.iter().map(|criterion| &criterion.id).collect();
    if ids.len() != criteria.len() {
        return Err(Refusal::Value("two criteria have the same id".into()));
    }
    if criteria
        .iter()
        .any(|criterion| criterion.text.trim().is_empty())
    {
        return Err(Refusal::Value("a criterion needs a text".into()));
    }
    Ok(())
}
