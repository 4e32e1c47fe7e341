//! `hangar init`

use super::hook;
use crate::app::here::shell_word;
use crate::app::setup::{InitReport, InitRequest, Outcome, init};
use crate::app::{self, keys};
use crate::base::redact::holds_secret_key;
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context, words};
use crate::model::ids::Principal;
use crate::store::layout::{DEFAULT_PREFIX, Prefix};
use crate::trust::PublicKey;
use crate::ui::{Label, escape, paint};
use clap::Args;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Keys are looked for in this order: Git's user.signingKey when gpg.format is ssh (a file, or a \
literal key:: whose private half the agent holds), ~/.ssh/id_*, the ssh-agent. Without any, init \
offers to make one.

Examples:
  hangar init
  hangar init --name alice --agents --hooks
  hangar init --recovery ~/recovery.pub";

/// Set hangar up in this repository
///
/// Looks for an existing policy first, here and on the remote: then pins it, and prints the line by
/// which an admin adds you. Without one it founds version 1 with you as root and admin, makes this
/// machine's worker and grader keys (and an age identity where your key cannot decrypt), and writes
/// a commented hangar.toml tuned to the test framework that it finds. It says what to commit.
///
/// Running it again changes nothing, unless keys of this machine were declared compromised since: then it
/// makes new ones and says where the old ones lie.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    /// Your name in the policy [default: your mail address up to the @]
    #[arg(long, value_name = "NAME")]
    pub name: Option<Principal>,
    /// Found a policy although the remote can't be reached, or hangar.toml names one that is gone
    #[arg(long)]
    pub new: bool,
    /// Public key file of a second root key, kept away for the day the first is lost
    #[arg(long, value_name = "FILE")]
    pub recovery: Option<PathBuf>,
    /// Keep the refs of this clone below refs/hangar/ (hangar) or refs/heads/hangar-state/ (branches);
    /// those that are there move. A remote need not have the same [default: where they are]
    #[arg(long, value_name = "WHERE", value_parser = words::prefix())]
    pub prefix: Option<Prefix>,
    /// Write a marked block for coding agents into AGENTS.md
    #[arg(long)]
    pub agents: bool,
    /// Put hooks in place: pushes carry no hidden test out, refs of hangar go forward only
    #[arg(long)]
    pub hooks: bool,
}

pub(super) fn run(context: &Context, args: &InitArgs) -> Result<ExitStatus, CliError> {
    let recovery = match &args.recovery {
        None => None,
        Some(path) => Some(recovery(context, path)?),
    };
    let request = InitRequest {
        new: args.new,
        name: args.name.clone(),
        agents: args.agents,
        hooks: args.hooks,
        recovery,
        prefix: args.prefix,
    };
    let here = context.here();
    let report = match init(&here, &request, &mut context.passphrase()) {
        Err(error @ app::Error::NoKey { .. }) => {
            make_key(context, &here, error)?;
            init(&here, &request, &mut context.passphrase())?
        }
        result => result?,
    };
    if context.printer.is_json() {
        context.printer.json(&report);
    } else if !context.printer.settings().quiet {
        context.printer.text(text(&report));
    }
    Ok(hook::status(&report.hooks))
}

/// The public key in a file. What stands in the file is never said: it may be a private key.
fn recovery(context: &Context, path: &Path) -> Result<PublicKey, CliError> {
    let text = context.read_text(path)?;
    let text = text.trim();
    text.parse::<PublicKey>().map_err(|_| {
        let shown = path.display();
        let error = CliError::usage(format!("{shown} holds no SSH public key"));
        if holds_secret_key(text) {
            error.hint(format!(
                "that is a private key; name its public half, such as {shown}.pub"
            ))
        } else {
            error.hint("name the .pub file of the recovery key")
        }
    })
}

/// Offers to make a key; `error` is what is told when the offer is not taken.
fn make_key(context: &Context, here: &app::Here, error: app::Error) -> Result<(), CliError> {
    let path = keys::default_path(here)?;
    let question = format!(
        "No SSH key was found to sign with. Make one in {}?",
        path.display()
    );
    let prompts = context.prompts();
    if !prompts.can_confirm() || !prompts.confirm(&question)? {
        return Err(error.into());
    }
    let made = keys::new(&path)?;
    context.printer.notice(format!(
        "made {} ({}); give it a passphrase with `ssh-keygen -p -f {}`",
        made.path, made.key, made.path
    ));
    Ok(())
}

