//! Sandbox providers, measured.

use super::{Check, State};
use crate::app::Here;
use crate::config::env_vars;
use crate::flow::bench::limits;
use crate::model::outcome::Trust;
use crate::model::plan::PlanLimits;
use crate::sandbox::spec::{Network, Spec};
use crate::sandbox::{Cancel, Launcher, Probes, Provider, absent, providers};
use schemars::JsonSchema;
use serde::Serialize;

/// One provider.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProviderView {
    /// Name.
    pub name: String,
    /// Whether grades use it.
    pub chosen: bool,
    /// What it was measured to hold; absent where it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Each attempt to get out of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,
    /// Why it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What would make it work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Probes every provider, and says whether the chosen one holds what is wanted.
pub(super) fn look(
    here: &Here,
    wanted: Trust,
    cancel: &Cancel,
    progress: &dyn Fn(&str),
) -> (Vec<ProviderView>, Check) {
    let all = providers(&Launcher {
        image: here.user().ok().and_then(|user| user.image),
        ..Launcher::default()
    });
    let named = named(here);
    let mut views: Vec<ProviderView> = all
        .iter()
        .map(|provider| {
            progress(&format!("sandbox provider {}", provider.name()));
            measure(provider.as_ref(), cancel)
        })
        .collect();
    let chosen = match &named {
        Some(name) => views.iter().position(|view| view.name == *name),
        // As everywhere: the first that works, and never `none` by itself.
        None => views
            .iter()
            .position(|view| view.trust.is_some() && view.name != "none"),
    };
    if let Some(index) = chosen {
        views[index].chosen = true;
    }
    let check = verdict(
        named.as_deref(),
        chosen.map(|index| &views[index]),
        &views,
        wanted,
    );
    (views, check)
}

/// The provider that environment or configuration names.
fn named(here: &Here) -> Option<String> {
    let variable = here.var(env_vars::HANGAR_SANDBOX_PROVIDER);
    let variable = variable.map(|value| value.to_string_lossy().into_owned());
    variable.or_else(|| here.user().ok()?.provider)
}

/// What a grade would run in, without a tree.
fn spec() -> Spec {
    Spec {
        mounts: Vec::new(),
        files: Vec::new(),
        network: Network::None,
        limits: limits(&PlanLimits::default()),
        inner_domain: true,
        hash_after: Vec::new(),
        collect: Vec::new(),
        steps: Vec::new(),
        stop_on_failure: false,
        deadline: None,
    }
}

fn measure(provider: &dyn Provider, cancel: &Cancel) -> ProviderView {
    let mut view = ProviderView {
        name: provider.name().to_owned(),
        chosen: false,
        trust: None,
        probes: None,
        reason: None,
        remedy: None,
    };
    if let Err(unavailable) = provider.check() {
        view.reason = Some(unavailable.reason);
        view.remedy = Some(unavailable.remedy).filter(|remedy| !remedy.is_empty());
        return view;
    }
    match provider.probe(&spec(), cancel) {
        Ok(probes) => {
            view.trust = Some(probes.trust());
            view.probes = Some(probes);
        }
        Err(error) => view.reason = Some(error.to_string()),
    }
    view
}

/// What to do where the chosen provider holds too little.
fn better(views: &[ProviderView], wanted: Trust) -> String {
    let enough = views.iter().find(|view| view.trust >= Some(wanted));
    match enough {
        Some(view) => format!(
            "`{0}` holds enough: `hangar config set sandbox.provider {0}`",
            view.name
        ),
        None => {
            "grades are refused here; see the probes below for what stands in the way".to_owned()
        }
    }
}

fn verdict(
    named: Option<&str>,
    chosen: Option<&ProviderView>,
    views: &[ProviderView],
    wanted: Trust,
) -> Check {
    let Some(view) = chosen else {
        let detail = match named {
            Some(name) => format!("the provider `{name}` is not part of this version"),
            None => "no provider works here".to_owned(),
        };
        if let Some(absent) = named.and_then(absent) {
            let detail = absent.to_string();
            return Check::not(State::Missing, "sandbox", detail, absent.remedy);
        }
        let remedy = views.iter().find_map(|view| view.remedy.clone());
        return Check::not(
            State::Missing,
            "sandbox",
            detail,
            remedy.unwrap_or_default(),
        );
    };
    let Some(trust) = view.trust else {
        let reason = view.reason.clone().unwrap_or_default();
        let detail = format!("{} does not work here: {reason}", view.name);
        let remedy = view.remedy.clone().unwrap_or_default();
        return Check::not(State::Missing, "sandbox", detail, remedy);
    };
    let why = match named {
        Some(_) => "named by configuration",
        None => "the first that works",
    };
    if trust >= wanted {
        let detail = format!("{} holds `{trust}` ({why})", view.name);
        return Check::ok("sandbox", detail);
    }
    let missing = view.probes.as_ref().map(|probes| probes.missing(wanted));
    let missing = missing.unwrap_or_default().join(", ");
    Check::not(
        State::Missing,
        "sandbox",
        format!(
            "{} ({why}) holds `{trust}`, accepted grades need `{wanted}`; not held: {missing}",
            view.name
        ),
        better(views, wanted),
    )
}
