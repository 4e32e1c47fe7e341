//! Values that people change at the same time: a field with one value, and a set.
//!
//! Both remember which event wrote what, so that a change replaces exactly what its author had
//! seen. Must not know what a task is.

use super::Author;
use crate::model::digest::Digest;
use crate::model::ids::Principal;
use std::collections::{BTreeMap, BTreeSet};

/// One value that somebody gave a field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Write<T> {
    value: T,
    by: Principal,
    at: String,
    event: Digest,
}

/// A value that gave way to another, set at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The field.
    pub field: &'static str,
    /// The value as text.
    pub value: String,
    /// Who set it.
    pub by: Principal,
    /// Claimed time.
    pub at: String,
    /// By which event.
    pub event: Digest,
}

/// A field: the values that no later one has seen, in the order of their events. The last one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Register<T> {
    writes: Vec<Write<T>>,
}

impl<T: Clone + PartialEq + ToString> Register<T> {
    pub(super) fn new(value: T, author: Author<'_>) -> Self {
        Self {
            writes: vec![write(value, author)],
        }
    }

    /// The events whose values are there: what somebody who sees this replaces.
    pub(super) fn events(&self) -> Vec<Digest> {
        self.writes.iter().map(|write| write.event).collect()
    }

    /// Gives the field a value in place of those that its author had `seen`. Gives the different ones
    /// that the author had not seen.
    pub(super) fn set(
        &mut self,
        field: &'static str,
        value: &T,
        author: Author<'_>,
        seen: &[Digest],
    ) -> Vec<Beside> {
        self.writes.retain(|write| !seen.contains(&write.event));
        let beside = self.beside(field, value);
        self.writes.push(write(value.clone(), author));
        beside
    }

    /// Values that were set at the same time as the one that counts, and that differ from it.
    pub(super) fn others(&self, field: &'static str) -> Vec<Beside> {
        match self.writes.last() {
            Some(last) => self.beside(field, &last.value),
            None => Vec::new(),
        }
    }

    fn beside(&self, field: &'static str, value: &T) -> Vec<Beside> {
        let other = self.writes.iter().filter(|write| write.value != *value);
        other
            .map(|write| Beside {
                field,
                value: write.value.to_string(),
                by: write.by.clone(),
                at: write.at.clone(),
                event: write.event,
            })
            .collect()
    }
}

fn write<T>(value: T, author: Author<'_>) -> Write<T> {
    Write {
        value,
        by: author.principal.clone(),
        at: author.at.to_owned(),
        event: author.event,
    }
}

/// A set with an order, observed-remove: an element is there while one event that added it was seen
/// by no event that took it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept<T> {
    items: Vec<(T, BTreeSet<Digest>)>,
}

/// What a new list means for a set, to somebody who had seen one state of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetStep<T> {
    order: Vec<T>,
    add: Vec<T>,
    remove: Vec<(T, BTreeSet<Digest>)>,
}

impl<T: Clone + Ord> Kept<T> {
    pub(super) fn new(list: &[T], event: Digest) -> Self {
        let mut new = Self { items: Vec::new() };
        let step = new.step(list);
        new.take(&step, event);
        new
    }

    /// The elements in order.
    pub(super) fn list(&self) -> Vec<T> {
        self.items.iter().map(|(item, _)| item.clone()).collect()
    }

    /// What it means that somebody who sees this writes `list`.
    pub(super) fn step(&self, list: &[T]) -> SetStep<T> {
        let there: BTreeSet<&T> = self.items.iter().map(|(item, _)| item).collect();
        let wanted: BTreeSet<&T> = list.iter().collect();
        let mut listed = BTreeSet::new();
        let order: Vec<T> = list
            .iter()
            .filter(|item| listed.insert(*item))
            .cloned()
            .collect();
        let gone = self.items.iter().filter(|(item, _)| !wanted.contains(item));
        SetStep {
            add: order
                .iter()
                .filter(|item| !there.contains(item))
                .cloned()
                .collect(),
            remove: gone.cloned().collect(),
            order,
        }
    }

    /// What it means that somebody who sees this stands by every element.
    pub(super) fn confirmation(&self) -> SetStep<T> {
        SetStep {
            order: Vec::new(),
            add: self.list(),
            remove: Vec::new(),
        }
    }

    /// What it means that somebody who sees this puts `new` in and takes `gone` out.
    pub(super) fn swap(&self, new: &[T], gone: &[T]) -> SetStep<T> {
        let out = self.items.iter().filter(|(item, _)| gone.contains(item));
        SetStep {
            order: Vec::new(),
            add: new.to_vec(),
            remove: out.cloned().collect(),
        }
    }

    /// Does what `event` means. Elements come in the order of its list, others behind them.
    pub(super) fn take(&mut self, step: &SetStep<T>, event: Digest) {
        let before = self.list();
        let mut now: BTreeMap<T, BTreeSet<Digest>> =
            std::mem::take(&mut self.items).into_iter().collect();
        for (item, seen) in &step.remove {
            if let Some(adds) = now.get_mut(item) {
                adds.retain(|add| !seen.contains(add));
            }
        }
        now.retain(|_, adds| !adds.is_empty());
        for item in &step.add {
            now.entry(item.clone()).or_default().insert(event);
        }
        let order = step.order.iter().chain(&before).chain(&step.add);
        let items = order.filter_map(|item| now.remove_entry(item));
        self.items = items.collect();
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}
