//! An agent program that does not serve: what is noted of it, who works instead, and waiting.
//!
//! An outage is no round: it is recorded as a failed run, and the next lane of the role goes on.

use super::Error;
use super::host::Host;
use super::pairing;
use super::stage::Next;
use crate::harness;
use crate::harness::finish::{Failure, Finish, minute};
use crate::harness::health::Outage;
use crate::harness::lanes::Lane;
use crate::model::ids::TaskId;
use crate::model::lane::{LaneName, Role};
use crate::store::dossier::Dossier;
use jiff::Timestamp;
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether somebody can work again. A person may have mended it meanwhile.
const LOOK: Duration = Duration::from_secs(2);
/// How soon a wait ends that a person stops.
const TICK: Duration = Duration::from_millis(50);

/// Whether to wait where no lane can work now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Patience {
    /// Say when to come again.
    #[default]
    None,
    /// Wait until then.
    Wait,
}

/// A turn that was not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Which role and program, and why.
    pub what: String,
    /// What a person can do.
    pub remedy: String,
}

/// Notes what a turn says about the health of its harness.
pub(super) fn note(host: &Host<'_>, lane: &Lane, finish: &Finish, started: Timestamp) {
    if let Err(error) = host.health.note(lane, &host.env, finish, started) {
        let source = std::error::Error::source(&error);
        let why = source.map_or_else(String::new, |source| format!(": {source}"));
        host.note(format!(
            "the health of `{}` is known to this command alone: {error}{why}",
            lane.name
        ));
    }
}

/// What the document of a failed run says about it. No text of a program.
pub(super) fn in_a_word(failure: &Failure) -> String {
    let own = Failure {
        said: None,
        ..failure.clone()
    };
    own.words(false)
}

/// Lanes of which none works now.
#[derive(Debug)]
pub(super) struct Resting {
    role: Role,
    lanes: Vec<(LaneName, Outage)>,
    soonest: Option<Timestamp>,
}

impl Resting {
    /// The error of a choice of lanes, where this is what it says.
    pub(super) fn of(error: Error) -> Result<Self, Error> {
        match error {
            Error::Harness(harness::Error::Resting {
                role,
                resting: lanes,
                soonest,
            }) => Ok(Self {
                role,
                lanes,
                soonest,
            }),
            other => Err(other),
        }
    }

    /// Whether waiting helps.
    pub(super) const fn ends(&self) -> bool {
        self.soonest.is_some()
    }

    fn what(&self, stopped: Option<&Stopped>) -> String {
        let one = |(name, outage): &(LaneName, Outage)| format!("`{name}` {outage}");
        let lanes: Vec<String> = self.lanes.iter().map(one).collect();
        let none = format!("no {} can work now: {}", self.role, lanes.join("; "));
        let mut what = match stopped {
            // One lane alone has said all there is to say.
            Some(stopped) if lanes.len() == 1 => stopped.what.clone(),
            Some(stopped) => format!("{}; {none}", stopped.what),
            None => none,
        };
        if let Some(soonest) = self.soonest {
            what.push_str("; the soonest time to try again is ");
            what.push_str(&minute(soonest));
        }
        what
    }

    /// The end of a run: what stopped it last, if something did in this run, and when to come again.
    pub(super) fn error(&self, task: &TaskId, stopped: Option<&Stopped>) -> Error {
        let id = task.short();
        let what = self.what(stopped);
        let mended = self.lanes.iter().find(|(_, outage)| outage.until.is_none());
        let remedy = match (stopped, self.soonest, mended) {
            (Some(stopped), ..) => stopped.remedy.clone(),
            (None, Some(_), _) => format!(
                "`hangar run {id}` then, or `hangar run {id} --wait` now; or name another harness in `lanes.{}`",
                self.role
            ),
            (None, None, Some((lane, _))) => format!(
                "log it in, then `hangar harness test {}` and `hangar run {id}`",
                lane.harness
            ),
            (None, None, None) => format!("`hangar run {id}`"),
        };
        Error::Agent { what, remedy }
    }
}

/// Refuses a task that no lane here can serve now, before anything is claimed or runs. With patience
/// it waits until one can.
pub fn ready(
    host: &Host<'_>,
    dossier: &Dossier,
    next: &Next,
    patience: Patience,
) -> Result<(), Error> {
    let mut told = String::new();
    loop {
        let Err(error) = pairing::check(host, dossier, next) else {
            return Ok(());
        };
        let resting = Resting::of(error)?;
        if patience == Patience::None || !resting.ends() {
            return Err(resting.error(dossier.id(), None));
        }
        pause(host, &resting, &mut told)?;
    }
}

/// Lets a little time pass, and says what is waited for, once. The caller looks again.
pub(super) fn pause(host: &Host<'_>, resting: &Resting, told: &mut String) -> Result<(), Error> {
    let until = resting.soonest.map_or_else(String::new, minute);
    let lanes: Vec<String> = resting
        .lanes
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    let text = format!("waiting until {until} for {}", lanes.join(", "));
    if *told != text {
        host.note(resting.what(None));
        host.stage(text.clone());
        *told = text;
    }
    let started = Instant::now();
    while started.elapsed() < LOOK {
        host.check_cancel()?;
        thread::sleep(TICK);
    }
    Ok(())
}
