//! Agent programs and lanes of this machine.

use super::error::with_causes;
use super::{Error, Here};
use crate::harness::adapter::{self, Environment, Health, Settings};
use crate::harness::lanes::{self, Lane};
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
    Ok(list_of(&settings, &here.env))
}

/// Checks the named harnesses, or all.
pub fn test(here: &Here, names: &[String]) -> Result<HarnessList, Error> {
    let settings = here.user()?.lanes;
    let mut list = list_of(&settings, &here.env);
    for name in names {
        if !list.harnesses.iter().any(|one| one.name == *name) {
            return Err(Error::invalid(format!(
                "no harness is called `{name}`; configured are {}",
                known(&list)
            )));
        }
    }
    if !names.is_empty() {
        list.harnesses.retain(|one| names.contains(&one.name));
    }
    Ok(list)
}

fn known(list: &HarnessList) -> String {
    let names: Vec<_> = list.harnesses.iter().map(|one| one.name.as_str()).collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

fn list_of(settings: &LaneSettings, env: &Environment) -> HarnessList {
    let mut harnesses: Vec<_> = settings
        .harnesses
        .iter()
        .map(|(name, harness)| view(name, harness, env))
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
                    Some(harness) => view(&lane.harness, &harness, env),
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
        pair: pair(settings, env),
    }
}

fn view(name: &str, harness: &HarnessSettings, env: &Environment) -> HarnessView {
    let built = adapter::build(&Settings {
        name,
        harness,
        effort: None,
    });
    let (ready, detail) = match built.map(|adapter| (adapter.check(env), adapter)) {
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
    }
}

fn pair(settings: &LaneSettings, env: &Environment) -> PairView {
    let lanes = |role| lanes::resolve(settings, role);
    let pairs =
        lanes(Role::Writer).and_then(|writers| lanes::pair(&writers, &lanes(Role::Implementer)?));
    let first =
        pairs.and_then(|pairs| lanes::first_ready(pairs, |(one, other)| vec![one, other], env));
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
