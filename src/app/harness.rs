//! Agent programs and lanes of this machine.

use super::error::with_causes;
use super::{Error, Here};
use crate::harness::adapter::{self, Health, Settings};
use crate::harness::health::{Kind, Outage};
use crate::harness::lanes::{self, Lane, Now};
use crate::harness::ledger::Book;
use crate::model::lane::{HarnessSettings, LaneName, LaneSettings, Role};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Harnesses and lanes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HarnessList {
    /// Every harness that is configured or used by a lane.
    pub harnesses: Vec<HarnessView>,
    /// Roles with their lanes, best first.
    pub lanes: BTreeMap<String, Vec<String>>,
    /// Whether a writer and an implementer can work on one task: different programs, both there.
    pub pair: PairView,
}

/// One harness.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HarnessView {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: String,
    /// Whether it can be used.
    pub ready: bool,
    /// Its version, where it was asked; otherwise what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What is known of its last turns here.
    pub health: HealthWord,
    /// When that was seen; absent for `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// When it is asked again; absent for `ok`, and where a person must mend it first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Health of a harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthWord {
    /// Nothing is known against it.
    Ok,
    /// It is at a usage limit.
    Limited,
    /// It is asked too often, or its provider is overloaded or can't be reached.
    Overloaded,
    /// It is not logged in, or its key is not accepted.
    Unauthenticated,
    /// Its account has no credit left.
    Unpaid,
}

impl HealthWord {
    const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Limit => Self::Limited,
            Kind::Rate | Kind::Overloaded => Self::Overloaded,
            Kind::Auth => Self::Unauthenticated,
            Kind::Billing => Self::Unpaid,
        }
    }
}

/// The pair of lanes that a test-first task would use.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PairView {
    /// Whether there is one.
    pub ready: bool,
    /// The writer's lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// The implementer's lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implementer: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Lists harnesses with their health, and lanes. Starts no turn.
pub fn list(here: &Here) -> Result<HarnessList, Error> {
    let settings = here.user()?.lanes;
    let ledger = here.health()?;
    let book = ledger.look();
    Ok(list_of(&settings, &now(here, &book)))
}

fn now<'a>(here: &'a Here, book: &'a Book) -> Now<'a> {
    Now {
        env: &here.env,
        book,
        at: here.clock.now(),
    }
}

/// Checks the named harnesses, or all. What is known against one that is named, and can be used, is
/// forgotten: the person says that it is mended.
pub fn test(here: &Here, names: &[String]) -> Result<HarnessList, Error> {
    let settings = here.user()?.lanes;
    let ledger = here.health()?;
    let mut list = list_of(&settings, &now(here, &ledger.look()));
    for name in names {
        let Some(one) = list.harnesses.iter().find(|one| one.name == *name) else {
            return Err(Error::invalid(format!(
                "no harness is called `{name}`; configured are {}",
                known(&list)
            )));
        };
        if one.ready {
            ledger.clear(name)?;
        }
    }
    if !names.is_empty() {
        list = list_of(&settings, &now(here, &ledger.look()));
        list.harnesses.retain(|one| names.contains(&one.name));
    }
    Ok(list)
}

/// A harness that only a person can mend.
#[derive(Debug)]
pub(super) struct ToMend {
    /// Its name.
    pub(super) name: String,
    /// What keeps it from working.
    pub(super) outage: Outage,
    /// How a person logs it in, where hangar knows.
    pub(super) login: Option<&'static str>,
}

/// Harnesses of this user that only a person can mend.
pub(super) fn to_mend(here: &Here) -> Result<Vec<ToMend>, Error> {
    let settings = here.user()?.lanes;
    let book = here.health()?.look();
    let now = now(here, &book);
    let one = |name: String| {
        let lane = name
            .parse()
            .ok()
            .and_then(|lane| lanes::lane(&settings, lane).ok())?;
        let outage = now
            .outage(&lane)
            .filter(|outage| outage.kind == Kind::Auth)?;
        Some(ToMend {
            name,
            outage: outage.clone(),
            login: lane.adapter.login(),
        })
    };
    Ok(book.names().map(str::to_owned).filter_map(one).collect())
}

