//! `hangar sync`

use super::policy::rivals_text;
use crate::app;
use crate::app::sync::{self, LossKind, LossView, NotAppliedKind, NotAppliedView, SyncView};
use crate::base::words::count;
use crate::cli::{CliError, ExitStatus, context::Context, words};
use crate::store::{self, layout::Prefix};
use crate::ui::{Label, Progress, escape, paint};
use clap::Args;
use std::collections::BTreeSet;

const EXAMPLES: &str = "\
Examples:
  hangar sync
  hangar sync upstream
  hangar sync git@git.example.com:team/project.git
  hangar sync --prefix branches";

/// Bring the state here and on a Git remote together
///
/// Fetches what the remote has, joins what went apart, and pushes what the remote lacks; nothing is
/// lost on either side, and running it again is safe. A ref that the remote deleted or rolled back, or that
/// somebody put something without any document in place of, is reported and pushed again.
///
/// Without REMOTE: what HANGAR_REMOTE or remote.name says, else the policy's arbiter, else the only
/// remote, else origin. Nothing asks for a password. Before the first push to a remote that anyone can
/// read, that is said once.
///
/// Exit 1 when something that came has no effect here (each is named; a refused change once, and so is what
/// can't be taken of a name that nothing here has; what other commands that fetched had no room to name is
/// named here), a ref is locked in this clone, or a move to another prefix was not done as a whole; 7 when the remote could not be reached or
/// written to, 4 while rival versions of the policy are undecided.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SyncArgs {
    /// Name or address of the remote
    #[arg(value_name = "REMOTE")]
    pub remote: Option<String>,
    /// Let the remote keep its refs below refs/hangar/ (hangar) or, where it takes branches only, below
    /// refs/heads/hangar-state/ (branches); those that are there move [default: where they are]
    #[arg(long, value_name = "WHERE", value_parser = words::prefix())]
    pub prefix: Option<Prefix>,
}

pub(super) fn run(context: &Context, args: &SyncArgs) -> Result<ExitStatus, CliError> {
    let line = Progress::start(&context.printer, "syncing");
    let synced = sync::sync(&context.here(), args.remote.as_deref(), args.prefix);
    line.finish();
    let view = synced.map_err(|error| match error {
        app::Error::Store(error @ store::Error::NoPolicy) => {
            CliError::of(ExitStatus::Missing, error)
                .hint("run `hangar init` first: it pins the policy that the remote has")
        }
        error => error.into(),
    })?;
    let all = view.not_applied.is_empty() && view.stayed.is_none() && view.not_moved.is_none();
    let status = match (&view.not_pushed, all) {
        _ if !view.rivals.is_empty() => ExitStatus::Refused,
        (Some(_), _) => ExitStatus::Trouble,
        (None, whole) => ExitStatus::answer(whole),
    };
    if context.printer.is_json() {
        context.printer.json(&view);
    } else {
        context.printer.text(text(&view));
    }
    sync::shown(&context.here(), &view);
    Ok(status)
}

fn text(view: &SyncView) -> String {
    let mut lines = Vec::new();
    let mut counted = |word: &str, names: &[String]| {
        if !names.is_empty() {
            let refs = if names.len() == 1 { "ref" } else { "refs" };
            lines.push(format!("{word:<10} {} {refs}", names.len()));
        }
    };
    counted("fetched", &view.fetched);
    counted("joined", &view.joined);
    counted("pushed", &view.pushed);
    for version in &view.policy {
        let mut changes = version.changes.iter().map(|change| escape::line(change));
        let first = changes.next().unwrap_or_default();
        lines.push(format!(
            "{:<10} version {}: {first}",
            "policy", version.version
        ));
        lines.extend(changes.map(|change| format!("{:<10} {change}", "")));
    }
    if !view.archived.is_empty() {
        let tasks = count(view.archived.len(), "task", "tasks");
        lines.push(format!("{:<10} {tasks}", "archived"));
    }
    if let Some(why) = &view.not_tidied {
        let why = escape::line(why);
        lines.push(format!(
            "archived refs stay on {}: {why}",
            escape::line(&view.remote)
        ));
    }
    lines.extend(view.losses.iter().map(|one| loss(view, one)));
    lines.extend(view.not_applied.iter().map(not_applied));
    lines.extend(adopt(view));
    lines.extend(left_alone(view));
    lines.extend(view.empty.iter().map(|one| {
        let (name, commit) = (escape::line(&one.name), one.commit.short());
        format!("skipped    {name}: commit {commit} is empty and joins nothing")
    }));
    for name in &view.unknown {
        lines.push(format!(
            "left alone {}: this version does not know such refs",
            escape::line(name)
        ));
    }
    lines.extend(moved(view));
    if let Some(why) = &view.not_pushed {
        lines.extend(not_pushed(view, why));
    } else if !view.unpublished.is_empty() {
        lines.extend(barred(view));
    }
    if lines.is_empty() {
        lines.push(format!("up to date with {}", escape::line(&view.remote)));
    }
    lines.join("\n") + "\n" + &rivals_text(&view.rivals)
}

