//! `hangar policy edit`: roles, thresholds, the arbiter, acceptance settings.

use super::change::{Changed, finish};
use crate::app::{Error, Here, sync};
use crate::flow::decide::refuse_agents;
use crate::model::outcome::{Trust, Verdict};
use crate::model::policy::{Acceptance, Members, Role, Root};
use crate::model::reduction::Why;
use crate::store::proposal;
use crate::trust::AskPassphrase;

/// Values for `policy edit`; absent ones stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edition {
    /// `person=role`.
    pub roles: Vec<(String, Role)>,
    /// Different people who must sign a new `root.toml`.
    pub root_threshold: Option<u32>,
    /// Different people who must sign a new `members.toml`.
    pub members_threshold: Option<u32>,
    /// The remote whose refs decide races; empty is this repository.
    pub arbiter: Option<String>,
    /// Days after which an ended task is archived; 0 is never.
    pub archive_days: Option<u32>,
    /// Acceptance settings as `name=value`.
    pub settings: Vec<(String, String)>,
}

/// Names of the acceptance settings, as in `root.toml`.
pub const NAMES: [&str; 12] = [
    "trust",
    "verdict",
    "approvers",
    "approval_days",
    "max_rounds",
    "max_rejections",
    "max_writer_turns",
    "max_grades",
    "max_awaiting_approval",
    "adapters",
    "after_code",
    "swap_exposed",
];

/// Changes roles, thresholds, the arbiter and acceptance settings.
pub fn edit(here: &Here, edit: &Edition, ask: &mut AskPassphrase<'_>) -> Result<Changed, Error> {
    refuse_agents(here.env.keys())?;
    if *edit == Edition::default() {
        return Err(Error::invalid(
            "name what to change: --role, --members-threshold, --root-threshold, --arbiter, --archive-days or --set",
        ));
    }
    let store = sync::fresh(here)?;
    let draft = proposal::next_version(&store, Why::Retired, |root, members| {
        edit_documents(edit, root, members)
    })?;
    let signer = here.signer(&store, ask)?;
    finish(here, &store, draft, &signer)
}

fn edit_documents(edit: &Edition, root: &mut Root, members: &mut Members) -> Result<(), Error> {
    for (name, role) in &edit.roles {
        let person = members
            .person
            .iter_mut()
            .find(|one| one.name.as_str() == name)
            .ok_or_else(|| Error::invalid(format!("nobody here is called `{name}`")))?;
        person.role = *role;
    }
    if let Some(threshold) = edit.root_threshold {
        root.thresholds.root = threshold;
    }
    if let Some(threshold) = edit.members_threshold {
        root.thresholds.members = threshold;
    }
    if let Some(arbiter) = &edit.arbiter {
        members.arbiter.clone_from(arbiter);
    }
    if let Some(days) = edit.archive_days {
        members.archive_days = Some(days);
    }
    for (name, value) in &edit.settings {
        set(&mut root.acceptance, name, value)?;
    }
    Ok(())
}

/// Sets one acceptance setting from text.
fn set(settings: &mut Acceptance, name: &str, value: &str) -> Result<(), Error> {
    let wrong = |what: &str| Error::invalid(format!("`{name}` takes {what}, not `{value}`"));
    let number = || value.parse::<u32>().map_err(|_| wrong("a number"));
    let yes = || match value {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(wrong("yes or no")),
    };
    match name {
        "trust" => settings.trust = value.parse::<Trust>().map_err(|_| wrong("a trust level"))?,
        "verdict" => {
            settings.verdict = value
                .parse::<Verdict>()
                .map_err(|_| wrong("a verdict class"))?;
        }
        "max_rounds" => settings.max_rounds = number()?,
        "max_rejections" => settings.max_rejections = number()?,
        "max_writer_turns" => settings.max_writer_turns = number()?,
        "max_grades" => settings.max_grades = number()?,
        "approval_days" => settings.approval_days = number()?,
        "approvers" => settings.approvers = number()?,
        "max_awaiting_approval" => settings.max_awaiting_approval = number()?,
        "adapters" => {
            let names = value.split(',').filter(|name| !name.is_empty());
            settings.adapters = names
                .map(|name| {
                    name.trim()
                        .parse()
                        .map_err(|_| wrong("names of frameworks"))
                })
                .collect::<Result<_, _>>()?;
        }
        "after_code" => settings.after_code = yes()?,
        "swap_exposed" => settings.swap_exposed = yes()?,
        _ => {
            return Err(Error::invalid(format!(
                "there is no acceptance setting `{name}`; there are {}",
                NAMES.join(", ")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_name_and_can_be_set() {
        let mut settings = Acceptance::default();
        let text = serde_json::to_value(&settings).unwrap();
        let mut fields: Vec<_> = text.as_object().unwrap().keys().collect();
        let mut names = NAMES.to_vec();
        fields.sort();
        names.sort_unstable();
        assert_eq!(fields, names);
        for name in NAMES {
            let refused = set(&mut settings, name, "?").unwrap_err().to_string();
            assert!(refused.contains("takes"), "{refused}");
        }
    }
}
