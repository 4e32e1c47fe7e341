use crate::app::Error;
use crate::cli::{CliError, ExitStatus};

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error.into(),
            Error::Git(error) => error.into(),
            Error::Flow(error) => error.into(),
            Error::Sandbox(error) => error.into(),
            Error::Config(error) => error.into(),
            Error::Harness(error) => error.into(),
            Error::Discover(error) => error.into(),
            Error::Sign(error) => error.into(),
            Error::MachineKey(error) => error.into(),
            Error::File(error) => error.into(),
            Error::Codec(_) | Error::Invalid(_) => Self::of(ExitStatus::Usage, error),
            Error::KeyTaken { .. } => Self::of(ExitStatus::Usage, error)
                .hint("look at that task (`hangar task show KEY`), or give another key"),
            Error::Line { line, source } => Self::from(*source).within(&format!("line {line}")),
            Error::Read { .. } => Self::of(ExitStatus::Trouble, error),
            other => missing_or_refused(other),
        }
    }
}

/// Whoever wrote the commit that is checked out wrote the hangar.toml in it.
const PROPOSAL: &str =
    "where the checked-out commit is somebody's proposal: check out the default branch";

fn missing_or_refused(error: Error) -> CliError {
    match &error {
        Error::AgeIdentity { .. } => CliError::of(ExitStatus::Missing, error),
        Error::NoIdentity(_) => CliError::of(ExitStatus::Missing, error)
            .hint("run `hangar init` here: it makes an age identity and says what an admin has to add"),
        Error::NoKey { skipped, mend } => {
            let (skipped, mend) = (skipped.clone(), mend.clone());
            let mut error = CliError::of(ExitStatus::Missing, error);
            if let Some(mend) = mend {
                error = error.hint(format!("let nobody else read your key: `{mend}`"));
            }
            error = error.hint("make one with `hangar key new`, or load yours with `ssh-add`");
            skipped.into_iter().fold(error, |error, reason| {
                error.hint(format!("left out: {reason}"))
            })
        }
        Error::Unborn { remedies, .. } => {
            let remedies = remedies.clone();
            let error = CliError::of(ExitStatus::Missing, error);
            remedies.into_iter().fold(error, CliError::hint)
        }
        Error::KeyExists(_) => {
            CliError::of(ExitStatus::Refused, error).hint("name another file with --file")
        }
        Error::NoRemote(_) => CliError::of(ExitStatus::Missing, error)
            .hint("`git remote -v` lists them; `git remote add NAME ADDRESS` adds one"),
        Error::WhichRemote(_) => CliError::of(ExitStatus::Usage, error)
            .hint("name it (`hangar sync NAME`), or set it for this machine: `hangar config set remote.name NAME`"),
        Error::OtherRepository { .. } => CliError::of(ExitStatus::Usage, error)
            .hint("hangar takes the repository of the folder: unset the variable, and name the folder with -C"),
        Error::RemoteUnreachable { .. } => CliError::of(ExitStatus::Missing, error)
            .hint("try again when the remote can be reached")
            .hint("if this really is a new repository: `hangar init --new`"),
        Error::PolicyLost(_) => CliError::of(ExitStatus::Missing, error)
            .hint("`hangar sync REMOTE` brings it back from a remote that has it")
            .hint("if it is gone for good: `hangar deinit` makes this clone forget it, then `hangar init --new` founds another"),
        Error::PolicyElsewhere { .. } => CliError::of(ExitStatus::Missing, error)
            .hint(PROPOSAL)
            .hint("fetch it: `git fetch REMOTE refs/hangar/policy:refs/hangar/policy`, then `hangar init`")
            .hint("if it is gone for good: `hangar init --new` founds another and changes hangar.toml, which has to be committed then"),
        Error::OtherPolicy { .. } => CliError::of(ExitStatus::Refused, error)
            .hint("one of the two is not what this repository agreed on; ask an admin which one is right")
            .hint(PROPOSAL)
            .hint("where the refs are wrong and the remote is right by now: `hangar deinit`, then `hangar init`")
            .hint("where the refs are right: `hangar init --new` writes their policy into hangar.toml, which has to be committed then"),
        Error::OtherPolicyThere { remote, .. } => {
            let heal = format!(
                "where hangar.toml is right: take its policy from a clone that has it (`git fetch CLONE refs/hangar/policy:refs/hangar/policy`), then `hangar init`; whoever runs `{remote}` has to put it back there"
            );
            CliError::of(ExitStatus::Refused, error)
                .hint("one of the two is not what this repository agreed on; ask an admin which one is right")
                .hint(PROPOSAL)
                .hint(heal)
                .hint("where the remote is right: `hangar init --new` takes its policy and writes it into hangar.toml")
        }
        Error::NoDefaultBranch { remote, .. } => {
            let set = format!("nothing was pinned; ask the remote: `git remote set-head {remote} --auto`, then run it again");
            CliError::of(ExitStatus::Refused, error).hint(set)
        }
        Error::NamesUnreadable { .. } => CliError::of(ExitStatus::Refused, error)
            .hint("nothing was pinned; it goes on when that file is mended and landed")
            .hint("or mend hangar.toml in the work tree, so that `[trust] repo` names the policy that an admin tells you, then `hangar init` pins it"),
        Error::NoConfigAtBase { .. } => CliError::of(ExitStatus::Missing, error)
            .hint("commit the hangar.toml that `hangar init` wrote, or name another base with --base"),
        _ => CliError::of(ExitStatus::Trouble, error),
    }
}