/// A ref that the remote had.
fn loss(view: &SyncView, one: &LossView) -> String {
    let what = match one.what {
        LossKind::Deleted => "had deleted",
        LossKind::RolledBack => "had rolled back",
        LossKind::Rewritten => "had rewritten",
        LossKind::Replaced => "had something else in place of",
    };
    let (word, end) = if one.healed {
        ("restored", "; it was pushed again")
    } else {
        ("lost", "; this clone still has what was there")
    };
    format!(
        "{:<10} {} {what} {}{end}",
        paint(Label::Attention, word),
        escape::line(&view.remote),
        escape::line(&one.name)
    )
}

/// What moved to another prefix, and what did not.
fn moved(view: &SyncView) -> Vec<String> {
    let moved = view.moved.map(|moved| {
        let refs = count(moved, "ref", "refs");
        format!("{:<10} {refs} to {}", "moved", view.prefix)
    });
    let stayed = view.stayed.map(|stayed| {
        let refs = count(stayed, "ref stays", "refs stay");
        let remote = escape::line(&view.remote);
        let old = Prefix::ALL.into_iter().find(|one| one.as_str() != view.prefix);
        let old = old.map_or("", Prefix::as_str);
        format!(
            "{refs} below the old prefix on {remote}: they can't be taken\nhint: `git ls-remote {remote} '{old}*'` lists them; those that nobody needs are taken away there: `git push --no-verify {remote} --delete NAME`"
        )
    });
    let not = view.not_moved.as_ref().map(|why| {
        let word = paint(Label::Bad, "not moved");
        format!("{word}: {}", escape::line(why))
    });
    [moved, stayed, not].into_iter().flatten().collect()
}

/// What is not pushed because something that may be signed stands in its place, or it is locked here.
fn barred(view: &SyncView) -> Vec<String> {
    let is_locked = |name: &&String| {
        let mut locked = view.not_applied.iter();
        locked.any(|one| one.kind == NotAppliedKind::Locked && one.name.as_ref() == Some(*name))
    };
    let mut names = view.unpublished.iter();
    let Some(name) = names.find(|name| !is_locked(name)) else {
        let why = format!("what {} has of it was not taken, see above", view.remote);
        return not_pushed(view, &why);
    };
    let why = format!("what {} has in place of it can't be taken", view.remote);
    let mut lines = not_pushed(view, &why);
    let mut known = view.not_applied.iter();
    if known.any(|one| one.may_go() && one.name.as_ref() == Some(name)) {
        lines.extend(ways_out(view, name, true));
    }
    lines
}

