//! `hangar policy sign`

use super::told;
use crate::app::policy::ProposalView;
use crate::app::policy::change;
use crate::cli::{CliError, ExitStatus, context::Context};
use crate::ui::{PromptError, escape};
use clap::Args;

/// Sign a version that waits for signatures
///
/// Prints what it changes and asks for the first six characters of its digest, unless the digest
/// (at least twelve characters) was typed. A version that has every signature already is put in
/// force.
#[derive(Debug, Args)]
pub struct SignArgs {
    /// Digest of the version, or its beginning; the only one where none is given
    #[arg(value_name = "DIGEST")]
    pub digest: Option<String>,
}

pub(super) fn run(context: &Context, args: &SignArgs) -> Result<ExitStatus, CliError> {
    let here = context.here();
    let waits = change::waiting(&here, args.digest.as_deref())?;
    confirm(context, &waits, args.digest.as_deref())?;
    let ask = &mut context.passphrase();
    Ok(told::tell(
        context,
        &change::sign(&here, waits.digest, ask)?,
    ))
}

/// Shows what a version changes, and asks for its digest unless that was typed.
fn confirm(context: &Context, waits: &ProposalView, digest: Option<&str>) -> Result<(), CliError> {
    for change in &waits.changes {
        context.printer.notice(escape::line(change));
    }
    for left in &waits.left_out {
        context.printer.notice(told::left_out(left));
    }
    let hex = digest.map(|named| named.strip_prefix("sha256:").unwrap_or(named));
    if hex.is_some_and(|hex| hex.len() >= 12) {
        return Ok(());
    }
    let short = waits.digest.short();
    let question = format!("To sign {short}, type the first six characters of its digest:");
    let typed = context.prompts().typed(&question, &waits.digest.hex());
    if let Err(error @ PromptError::NoTerminal(_)) = typed {
        let hint = format!("read the changes, then: `hangar policy sign {short}`");
        return Err(CliError::of(ExitStatus::Waiting, error).hint(hint));
    }
    if typed? {
        return Ok(());
    }
    Err(CliError::new(
        ExitStatus::Refused,
        "these are not the first six characters; nothing was signed",
    ))
}
