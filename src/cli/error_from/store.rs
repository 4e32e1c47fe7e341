//! How errors of the store are shown: exit status and hints.

use crate::cli::{CliError, ExitStatus};
use crate::model::digest::Digest;
use crate::model::ids::Fingerprint;
use crate::model::task::Refusal;
use crate::store::Error;
use crate::store::tasks::MIN_PREFIX;
use crate::ui::escape;

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::Git(error) => error.into(),
            Error::File(error) => error.into(),
            Error::Sign(error) => error.into(),
            Error::Codec(_) => Self::of(ExitStatus::Usage, error),
            Error::NoPolicy => Self::of(ExitStatus::Missing, error).hint("run `hangar init`"),
            Error::PolicyGone { .. } => Self::of(ExitStatus::Missing, error)
                .hint("`hangar sync` brings it back from a remote that has it; by hand: `git fetch REMOTE refs/hangar/policy:refs/hangar/policy`"),
            Error::TwoPrefixes
            | Error::TwoPrefixesThere { .. }
            | Error::TwoStatesThere { .. }
            | Error::NoPolicyThere { .. }
            | Error::FoundedTwice { .. }
            | Error::OtherStateThere { .. } => elsewhere(error),
            Error::Policy(_) => Self::of(ExitStatus::Refused, error)
                .hint("look at it with `git log -p refs/hangar/policy`; fetch it again from a remote that you trust"),
            Error::Proposed(_) => Self::of(ExitStatus::Refused, error)
                .hint("nothing was changed; `hangar policy show` prints the version in force"),
            Error::SignedAlready { ref new_keys, digest, .. } => {
                let hint = signed_already(new_keys, digest);
                Self::of(ExitStatus::Refused, error).hint(hint)
            }
            Error::RivalPolicy { .. } => Self::of(ExitStatus::Refused, error)
                .hint("nothing was signed; `hangar policy show` shows what each of them changes")
                .hint("holders of root keys say which one stands: `hangar policy resolve DIGEST`"),
            Error::Pin(_) => Self::of(ExitStatus::Refused, error)
                .hint("nothing was changed. Where the remote still has the right policy, `git fetch REMOTE refs/hangar/policy:refs/hangar/policy` brings it (it moves forward only); else ask an admin which one is right"),
            Error::NoTask(ref name) => {
                let short = name.len() < MIN_PREFIX && name.bytes().all(|b| b.is_ascii_alphanumeric());
                let shown = Self::of(ExitStatus::Usage, error);
                let shown = if short {
                    shown.hint(format!("the beginning of an id has at least {MIN_PREFIX} characters"))
                } else {
                    shown
                };
                shown.hint("`hangar task list --all` lists every task")
            }
            Error::Ambiguous { ref candidates, .. } => {
                let hints: Vec<_> = candidates
                    .iter()
                    .map(|(id, title)| format!("{} {}", id.short(), escape::line(title)))
                    .collect();
                let error = Self::of(ExitStatus::Usage, error).hint("type more of the id:");
                hints.into_iter().fold(error, Self::hint)
            }
            Error::Refused(ref refusal) => {
                let status = of_refusal(refusal);
                let is_bare = matches!(refusal, Refusal::NoCriterion);
                let shown = Self::of(status, error);
                if is_bare {
                    shown.hint("`hangar task edit TASK --criterion TEXT` adds one")
                } else {
                    shown
                }
            }
            Error::NotAllowed { .. } => Self::of(ExitStatus::Refused, error)
                .hint("`hangar policy show` says who may do what"),
            Error::UnknownKey { .. } => Self::of(ExitStatus::Refused, error)
                .hint("`hangar init` prints the line by which an admin adds you; `hangar key list` shows your keys"),
            Error::LostRace(_) => {
                Self::of(ExitStatus::Held, error).hint("run the command again")
            }
            Error::ArbiterOffline { .. } => Self::of(ExitStatus::Missing, error)
                .hint("run it again without --offline"),
            Error::Arbiter { .. } => Self::of(ExitStatus::Trouble, error)
                .hint("claims and deliveries need it (`hangar policy show`); running it again is safe"),
            Error::Damaged { ref place, .. } => {
                let hint = format!("from a clone that is whole: take the object's file away, if it is there, then `git fetch --refetch CLONE '+{place}:{place}'`");
                Self::of(ExitStatus::Trouble, error)
                    .hint("`hangar verify --all` names every fault")
                    .hint(hint)
            }
            Error::NewerPolicy { version, .. } => Self::of(ExitStatus::Refused, error).hint(format!(
                "`hangar sync` in a clone that has version {version} brings it, then `hangar sync` here"
            )),
            Error::Document { .. } => Self::of(ExitStatus::Refused, error)
                .hint("`hangar verify` names every fault"),
        }
    }
}