fn text(report: &InitReport) -> String {
    let mut out = Vec::new();
    let headline = match report.outcome {
        Outcome::Founded => "Founded the policy of this repository.",
        Outcome::Pinned => "Pinned the policy of this repository.",
        Outcome::Moved => "Moved the refs of this clone.",
        Outcome::Unchanged if report.machine_keys_made => {
            "Made keys for this machine; everything else was set up already."
        }
        Outcome::Unchanged => "Everything was set up already.",
    };
    out.push(paint(Label::Heading, headline));
    out.push(String::new());
    out.push(format!("  repository  {}", paint(Label::Id, report.repo)));
    out.push(format!("  policy      version {}", report.policy_version));
    if let Some(moved) = report.moved {
        let refs = count(moved, "ref was", "refs were");
        out.push(format!("  refs        {refs} moved to {}", report.prefix));
    } else if report.prefix != DEFAULT_PREFIX {
        out.push(format!("  refs        {}", report.prefix));
    }
    let you = match (&report.principal, &report.key) {
        (Some(name), Some(key)) => format!("{name}, {key}"),
        (None, Some(key)) => format!("not in the policy yet, {key}"),
        (_, None) => "no key found".to_owned(),
    };
    out.push(format!("  you         {you}"));
    if let Some(source) = &report.key_source {
        out.push(format!("  your key    {}", escape::line(source)));
    }
    out.push(format!("  keys        {}", escape::line(&report.keys_dir)));
    for path in &report.old_keys {
        out.push(format!(
            "  old key     {} (declared compromised; a new one was made)",
            escape::line(path)
        ));
    }
    if report.age_identity_made {
        out.push(
            "              with an age identity for you, because your key cannot decrypt by itself"
                .into(),
        );
    }
    if let Some(framework) = &report.framework {
        out.push(format!("  framework   {framework}"));
    } else if !report.bare {
        out.push(
            "  framework   none recognised; `grader.framework` in hangar.toml names one".into(),
        );
        let line = |text: String| format!("              {}", escape::line(&text));
        if !report.below.is_empty() {
            out.push(line(
                "tests run from the root; for those of a folder write under [grader]:".into(),
            ));
        }
        let below = report.below.iter();
        out.extend(below.map(|one| line(format!("{} {}", one.folder, one.write))));
    }
    let label = |index| if index == 0 { "hooks" } else { "" };
    let hooks = hook::lines(&report.hooks).into_iter().enumerate();
    out.extend(hooks.map(|(index, line)| format!("  {:<11} {line}", label(index))));
    next_steps(report, &mut out);
    out.push(String::new());
    out.join("\n")
}

fn next_steps(report: &InitReport, out: &mut Vec<String>) {
    if let Some(command) = &report.admin_command {
        out.push(String::new());
        out.push("An admin of this repository adds what is missing with:".into());
        out.push(format!(
            "  {}",
            paint(Label::Command, escape::line(command))
        ));
    }
    if report.bare {
        out.push(String::new());
        out.push(
            "This repository has no work tree: run `hangar init` in a clone to get a hangar.toml."
                .into(),
        );
    }
    if !report.to_commit.is_empty() {
        out.push(String::new());
        out.push(match report.to_commit.as_slice() {
            [_] => "Read it through, then commit it:".into(),
            _ => "Read them through, then commit them:".into(),
        });
        out.push(format!(
            "  {}",
            paint(Label::Command, commit_command(report))
        ));
    }
    if report.commit_first {
        out.push(
            "Until that is committed every other command refuses: the checked-out commit names another policy."
                .into(),
        );
    }
    if report.fetched_from.is_some() {
        let first = report.to_commit.is_empty() && report.admin_command.is_none();
        let then = if first { "Now" } else { "Then" };
        out.push(String::new());
        out.push(format!("{then} `hangar sync` brings the tasks."));
    }
    if report.outcome == Outcome::Founded && !report.bare {
        out.push(String::new());
        out.push("Then `hangar doctor` shows what works here; `hangar task new` begins.".into());
    }
}

/// The command that commits what was written, as it is typed in the folder of this process.
fn commit_command(report: &InitReport) -> String {
    let root = report.work_tree.as_deref().unwrap_or(Path::new("."));
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let inside = std::env::current_dir().ok().and_then(|here| {
        let below = canonical(&here)
            .strip_prefix(canonical(root))
            .ok()?
            .to_owned();
        Some(below.components().map(|_| "../").collect::<String>())
    });
    let names = |before: &str| {
        let files = report.to_commit.iter();
        let files: Vec<_> = files.map(|file| format!("{before}{file}")).collect();
        files.join(" ")
    };
    if let Some(up) = inside {
        return format!("git add {} && git commit -m \"Set up hangar\"", names(&up));
    }
    let git = format!("git -C {}", shell_word(root));
    let names = names("");
    format!("{git} add {names} && {git} commit -m \"Set up hangar\"")
}
