//! What is inside the ciphertexts, where a key is at hand. Nothing of it leaves this file but
//! whether it agrees with the manifest.

use super::LinkName::Payload;
use super::versions::place;
use super::{Case, Sheet, soften};
use crate::base::words;
use crate::flow::Error;
use crate::flow::version::{self, Opened};
use crate::grade::basecheck::{BaseCheck, BaseResult};
use crate::model::digest::Digest;
use crate::model::ids::Alias;
use crate::model::manifest::{BaseStatus, Manifest};
use crate::seal::{self, DecryptError};
use crate::store::chain::Folder;
use crate::store::dossier::Held;
use std::collections::BTreeMap;

/// How one ciphertext answered.
enum Try {
    Fits,
    NotOurs,
    Wrong(String),
}

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    if case.dossier.seals.is_empty() {
        sheet.skip(Payload, "there is nothing sealed");
        return Ok(());
    }
    if case.identities.is_empty() {
        sheet.skip(Payload, "payload not opened (no key here)");
        return Ok(());
    }
    let (mut opened, mut closed) = (0_usize, 0_usize);
    for seal in &case.dossier.seals {
        if version(case, seal, sheet)? {
            opened += 1;
        } else {
            closed += 1;
        }
    }
    if opened == 0 {
        sheet.skip(Payload, "payload not opened (no key here is a recipient)");
    } else {
        let rest = match closed {
            0 => String::new(),
            closed => format!(", {closed} not opened (no key here is a recipient)"),
        };
        sheet.close(
            Payload,
            format!(
                "{} opened: files, map, base results and canary are as signed{rest}",
                words::count(opened, "version", "versions")
            ),
        );
    }
    Ok(())
}

/// Whether the version could be opened.
fn version(case: &Case<'_>, seal: &Held<Manifest>, sheet: &mut Sheet) -> Result<bool, Error> {
    let payload = seal.value().payload;
    let reseals = case
        .dossier
        .reseals
        .iter()
        .filter(|held| held.value().manifest == seal.digest());
    let of_reseals = reseals.map(|held| {
        let name = format!("reseal {} of {}", held.digest().short(), place(seal));
        (name, &held.folder, held.value().ciphertext)
    });
    let own = (place(seal), &seal.folder, seal.value().ciphertext);
    let mut fits = false;
    for (name, folder, ciphertext) in of_reseals.chain([own]) {
        match try_open(case, folder, ciphertext, payload)? {
            Try::Fits => fits = true,
            Try::NotOurs => {}
            Try::Wrong(what) => sheet.fault_at(Payload, name, what),
        }
    }
    if !fits {
        return Ok(false);
    }
    match soften(version::open(
        case.store,
        case.dossier,
        seal,
        case.identities,
    ))? {
        Ok(opened) => {
            for wrong in contents(&opened) {
                sheet.fault_at(Payload, place(seal), wrong);
            }
        }
        Err(reason) => sheet.unread(Payload, place(seal), "", &reason),
    }
    Ok(true)
}

/// A ciphertext that is not the named one is another link's fault and is not tried.
fn try_open(
    case: &Case<'_>,
    folder: &Folder,
    ciphertext: Digest,
    payload: Digest,
) -> Result<Try, Error> {
    let bytes = match soften(folder.file(&case.store.repo, "sealed.age"))? {
        Ok(Some(bytes)) if Digest::of(&bytes) == ciphertext => bytes,
        _ => return Ok(Try::NotOurs),
    };
    for identity in case.identities {
        match seal::decrypt(&bytes, identity) {
            Ok(plain) if Digest::of(plain.expose()) == payload => return Ok(Try::Fits),
            Ok(_) => {
                return Ok(Try::Wrong(
                    "inside is another payload than the manifest names".into(),
                ));
            }
            Err(DecryptError::NotARecipient) => {}
            Err(error) => return Ok(Try::Wrong(error.to_string())),
        }
    }
    Ok(Try::NotOurs)
}

/// Rows, counts and coverage again from what is inside. Names no test.
fn contents(opened: &Opened) -> Vec<String> {
    let mut wrong = Vec::new();
    let manifest = &opened.manifest;
    let named = opened.criteria.named();
    let inside: BTreeMap<Alias, BaseStatus> = named
        .iter()
        .filter_map(|(alias, id)| Some((alias.clone(), *opened.base.get(id)?)))
        .collect();
    let signed: BTreeMap<Alias, BaseStatus> = manifest
        .base_check
        .iter()
        .map(|row| (row.alias.clone(), row.status))
        .collect();
    if inside != signed {
        wrong.push("the base results inside are not the ones of its base check".into());
    }
    let results = opened.base.iter().map(|(id, status)| {
        let result = match status {
            BaseStatus::Fails => BaseResult::Fails(crate::model::outcome::FailureClass::Error),
            BaseStatus::Guard => BaseResult::Guard,
            BaseStatus::Skipped => BaseResult::Skipped,
            BaseStatus::Unconfirmed => BaseResult::Unconfirmed,
        };
        (id.clone(), result)
    });
    let check = BaseCheck {
        results: results.collect(),
        ..BaseCheck::default()
    };
    if check.coverage(&opened.criteria) != manifest.coverage {
        wrong.push("the map inside covers the criteria otherwise than it says".into());
    }
    let counts = check.counts(&opened.criteria, opened.payload.files().len());
    let same = counts.files == manifest.counts.files
        && counts.sentinels == manifest.counts.sentinels
        && counts.tests == manifest.counts.tests;
    if !same {
        wrong.push(
            "the numbers of files, tests or sentinels inside are not the ones that it says".into(),
        );
    }
    wrong
}
