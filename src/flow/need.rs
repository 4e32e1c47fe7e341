//! What a step needs of its sandbox, compared with what the probes of a provider showed.
//!
//! A step whose need is not met does not run. Nothing here, and nothing above, takes a weaker sandbox
//! instead.

use super::Error;
use super::bench::Twins;
use super::host::Host;
use crate::model::outcome::Trust;
use crate::sandbox::{self, Launcher, Probes, Provider};

/// What programs of an agent or of a package client need: no file and no host but the listed ones.
pub const LISTED: Trust = Trust::Confined;
/// The most that running hidden tests on the base needs, whatever plan and policy ask of a grade.
pub const HIDDEN: Trust = Trust::Sealed;

/// What sandboxes like these, whose tests are what one grade rests on, were measured to hold.
pub fn measured(host: &Host<'_>, twins: &Twins) -> Result<Probes, Error> {
    measured_by(host.provider.as_ref(), host, twins)
}

fn measured_by(provider: &dyn Provider, host: &Host<'_>, twins: &Twins) -> Result<Probes, Error> {
    let probe = |twin| provider.probe(twin, &host.cancel);
    let code = probe(&twins.code)?;
    Ok(match &twins.driver {
        None => code,
        Some(driver) => code.weaker(probe(driver)?),
    })
}

/// [`measured`], and fails where that is less than `need`. Where another provider holds enough here, the
/// error names it.
pub fn held(host: &Host<'_>, twins: &Twins, need: Trust, step: &str) -> Result<Probes, Error> {
    let probes = measured(host, twins)?;
    match met(&probes, need, step) {
        Ok(()) => Ok(probes),
        Err(Error::Missing { what, remedy }) => Err(match other(host, twins, need) {
            Some(name) => Error::missing(
                what,
                format!(
                    "`{name}` was measured to hold it here: `hangar grade --provider {name}`, or for every \
                     command `hangar config set sandbox.provider {name}`; `hangar doctor -v` shows what each holds"
                ),
            ),
            None => Error::missing(what, remedy),
        }),
        Err(error) => Err(error),
    }
}

/// Another provider that works here and holds enough. `none` is never proposed.
fn other(host: &Host<'_>, twins: &Twins, need: Trust) -> Option<&'static str> {
    host.stage("probing other sandboxes");
    let launcher = Launcher {
        image: host.user.image.clone(),
        ..Launcher::default()
    };
    let mine = host.provider.name();
    let all = sandbox::providers(&launcher).into_iter();
    let mut others = all.filter(|one| one.name() != mine && one.name() != "none");
    let found = others.find(|one| {
        let measured = || measured_by(one.as_ref(), host, twins);
        one.check().is_ok() && measured().is_ok_and(|probes| probes.trust() >= need)
    });
    found.map(|one| one.name())
}

/// Fails when a twin of the sandbox of `step` was measured to hold less than `need`.
pub fn met(probes: &Probes, need: Trust, step: &str) -> Result<(), Error> {
    let held = probes.trust();
    if held >= need {
        return Ok(());
    }
    let missing = probes.missing(need).join(", ");
    Err(Error::missing(
        format!(
            "{step} needs a sandbox that holds `{need}`; the provider {} was measured to hold \
             `{held}` (not held: {missing})",
            probes.provider
        ),
        "`hangar doctor -v` shows what each provider holds on this machine; name another one with \
         `sandbox.provider`, or lift what stands in the way of this one",
    ))
}

/// Fails where the machine could write what a sandbox holds to swap, and the policy does not allow that.
pub fn no_swap(probes: &Probes, allowed: bool) -> Result<(), Error> {
    if allowed || !probes.swap_exposed {
        return Ok(());
    }
    Err(Error::missing(
        "this machine has swap on, to which the hidden tests could be written",
        "turn swap off while they are used, or let the policy allow it",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::probe::{CONFINED, Probe, SEALED};

    fn probes(held: &[&[&str]]) -> Probes {
        Probes {
            provider: "other".to_owned(),
            version: String::new(),
            swap_exposed: false,
            results: held
                .iter()
                .flat_map(|names| names.iter())
                .map(|name| ((*name).to_owned(), Probe::held("")))
                .collect(),
        }
    }

    #[test]
    fn swap_is_refused_unless_the_policy_allows_it() {
        let mut probes = probes(&[CONFINED, SEALED]);
        no_swap(&probes, false).unwrap();
        probes.swap_exposed = true;
        no_swap(&probes, true).unwrap();
        assert!(matches!(
            no_swap(&probes, false),
            Err(Error::Missing { .. })
        ));
    }

    #[test]
    fn a_step_runs_only_where_its_need_was_measured() {
        let confined = probes(&[CONFINED]);
        met(&confined, LISTED, "it").unwrap();
        let error = met(&confined, HIDDEN, "it").unwrap_err();
        assert!(matches!(&error, Error::Missing { .. }));
        let text = error.to_string();
        for part in [
            "it needs",
            "`sealed`",
            "provider other",
            "`confined`",
            "survivor",
        ] {
            assert!(text.contains(part), "{text}");
        }
        met(&probes(&[CONFINED, SEALED]), HIDDEN, "it").unwrap();
        // What was not tried does not hold.
        assert!(met(&probes(&[SEALED]), LISTED, "it").is_err());
    }
}
