//! `hangar __schemas DIR`: writes the JSON schema of every answer. Hidden; a test compares the
//! result with the committed folder.

use crate::app::{
    acceptance, config, doctor, harness, inbox, keys, policy, setup, sync, tasks, verify,
};
use crate::base::files;
use crate::cli::CliError;
use crate::cli::commands::hook;
use crate::cli::error::ErrorDocument;
use crate::ui::Printer;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

type Entry = (&'static str, fn() -> Schema);

/// File name without ending, and the schema of what the command prints.
const SCHEMAS: &[Entry] = &[
    ("error", schema::<ErrorDocument>),
    ("init", schema::<setup::InitReport>),
    ("deinit", schema::<setup::deinit::DeinitReport>),
    ("doctor", schema::<doctor::Report>),
    ("task-new", schema::<tasks::new::NewTask>),
    ("task-list", schema::<tasks::list::TaskList>),
    ("task-show", schema::<tasks::show::TaskView>),
    ("task-log", schema::<tasks::log::TaskLog>),
    ("task-edit", schema::<tasks::edit::Edited>),
    ("task-enqueue", schema::<tasks::act::Acted>),
    ("task-cancel", schema::<tasks::act::Acted>),
    ("task-retry", schema::<tasks::act::Acted>),
    ("task-delete", schema::<tasks::act::Acted>),
    ("task-comment", schema::<tasks::act::Acted>),
    ("task-archive", schema::<tasks::archive::Archived>),
    ("demo", schema::<acceptance::demo::DemoView>),
    ("run", schema::<acceptance::run::RunView>),
    ("submit", schema::<acceptance::run::RunView>),
    ("deliver", schema::<acceptance::run::RunView>),
    ("seal", schema::<acceptance::seal::Sealed>),
    ("sealed-list", schema::<acceptance::sealed::SealedList>),
    ("sealed-show", schema::<acceptance::sealed::SealedShow>),
    ("sealed-reseal", schema::<acceptance::sealed::Resealed>),
    ("sealed-publish", schema::<acceptance::sealed::Published>),
    ("inbox", schema::<inbox::Inbox>),
    ("review", schema::<acceptance::review::Reviewed>),
    ("review-patch", schema::<acceptance::patch::PatchCard>),
    ("approve-patch", schema::<acceptance::patch::PatchApproved>),
    ("approve", schema::<acceptance::decide::Decided>),
    ("reject", schema::<acceptance::decide::Decided>),
    ("adjudicate", schema::<acceptance::adjudicate::Adjudicated>),
    ("grade", schema::<acceptance::grade::GradeView>),
    ("verify", schema::<verify::Answer>),
    ("verify-in-toto", schema::<verify::Statement>),
    ("sync", schema::<sync::SyncView>),
    ("policy-show", schema::<policy::PolicyView>),
    ("policy-add", schema::<policy::change::Changed>),
    ("policy-edit", schema::<policy::change::Changed>),
    ("policy-remove", schema::<policy::change::Changed>),
    ("policy-rotate", schema::<policy::change::Changed>),
    ("policy-adopt", schema::<policy::change::Changed>),
    ("policy-sign", schema::<policy::change::Changed>),
    ("policy-resolve", schema::<policy::change::Changed>),
    ("policy-log", schema::<policy::PolicyLog>),
    ("key-list", schema::<keys::KeyList>),
    ("key-new", schema::<keys::NewKey>),
    ("config-list", schema::<config::ConfigList>),
    ("config-get", schema::<config::ConfigValue>),
    ("config-set", schema::<config::ConfigSet>),
    ("hook", schema::<hook::HookReport>),
    ("harness-list", schema::<harness::HarnessList>),
    ("harness-test", schema::<harness::HarnessList>),
];

fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Every schema as its file's name and text.
fn all() -> Vec<(String, String)> {
    let file = |(name, schema): &Entry| {
        let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
        (format!("{name}.json"), text + "\n")
    };
    SCHEMAS.iter().map(file).collect()
}

pub(in crate::cli) fn run(dir: Option<&OsString>) -> ExitCode {
    let Some(dir) = dir else {
        let error = CliError::usage("no folder was named: `__schemas DIR`");
        return error.show(&Printer::default()).into();
    };
    let write = |(name, text): (String, String)| {
        files::write_atomic(&Path::new(dir).join(name), text.as_bytes(), 0o644)
    };
    match all().into_iter().try_for_each(write) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => CliError::from(error).show(&Printer::default()).into(),
    }
}