/// What can be done about what stands in the place of a ref there.
fn ways_out(view: &SyncView, name: &str, signed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    // The remote may keep its refs below another prefix than this clone.
    let mut all = Prefix::ALL.into_iter();
    let own = all.find_map(|prefix| name.strip_prefix(prefix.as_str()));
    let remote = escape::line(&view.remote);
    let full = format!("{}{}", view.prefix, escape::line(own.unwrap_or(name)));
    if signed {
        lines.push(format!(
        "hint: it may hold something signed, so look at it first: `git fetch {remote} {full}`, then `git log -p FETCH_HEAD`"
    ));
    }
    if own == Some("policy") {
        // Versions that others signed may lie below what can't be taken: they would go with it.
        lines.push(format!(
            "hint: good versions may lie below it that this clone does not have. A clone that has the newest puts it right (`git push --no-verify --force {remote} {name}:{full}`, hooks of hangar let no ref go back), then `hangar sync`"
        ));
        return lines;
    }
    lines.push(format!(
        "hint: where it is nobody's, whoever may write there takes it away (hangar's hooks let no ref go): `git push --no-verify {remote} --delete {full}`, then `hangar sync`"
    ));
    lines
}

/// What the remote shows at names that nothing here has: what can't be taken, and what was named before.
fn left_alone(view: &SyncView) -> Vec<String> {
    let new = view.not_applied.iter();
    let new: Vec<_> = new.filter(|one| one.is_absent()).collect();
    let mut lines = Vec::new();
    for one in view.left_alone.iter().take(SHOWN) {
        let name = escape::line(one.name.as_deref().unwrap_or_default());
        lines.push(format!("left alone {name}: {}", escape::line(&one.why)));
    }
    if view.left_alone.len() > SHOWN {
        lines.push(format!("  and {} more", view.left_alone.len() - SHOWN));
    }
    let mut all = new.iter().copied().chain(&view.left_alone).peekable();
    if all.peek().is_some() {
        let keeps = "hint: nothing here has a ref of that name, so it keeps nothing back";
        lines.push(keeps.to_owned());
    }
    // What waits for something, or could not be read, may be somebody's work.
    let junk = all.find(|one| one.may_go());
    if let Some(name) = junk.and_then(|one| one.name.as_deref()) {
        lines.extend(ways_out(view, name, !new.is_empty()));
    }
    lines
}

/// What the remote lacks, why, and what helps.
fn not_pushed(view: &SyncView, why: &str) -> Vec<String> {
    let names = &view.unpublished;
    let word = paint(Label::Bad, "not pushed");
    // Nothing is known to be missing there where the remote was not reached.
    let refs = match names.len() {
        0 => String::new(),
        number => format!(" {}", count(number, "ref", "refs")),
    };
    let mut lines = vec![format!("{word}{refs}: {}", escape::line(why))];
    let shown = names.iter().take(SHOWN);
    lines.extend(shown.map(|name| format!("  {}", escape::line(name))));
    if names.len() > SHOWN {
        lines.push(format!("  and {} more", names.len() - SHOWN));
    }
    let remedies = view.remedies.iter();
    lines.extend(remedies.map(|remedy| format!("hint: {}", escape::line(remedy))));
    lines
}

/// How an admin lets in what counts no more.
fn adopt(view: &SyncView) -> Option<String> {
    let all: BTreeSet<_> = view
        .not_applied
        .iter()
        .filter_map(|one| one.adopt)
        .collect();
    let all: Vec<_> = all.iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| {
        format!(
            "hint: where that is honest, an admin lets it count: `hangar policy adopt {}`",
            all.join(" ")
        )
    })
}

/// Names of refs that are listed; `--json` has all.
const SHOWN: usize = 10;

fn not_applied(one: &NotAppliedView) -> String {
    let word = match one.kind {
        NotAppliedKind::Ref | NotAppliedKind::Locked => "not taken",
        NotAppliedKind::Pending => "pending",
        NotAppliedKind::Quarantined => "not believed",
        NotAppliedKind::Refused => "no effect",
    };
    let place = match (&one.name, &one.task, &one.commit) {
        (Some(name), _, _) => name.clone(),
        (None, Some(task), Some(commit)) => {
            format!("task {}, commit {}", task.short(), commit.short())
        }
        (None, Some(task), None) => format!("task {}", task.short()),
        (None, None, _) => String::new(),
    };
    let why = escape::line(&one.why);
    format!(
        "{word:<10} {}: {why}",
        paint(Label::Attention, escape::line(&place))
    )
}
