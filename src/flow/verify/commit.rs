//! From the graded result to the commit that was delivered, and its branch.

use super::LinkName::Delivery as Link;
use super::{Case, Sheet, Unread, soften, trailers};
use crate::flow::Error;
use crate::flow::delivery::trailer;
use crate::model::task::{Delivery, Flow};

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) -> Result<(), Error> {
    let Some(delivery) = case.delivery() else {
        sheet.skip(Link, "not delivered yet");
        return Ok(());
    };
    let place = format!("commit {}", delivery.commit.short());
    let plain = case.dossier.history.task.flow == Flow::Plain;
    if plain && !case.store.repo.has_object(delivery.commit) {
        // Nobody vouches for more than that it was delivered: no reason to call it tampering.
        let name = delivery.branch.escape_debug();
        let away = format!(
            "{place} is not here: it lies on {name} of whoever delivered it, which is pushed and fetched with git"
        );
        sheet.skip(Link, away);
        return Ok(());
    }
    match soften(case.store.repo.read_commit(delivery.commit))? {
        Err(reason) => {
            let name = delivery.branch.escape_debug();
            let lies = format!(
                "{reason}; it lies on {name} of whoever delivered it, which is pushed and fetched with git"
            );
            let lies = Unread {
                text: lies,
                ..reason
            };
            sheet.unread(Link, &place, "", &lies);
        }
        Ok(commit) => {
            if let Some((base, result)) = super::runs::result(case) {
                if commit.tree != result.tree {
                    sheet.fault_at(
                        Link,
                        &place,
                        "its tree is not the result of the delivered run",
                    );
                }
                if commit.parents != [base] {
                    sheet.fault_at(
                        Link,
                        &place,
                        "it does not stand on the base of the delivered run",
                    );
                }
            }
            let text = String::from_utf8_lossy(&commit.message);
            for wrong in unlike(case, delivery, &text) {
                sheet.fault_at(Link, &place, wrong);
            }
        }
    }
    let branch = branch(case, delivery, sheet)?;
    let result = match delivery.grade {
        Some(_) => "the graded result",
        None => "the result",
    };
    sheet.close(Link, format!("{place} holds {result}; {branch}"));
    Ok(())
}

/// Trailers that do not name what the signed delivery names.
fn unlike(case: &Case<'_>, delivery: &Delivery, message: &str) -> Vec<String> {
    let differs = |(name, value): (&str, String)| {
        (trailer(message, name).as_deref() != Some(value.as_str()))
            .then(|| format!("its trailer {name} is not `{value}`"))
    };
    let signed = trailers::of_delivery(case.dossier, delivery).into_iter();
    signed.filter_map(differs).collect()
}

/// Where the branch is now. A branch may move on; the recorded result is what is verified.
fn branch(case: &Case<'_>, delivery: &Delivery, sheet: &mut Sheet) -> Result<String, Error> {
    let name = delivery.branch.escape_debug().to_string();
    let tip = match soften(case.store.repo.read_ref(&delivery.branch))? {
        Ok(tip) => tip,
        Err(reason) => {
            sheet.unread(Link, name, "", &reason);
            return Ok(String::new());
        }
    };
    Ok(match tip {
        Some(tip) if tip == delivery.commit => format!("{name} is there"),
        // Of two clones that delivered at once, one has its own result there.
        Some(tip)
            if !case
                .store
                .repo
                .is_ancestor(delivery.commit, tip)
                .unwrap_or(true) =>
        {
            sheet.note(format!(
                "{name} holds {} here, which does not rest on the recorded result {}; what is verified is the recorded one",
                tip.short(),
                delivery.commit.short()
            ));
            format!("{name} holds something else here")
        }
        Some(tip) => {
            sheet.note(format!(
                "{name} has moved on to {}; what is verified is the recorded result",
                tip.short()
            ));
            format!("{name} has moved on")
        }
        None => format!("{name} is not in this clone"),
    })
}
