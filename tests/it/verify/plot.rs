//! What is forged in a task that is otherwise honest.

use super::making::Making;
use crate::flow::world::World;
use hangar::model::approval::Approval;
use hangar::model::event::Change;
use hangar::model::grade::Grade;
use hangar::model::ids::TaskId;
use hangar::model::manifest::Manifest;
use hangar::model::run::Run;

/// The right `calc.sh`.
pub(crate) const GOOD: &str = "echo $(($1 - $2))\n";

type Edit<'a, T> = Option<&'a dyn Fn(&mut T)>;

/// What is forged; each document that is not named is honest and rests on the ones before it.
#[derive(Default)]
pub(crate) struct Plot<'a> {
    pub(crate) manifest: Edit<'a, Manifest>,
    pub(crate) approval: Edit<'a, Approval>,
    pub(crate) run: Edit<'a, Run>,
    pub(crate) grade: Edit<'a, Grade>,
    pub(crate) delivery: Edit<'a, Change>,
    /// The delivered commit's `calc.sh`, where it is not the result's.
    pub(crate) delivered: Option<&'a str>,
    /// The result's `calc.sh`.
    pub(crate) result: Option<&'a str>,
    /// Another file at the top of the result.
    pub(crate) also: Option<&'a str>,
    /// An approver signs the patch id before the delivery.
    pub(crate) signed_patch: bool,
    /// Stops before the delivery.
    pub(crate) undelivered: bool,
}

impl<'a> Plot<'a> {
    pub(crate) fn manifest(edit: &'a dyn Fn(&mut Manifest)) -> Self {
        Self {
            manifest: Some(edit),
            ..Self::default()
        }
    }

    pub(crate) fn approval(edit: &'a dyn Fn(&mut Approval)) -> Self {
        Self {
            approval: Some(edit),
            ..Self::default()
        }
    }

    pub(crate) fn run(edit: &'a dyn Fn(&mut Run)) -> Self {
        Self {
            run: Some(edit),
            ..Self::default()
        }
    }

    pub(crate) fn grade(edit: &'a dyn Fn(&mut Grade)) -> Self {
        Self {
            grade: Some(edit),
            ..Self::default()
        }
    }

    pub(crate) fn delivery(edit: &'a dyn Fn(&mut Change)) -> Self {
        Self {
            delivery: Some(edit),
            ..Self::default()
        }
    }

    pub(crate) fn delivered(text: &'a str) -> Self {
        Self {
            delivered: Some(text),
            ..Self::default()
        }
    }

    pub(crate) fn undelivered() -> Self {
        Self {
            undelivered: true,
            ..Self::default()
        }
    }

    /// Makes the documents of a task, one on the other.
    pub(crate) fn carry_out(&self, world: &World, id: &TaskId) {
        Making { world, id }.all(self);
    }
}
