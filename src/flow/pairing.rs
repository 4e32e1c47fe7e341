//! Which lanes serve a task: who writes its tests and who writes its code are different harnesses.

use super::Error;
use super::host::Host;
use super::stage::Next;
use crate::harness::lanes::{self, Lane, Now};
use crate::harness::ledger::Book;
use crate::model::digest::Digest;
use crate::model::lane::Role;
use crate::model::manifest::Writer;
use crate::model::task::Flow;
use crate::store::dossier::Dossier;

/// Refuses a task that no lane here can serve, or a test-first one that no two different harnesses can,
/// before anything is claimed or runs.
pub fn check(host: &Host<'_>, dossier: &Dossier, next: &Next) -> Result<(), Error> {
    match (dossier.history.task.flow, next) {
        (Flow::TestFirst, Next::Enqueue | Next::Write { .. }) => first_pair(host).map(drop),
        (Flow::Plain, Next::Enqueue) => implementer_lane(host, dossier, None).map(drop),
        (_, Next::Implement { manifest, .. }) => {
            implementer_lane(host, dossier, *manifest).map(drop)
        }
        _ => Ok(()),
    }
}

fn now<'a>(host: &'a Host<'_>, book: &'a Book) -> Now<'a> {
    Now {
        env: &host.env,
        book,
        at: host.health.now(),
    }
}

/// The best pair of different harnesses of which the writer can work now: until its tests are approved,
/// the implementer may come back. Refused before anything runs where there is none.
pub(super) fn first_pair(host: &Host<'_>) -> Result<(Lane, Lane), Error> {
    let writers = lanes::resolve(&host.user.lanes, Role::Writer)?;
    let implementers = lanes::resolve(&host.user.lanes, Role::Implementer)?;
    let pairs = lanes::pair(&writers, &implementers)?;
    let book = host.health.look();
    let ready = lanes::first_ready(
        pairs,
        Role::Writer,
        |(one, other)| vec![one, other],
        |(one, _)| one,
        &now(host, &book),
    )?;
    ready.ok_or_else(|| {
        Error::missing(
            "no writer and implementer on different harnesses are configured",
            "see `hangar harness list`",
        )
    })
}

/// The implementer's lane: another harness than the one that wrote the tests.
pub(super) fn implementer_lane(
    host: &Host<'_>,
    dossier: &Dossier,
    manifest: Option<Digest>,
) -> Result<Lane, Error> {
    let candidates = lanes::resolve(&host.user.lanes, Role::Implementer)?;
    let book = host.health.look();
    let now = now(host, &book);
    let writer = manifest
        .and_then(|digest| dossier.seal(digest))
        .map(|seal| &seal.value().writer);
    let Some(Writer::Agent { harness, .. }) = writer else {
        let ready = lanes::first_ready(
            candidates,
            Role::Implementer,
            |lane| vec![lane],
            |lane| lane,
            &now,
        )?;
        return ready.ok_or_else(|| {
            Error::missing(
                "no implementer is configured",
                "set `lanes.implementer` in the user configuration",
            )
        });
    };
    let writers = lanes::resolve(&host.user.lanes, Role::Writer)?;
    let wrote: Vec<Lane> = writers
        .into_iter()
        .filter(|lane| lane.name.to_string() == *harness)
        .collect();
    if wrote.is_empty() {
        return Err(Error::refused(
            format!(
                "the tests were written by `{harness}`, which is no writer lane here, so no other harness can be told apart from it"
            ),
            "configure that lane on this machine, or submit a patch of your own (`hangar submit`)",
        ));
    }
    let pairs = lanes::pair(&wrote, &candidates)?;
    let ready = lanes::first_ready(
        pairs,
        Role::Implementer,
        |(_, lane)| vec![lane],
        |(_, lane)| lane,
        &now,
    )?;
    ready.map(|(_, lane)| lane).ok_or_else(|| {
        Error::missing(
            "no implementer on another harness than the writer's is configured",
            "see `hangar harness list`",
        )
    })
}