fn known(list: &HarnessList) -> String {
    let names: Vec<_> = list.harnesses.iter().map(|one| one.name.as_str()).collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

fn list_of(settings: &LaneSettings, now: &Now<'_>) -> HarnessList {
    let mut harnesses: Vec<_> = settings
        .harnesses
        .iter()
        .map(|(name, harness)| view(name, harness, now))
        .collect();
    let mut roles = BTreeMap::new();
    for role in Role::ALL {
        let names = match settings.lanes.get(&role).filter(|names| !names.is_empty()) {
            Some(names) => names.clone(),
            // Nobody asked for a default: it is there, or it is not spoken of.
            None => lanes::resolve(settings, role)
                .map(|lanes| lanes.into_iter().map(|lane| lane.name).collect())
                .unwrap_or_default(),
        };
        for lane in &names {
            if !harnesses.iter().any(|one| one.name == lane.harness) {
                harnesses.push(match lanes::harness(settings, &lane.harness) {
                    Some(harness) => view(&lane.harness, &harness, now),
                    None => unconfigured(lane, settings),
                });
            }
        }
        if !names.is_empty() {
            let names = names.iter().map(ToString::to_string).collect();
            roles.insert(role.to_string(), names);
        }
    }
    HarnessList {
        harnesses,
        lanes: roles,
        pair: pair(settings, now),
    }
}

fn view(name: &str, harness: &HarnessSettings, now: &Now<'_>) -> HarnessView {
    let built = adapter::build(&Settings {
        name,
        harness,
        effort: None,
    });
    let outage = built
        .as_ref()
        .ok()
        .and_then(|adapter| now.book.outage(name, &adapter.variables(), now.env, now.at));
    let (ready, detail) = match built.map(|adapter| (adapter.check(now.env), adapter)) {
        Ok((Health::Ok, adapter)) => match adapter.version() {
            Ok(version) => (true, version),
            Err(error) => (false, Some(with_causes(&error))),
        },
        Ok((Health::Missing { message }, _)) => (false, Some(message)),
        Err(error) => (false, Some(error.to_string())),
    };
    HarnessView {
        name: name.to_owned(),
        kind: harness.kind.clone(),
        ready,
        detail,
        health: outage.map_or(HealthWord::Ok, |outage| HealthWord::of(outage.kind)),
        since: outage.map(|outage| outage.since.to_string()),
        until: outage.and_then(|outage| outage.until.map(|until| until.to_string())),
    }
}

/// A harness that a lane names and that no `[harness.NAME]` configures.
fn unconfigured(name: &LaneName, settings: &LaneSettings) -> HarnessView {
    let error = lanes::lane(settings, name.clone()).err();
    HarnessView {
        name: name.harness.clone(),
        kind: name.harness.clone(),
        ready: false,
        detail: error.map(|error| error.to_string()),
        health: HealthWord::Ok,
        since: None,
        until: None,
    }
}

fn pair(settings: &LaneSettings, now: &Now<'_>) -> PairView {
    let lanes = |role| lanes::resolve(settings, role);
    let pairs =
        lanes(Role::Writer).and_then(|writers| lanes::pair(&writers, &lanes(Role::Implementer)?));
    let needs: fn(&(Lane, Lane)) -> Vec<&Lane> = |(one, other)| vec![one, other];
    let first =
        pairs.and_then(|pairs| lanes::first_ready(pairs, Role::Writer, needs, |(one, _)| one, now));
    let name = |lane: &Lane| lane.name.to_string();
    match first {
        Ok(Some((writer, implementer))) => PairView {
            ready: true,
            writer: Some(name(&writer)),
            implementer: Some(name(&implementer)),
            detail: None,
        },
        Ok(None) => PairView {
            ready: false,
            writer: None,
            implementer: None,
            detail: Some("no lane is configured".into()),
        },
        Err(error) => PairView {
            ready: false,
            writer: None,
            implementer: None,
            detail: Some(error.to_string()),
        },
    }
}
