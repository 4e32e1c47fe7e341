//! `hangar inbox`

use crate::app::inbox::{Inbox, Item, ItemKind, inbox};
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, Table, escape};
use clap::Args;

/// Show what waits for you
///
/// Tests to review, approved tests whose task was edited since, patches to allow, accepted results that are on no branch yet, contradictions to
/// settle, policy versions to sign, rival ones to choose from, agent programs of this machine that are
/// not logged in, and tasks of yours that ended without an accepted result (`hangar task retry` or `hangar task archive` takes
/// one from here). Newest first, each with the command that answers it. Asks the remote for news
/// first, unless --offline.
///
/// In a pipe the columns are separated by tabs and complete: what, full task id, key, since, command,
/// title.
#[derive(Debug, Args)]
pub struct InboxArgs {}

pub(super) fn run(context: &Context) -> Result<ExitStatus, CliError> {
    let inbox = inbox(&context.here())?;
    for fault in &inbox.faults {
        let fault = escape::line(fault);
        context.printer.warn(format!("can't be read: {fault}"));
    }
    if inbox.person.is_none() {
        context
            .printer
            .notice("none of your keys is in the policy: this is what waits for anybody");
    }
    if context.printer.is_json() {
        context.printer.json(&inbox);
    } else if inbox.items.is_empty() {
        context.printer.notice("nothing waits for you");
    } else {
        context.printer.table(&table(&inbox));
    }
    Ok(ExitStatus::Done)
}

fn table(inbox: &Inbox) -> Table {
    let short = crate::ui::Printer::width().is_some();
    let mut table = Table::new(&["WHAT", "TASK", "KEY", "SINCE", "ANSWER WITH", "TITLE"]).whole(4);
    for item in &inbox.items {
        let task = item
            .task
            .as_ref()
            .map_or("-", |task| if short { task.short() } else { task.as_str() });
        let since = item.since.as_deref().unwrap_or("-");
        let since = if short {
            since.get(..10).unwrap_or(since)
        } else {
            since
        };
        table.row([
            (word(item), Some(Label::Attention)),
            (task, Some(Label::Id)),
            (item.key.as_deref().unwrap_or("-"), None),
            (since, None),
            (&item.command, None),
            (&item.title, None),
        ]);
    }
    table
}

const fn word(item: &Item) -> &'static str {
    match item.kind {
        ItemKind::Review => "review",
        ItemKind::Edited => "edited",
        ItemKind::Patch => "patch",
        ItemKind::Deliver => "deliver",
        ItemKind::Contradiction => "contradiction",
        ItemKind::Policy => "policy",
        ItemKind::Rival => "rival",
        ItemKind::Failed => "failed",
        ItemKind::Harness => "harness",
    }
}