/// A policy that lies in two places, or that a remote has in the place of ours.
fn elsewhere(error: Error) -> CliError {
    let hints: Vec<String> = match &error {
        Error::TwoPrefixes => vec![
            "where a move was interrupted: `hangar init --prefix hangar` (or `branches`) ends it".into(),
            "where they are two states: `hangar deinit` makes this clone forget both, and `hangar init` takes the one that the remote has and hangar.toml names".into(),
        ],
        Error::TwoPrefixesThere { .. } => vec![
            "nothing was changed; `hangar sync REMOTE --prefix hangar` (or `branches`), in a clone that has the policy, joins them there".into(),
        ],
        Error::TwoStatesThere { .. } => vec![
            "nothing was taken; ask an admin which one is right, and put it into hangar.toml: `[trust] repo = \"sha256:…\"`, then `hangar init` takes that one".into(),
        ],
        Error::NoPolicyThere { remote, name, .. } => vec![
            "`hangar sync` in a clone that has the policy puts it back there, where nothing signed is lost with that".into(),
            format!("look at it: `git fetch {remote} {name}`, then `git cat-file -p FETCH_HEAD`"),
        ],
        Error::FoundedTwice { remote, .. } => vec![
            "nothing was pushed: one of the two stays, agree on which; hangar.toml on the default branch has to name it".into(),
            format!("where that of `{remote}` stays: `hangar deinit` here (it says how hangar.toml gets out of the way of `git pull`), take the default branch of the code, then `hangar init`; tasks of this clone have to be made again"),
            "where the one here stays: whoever founded the other gives way, and whoever runs the remote takes its refs away".into(),
        ],
        _ => vec![
            "nothing was moved; look at it with `git ls-remote`, and take away what does not belong there".into(),
        ],
    };
    let refused = CliError::of(ExitStatus::Refused, error);
    hints.into_iter().fold(refused, CliError::hint)
}

/// What a version waits for that its signer has signed.
fn signed_already(new_keys: &[Fingerprint], digest: Digest) -> String {
    if new_keys.is_empty() {
        return "`hangar policy show` says who else can sign it".into();
    }
    let keys: Vec<_> = new_keys.iter().map(ToString::to_string).collect();
    format!(
        "it waits for {}: with that key as yours (`git config gpg.format ssh`, `git config user.signingKey NEWKEY.pub`) run `hangar policy sign {}`",
        keys.join(" or "),
        digest.short()
    )
}

/// A value that the format does not take is the caller's mistake; the rest is the task's rules.
const fn of_refusal(refusal: &Refusal) -> ExitStatus {
    match refusal {
        Refusal::Value(_) | Refusal::NoCriterion => ExitStatus::Usage,
        Refusal::Held(..) | Refusal::Lease(_) => ExitStatus::Held,
        Refusal::State { .. }
        | Refusal::Locked { .. }
        | Refusal::Creation
        | Refusal::Outweighed { .. }
        | Refusal::Followed { .. } => ExitStatus::Refused,
    }
}
