//! `hangar demo`

use crate::app::acceptance::demo::{Scene, demo};
use crate::app::here::shell_word;
use crate::base::temp::Folder;
use crate::cli::watch::watched;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{Label, paint};
use clap::Args;
use std::path::{Path, PathBuf};

/// Show the whole flow in a throwaway repository
///
/// Without network, account or model: a scripted writer and implementer, the embedded sandbox, real
/// signatures, real sealing. First a wrong patch is refused, then the right one is accepted, then
/// `hangar verify` checks it all. Nothing of it touches your repositories, keys or configuration.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the repository in DIR, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

pub(super) fn run(context: &Context, args: &DemoArgs) -> Result<ExitStatus, CliError> {
    let (folder, _gone_afterwards) = folder(args)?;
    let printer = &context.printer;
    let say = |scene: Scene| match scene {
        Scene::Tell(text) => printer.notice(format!("\n{text}")),
        Scene::Command(text) => printer.notice(format!("  $ {}", paint(Label::Command, text))),
    };
    let mut view = watched(context, "starting", |watch| Ok(demo(&folder, watch, &say)?))?;
    if args.keep.is_none() {
        view.repository = None;
    }
    if printer.is_json() {
        printer.json(&view);
    } else {
        for line in super::run::outcome(&view.run) {
            printer.text(line);
        }
    }
    if let Some(repository) = &view.repository {
        printer.notice(format!("\nThe repository is kept in {repository}."));
        let repository = shell_word(Path::new(repository));
        let next = format!("hangar -C {repository} verify {}", view.id.short());
        printer.notice(format!("next       {}", paint(Label::Command, next)));
    }
    if !view.verified || !view.wrong_patch_refused {
        return Ok(ExitStatus::No);
    }
    printer.notice(
        "
Every link was verified: policy, signatures, tests, patch, grade, commit.",
    );
    Ok(super::run::status(&view.run))
}

/// Where the demo plays; a temporary folder goes with the second value.
fn folder(args: &DemoArgs) -> Result<(PathBuf, Option<Folder>), CliError> {
    let cannot = |what: String| CliError::new(ExitStatus::Trouble, what);
    if let Some(dir) = &args.keep {
        if dir.symlink_metadata().is_ok() {
            return Err(CliError::new(
                ExitStatus::Usage,
                format!("{} exists already", dir.display()),
            ));
        }
        std::fs::create_dir_all(dir)
            .map_err(|error| cannot(format!("cannot create {}: {error}", dir.display())))?;
        let full = dir
            .canonicalize()
            .map_err(|error| cannot(format!("cannot use {}: {error}", dir.display())))?;
        return Ok((full, None));
    }
    let temp = Folder::new("demo", 0o700)
        .map_err(|error| cannot(format!("cannot make a temporary folder: {error}")))?;
    Ok((temp.path().to_owned(), Some(temp)))
}
