//! What the commands that change the policy print, and what several commands say of it.

use crate::app::policy::change::{Changed, LeftOutView, NeedView};
use crate::app::policy::{OvertakenView, RivalsView, SetAsideView};
use crate::base::words::{count, word};
use crate::cli::{ExitStatus, context::Context};
use crate::model::ids::Principal;
use crate::ui::{Label, escape, paint};
use std::fmt::Write as _;

/// Says what became of a change. A version that waits for others is exit 6.
pub(super) fn tell(context: &Context, changed: &Changed) -> ExitStatus {
    let status = if changed.in_force {
        ExitStatus::Done
    } else {
        ExitStatus::Waiting
    };
    let printer = &context.printer;
    if printer.is_json() {
        printer.json(changed);
        return status;
    }
    let (version, digest) = (changed.version, changed.digest.short());
    if changed.unchanged {
        printer.text(format!("unchanged  policy version {version} ({digest})"));
    } else if changed.in_force {
        printer.text(format!("in force   policy version {version} ({digest})"));
        if changed.reseal {
            let command = paint(Label::Command, "hangar sealed reseal --all");
            printer.text(format!("next       {command}"));
        }
    } else {
        printer.text(format!("waiting    policy version {version} ({digest})"));
        for need in &changed.needs {
            printer.text(format!("needs      {}", need_text(need)));
        }
        for line in next_lines(changed) {
            printer.text(line);
        }
    }
    left_behind(context, changed);
    status
}

/// Documents and tasks that a version which takes rights does not count.
fn left_behind(context: &Context, changed: &Changed) {
    let printer = &context.printer;
    for left in &changed.left_out {
        printer.text(format!("left out   {}", left_out(left)));
    }
    let digests = changed.left_out.iter().flat_map(|left| &left.documents);
    let digests: Vec<_> = digests.map(ToString::to_string).collect();
    if changed.in_force && !digests.is_empty() {
        let command = format!("hangar policy adopt {}", digests.join(" "));
        printer.text(format!("next       {}", paint(Label::Command, command)));
    }
    for task in &changed.unread {
        printer.text(format!(
            "not read   task {}: what the key signed there does not count (`hangar verify {}`)",
            task.short(),
            task.short()
        ));
    }
}

/// Documents of one signer that came after a version was made.
pub(super) fn left_out(left: &LeftOutView) -> String {
    let (name, number) = (&left.principal, left.documents.len());
    let documents = count(number, "document that", "documents that");
    let verb = word(number, "is", "are");
    format!("{documents} {name} signed after this version was made {verb} not in its list")
}

/// What makes a version that waits go on.
fn next_lines(changed: &Changed) -> Vec<String> {
    let digest = changed.digest.short();
    let command = |text: String| paint(Label::Command, text);
    let mut lines = Vec::new();
    if let Some(key) = &changed.new_key {
        lines.push(format!("next       sign it with the new key {key} too:"));
        for text in [
            "git config gpg.format ssh".to_owned(),
            "git config user.signingKey NEWKEY.pub".to_owned(),
            format!("hangar policy sign {digest}"),
        ] {
            lines.push(format!("           {}", command(text)));
        }
    }
    let own_alone = changed.needs.len() == 1 && changed.needs[0].threshold == 1;
    if changed.new_key.is_none() || !own_alone {
        let next = command(format!("hangar sync && hangar policy sign {digest}"));
        lines.push(format!("next       one of them: {next}"));
    }
    lines
}

pub(super) fn need_text(need: &NeedView) -> String {
    let names: Vec<_> = need.able.iter().map(ToString::to_string).collect();
    format!(
        "{} of {} signed {}; can: {}",
        need.signed.len(),
        people(need.threshold),
        need.what,
        names.join(", ")
    )
}

/// `1 person`, `2 people`.
pub(super) fn people(number: u32) -> String {
    count(number, "person", "people")
}

fn names(people: &[Principal]) -> String {
    let names: Vec<_> = people.iter().map(Principal::as_str).collect();
    names.join(" and ")
}

/// Versions that rival each other, with the way out; empty where there are none.
pub(in crate::cli::commands) fn rivals_text(rivals: &[RivalsView]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for one in rivals {
        let heading = format!("Rival versions {} of the policy", one.after + 1);
        let _ = writeln!(
            out,
            "\n{}\n  Each follows version {}. Nothing is decided until one of them stands.",
            paint(Label::Bad, heading),
            one.after
        );
        for version in &one.versions {
            let digest = paint(Label::Id, version.digest.short());
            let _ = writeln!(out, "  {digest}  signed by {}", names(&version.signed));
            for change in &version.changes {
                let _ = writeln!(out, "    {}", escape::line(change));
            }
            for later in &version.later {
                let (number, digest) = (later.version, later.digest.short());
                let by = names(&later.signed);
                let _ = writeln!(out, "    then version {number} ({digest}), signed by {by}");
                for change in &later.changes {
                    let _ = writeln!(out, "      {}", escape::line(change));
                }
            }
        }
    }
    if !rivals.is_empty() {
        let command = paint(Label::Command, "hangar policy resolve DIGEST");
        let _ = writeln!(out, "  Holders of root keys say which: {command}");
    }
    out
}

/// A version that another one of its number overtook.
pub(super) fn overtaken_text(one: &OvertakenView) -> String {
    let signed: Vec<_> = one.signed.iter().map(ToString::to_string).collect();
    let digest = paint(Label::Id, one.digest.short());
    let mut out = format!(
        "  overtaken: {digest}, signed by {}; make it again on top if it is still wanted\n",
        signed.join(" and ")
    );
    for change in &one.changes {
        out.push_str("    ");
        out.push_str(&escape::line(change));
        out.push('\n');
    }
    out
}

/// Versions that were set aside; empty where there are none.
pub(super) fn set_aside_text(versions: &[SetAsideView]) -> String {
    let mut out = String::new();
    if !versions.is_empty() {
        let _ = writeln!(out, "\n{}", paint(Label::Heading, "Set aside"));
    }
    for one in versions {
        let digest = paint(Label::Id, one.digest.short());
        let documents = count(one.documents, "document counts", "documents count");
        let _ = writeln!(
            out,
            "  version {} ({digest}), signed by {}; {documents}",
            one.version,
            names(&one.signed)
        );
    }
    out
}
