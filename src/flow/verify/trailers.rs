//! What trailers of ours in a commit message say, held against what was signed.

use crate::flow::delivery::{
    ACCEPTANCE_TRAILER, GRADE_TRAILER, MANIFEST_TRAILER, RUN_TRAILER, SUITE_TRAILER, TASK_TRAILER,
};
use crate::model::digest::Digest;
use crate::model::task::{Delivery, Flow};
use crate::store::dossier::Dossier;

/// A trailer and what it should say.
pub(super) type Signed = (&'static str, String);

const NAMES: [&str; 6] = [
    TASK_TRAILER,
    ACCEPTANCE_TRAILER,
    MANIFEST_TRAILER,
    GRADE_TRAILER,
    RUN_TRAILER,
    SUITE_TRAILER,
];

/// What the signed delivery and the documents that it names have a commit say.
pub(super) fn of_delivery(dossier: &Dossier, delivery: &Delivery) -> Vec<Signed> {
    let mut signed = vec![
        (TASK_TRAILER, dossier.id().to_string()),
        (RUN_TRAILER, delivery.run.to_string()),
    ];
    let digests = [
        (GRADE_TRAILER, delivery.grade),
        (MANIFEST_TRAILER, delivery.manifest),
    ];
    let named = |(name, digest): (_, Option<Digest>)| Some((name, digest?.to_string()));
    signed.extend(digests.into_iter().filter_map(named));
    let mut grades = dossier.grades.iter();
    if let Some(grade) = grades.find(|held| Some(held.digest()) == delivery.grade) {
        let value = grade.value();
        let words = format!(
            "passed; trust={}; verdict={}; secrecy={}",
            value.trust, value.verdict, value.secrecy
        );
        signed.push((ACCEPTANCE_TRAILER, words));
    }
    signed
}

/// The same for a commit that need not be the recorded one: a plain task claims nothing.
pub(super) fn of_revision(dossier: &Dossier, delivery: &Delivery) -> Vec<Signed> {
    let mut signed = of_delivery(dossier, delivery);
    if dossier.history.task.flow == Flow::Plain {
        signed.push((ACCEPTANCE_TRAILER, "none".to_owned()));
    }
    signed
}

/// What a message says in a trailer of ours and what was not signed. A message without any says
/// nothing. Read as generously as any reader of it might: whichever paragraph it stands in, each of
/// several with one name, large or small letters, a value over several lines.
pub(super) fn contradicted(message: &str, signed: &[Signed]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (name, value) in said(message) {
        let wanted = signed.iter().find(|(one, _)| *one == name);
        let fault = match wanted {
            Some((_, wanted)) if *wanted == value => continue,
            Some((_, wanted)) => format!("its trailer {name} is not `{wanted}`"),
            None => format!("its trailer {name} says what nothing that was signed says"),
        };
        if !found.contains(&fault) {
            found.push(fault);
        }
    }
    found
}

/// The trailers of ours below the first line, with their values.
fn said(message: &str) -> Vec<Signed> {
    let mut found: Vec<Signed> = Vec::new();
    let mut is_open = false;
    for line in message.trim_start().lines().skip(1) {
        if line.starts_with([' ', '\t']) && !line.trim().is_empty() {
            if let Some((_, value)) = found.last_mut().filter(|_| is_open) {
                value.push(' ');
                value.push_str(line.trim());
            }
            continue;
        }
        let ours = line.split_once(':').and_then(|(key, value)| {
            let is = |name: &&&str| name.eq_ignore_ascii_case(key.trim_end());
            Some((*NAMES.iter().find(is)?, value.trim().to_owned()))
        });
        is_open = ours.is_some();
        found.extend(ours);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "sha256:ab";

    fn faults(message: &str) -> usize {
        let signed = [
            (RUN_TRAILER, RUN.to_owned()),
            (TASK_TRAILER, "t".to_owned()),
        ];
        contradicted(message, &signed).len()
    }

    #[test]
    fn a_message_says_what_was_signed_or_nothing() {
        assert_eq!(faults("Title (#12)\n"), 0);
        assert_eq!(faults("Hangar-Run: the title\n\nText.\n"), 0);
        assert_eq!(
            faults("Title\n\nHangar-Task: t\nHangar-Run:  sha256:ab \n"),
            0
        );
        let squashed = "Title (#12)\n\n* Title\n\nHangar-Task: t\n\nCo-authored-by: A <a@b>\n";
        assert_eq!(faults(squashed), 0);
        // As git quotes a message that it squashes.
        assert_eq!(
            faults("Squashed\n\n    Title\n\n    Hangar-Run: other\n"),
            0
        );
    }

    #[test]
    fn every_way_to_say_something_else_is_seen() {
        for other in [
            "Title\n\nHangar-Run: other\n",
            "Title\n\nhangar-run : other\n",
            "Title\n\nHangar-Run: sha256:ab\nHangar-Run: other\n",
            "Title\n\nHangar-Run: sha256:ab\n  and more\n",
            "Title\n\nHangar-Run: other\n\nHangar-Run: sha256:ab\n",
            "Title\n\nHangar-Grade: sha256:ab\n",
            "Title\nHangar-Acceptance: passed\n",
        ] {
            assert_eq!(faults(other), 1, "{other}");
        }
    }
}
