//! Links and faults as they are collected.

use super::Unread;
use crate::base::words::count;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// One link of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkName {
    /// Every version of the policy is authorised by the one before it.
    Policy,
    /// The policy is the one that was pinned.
    Pin,
    /// Every document of the task is signed, by who may sign it, and lies where it belongs.
    Documents,
    /// The task's events form one history with nothing missing.
    History,
    /// Sealed versions follow one another, with the ciphertexts that they name, and their numbers
    /// agree.
    Versions,
    /// What is inside the ciphertext is what the manifest says.
    Payload,
    /// Enough people approved exactly this manifest.
    Approval,
    /// The run is the one that was delivered, and its trees are what it says.
    Run,
    /// The grade is about this manifest, run, base and result, and its numbers bear it out.
    Grade,
    /// The delivered commit holds the graded result.
    Delivery,
    /// No mark of the hidden tests is in what was delivered or stored in clear.
    Canary,
    /// Keys, roles and minimums still do under the newest policy.
    Newest,
}

impl LinkName {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Pin => "pin",
            Self::Documents => "documents",
            Self::History => "history",
            Self::Versions => "versions",
            Self::Payload => "payload",
            Self::Approval => "approval",
            Self::Run => "run",
            Self::Grade => "grade",
            Self::Delivery => "delivery",
            Self::Canary => "canary",
            Self::Newest => "newest",
        }
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// It was checked and holds.
    Held,
    /// It was checked and does not hold.
    Broken,
    /// There is nothing to check, or it can't be checked here.
    NotChecked,
}

/// One link with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Link {
    /// Which.
    pub name: LinkName,
    /// How it stands.
    pub state: LinkState,
    /// What was seen, in a sentence.
    pub detail: String,
}

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fault {
    /// In which link.
    pub link: LinkName,
    /// The ref, commit or document; absent where the whole link is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is wrong.
    pub what: String,
    /// Whether it counts only under the newest policy, not under the one in force at delivery.
    pub only_now: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{}: {place}: {}", self.link, self.what),
            None => write!(f, "{}: {}", self.link, self.what),
        }
    }
}

/// Collects what the checks find.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) links: Vec<Link>,
    pub(super) faults: Vec<Fault>,
    pub(super) notes: Vec<String>,
    /// What this clone leaves out.
    pub(super) not_here: Vec<String>,
}

impl Sheet {
    /// Something about the link as a whole.
    pub(super) fn fault(&mut self, link: LinkName, what: impl Into<String>) {
        self.push(link, None, what.into(), false);
    }

    /// Something at a place.
    pub(super) fn fault_at(
        &mut self,
        link: LinkName,
        place: impl Into<String>,
        what: impl Into<String>,
    ) {
        self.push(link, Some(place.into()), what.into(), false);
    }

    /// Something that counts under the newest policy only.
    pub(super) fn fault_now(&mut self, link: LinkName, what: impl Into<String>) {
        self.push(link, None, what.into(), true);
    }

    fn push(&mut self, link: LinkName, place: Option<String>, what: String, only_now: bool) {
        let fault = Fault {
            link,
            place,
            what,
            only_now,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Something at a place that can't be read: a fault, unless this clone was made without it.
    /// `what` stands before the reason.
    pub(super) fn unread(
        &mut self,
        link: LinkName,
        place: impl Into<String>,
        what: &str,
        reason: &Unread,
    ) {
        let text = format!("{what}{}", reason.text);
        if !reason.left_out {
            self.push(link, Some(place.into()), text, false);
            return;
        }
        let place: String = place.into();
        let text = format!("{link}: {place}: {text}");
        if !self.not_here.contains(&text) {
            self.not_here.push(text);
        }
    }

    /// Ends a link of which something could not be read.
    pub(super) fn end_unread(&mut self, link: LinkName) {
        self.skip(link, "this clone leaves out what it rests on");
    }

    /// Something that a reader should know.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Ends a link: broken where a fault names it, else held.
    pub(super) fn close(&mut self, name: LinkName, held: impl Into<String>) {
        let faults = self.faults.iter().filter(|fault| fault.link == name);
        let faults = faults.count();
        let start = format!("{name}: ");
        if faults == 0 && self.not_here.iter().any(|text| text.starts_with(&start)) {
            self.end_unread(name);
            return;
        }
        let (state, detail) = match faults {
            0 => (LinkState::Held, held.into()),
            number => (LinkState::Broken, count(number, "fault", "faults")),
        };
        self.links.push(Link {
            name,
            state,
            detail,
        });
    }

    /// Ends a link that could not be checked, unless faults were found in it all the same.
    pub(super) fn skip(&mut self, name: LinkName, why: impl Into<String>) {
        if self.faults.iter().any(|fault| fault.link == name) {
            self.close(name, "");
            return;
        }
        self.links.push(Link {
            name,
            state: LinkState::NotChecked,
            detail: why.into(),
        });
    }
}
