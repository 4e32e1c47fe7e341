//! What came for single tasks and contradicts what somebody relies on: nothing is to be done next there, so
//! no other page brings it up. Must not know what is told already.

use super::News;
use crate::app::Here;
use crate::app::acceptance::contradicting::{self, Says};
use crate::flow::stage;
use crate::model::digest::Digest;
use crate::model::ids::{Principal, TaskId};
use crate::model::task::State;
use crate::store::Store;
use crate::store::dossier::Dossier;

/// Most tasks that are looked at: the documents of each are read. Whoever fetches more has them all before
/// them for the first time.
const MOST: usize = 100;

/// What came for these tasks.
pub(super) fn of_tasks(here: &Here, store: &Store, tasks: &[TaskId]) -> News {
    if tasks.len() > MOST {
        return News::new();
    }
    let me = here.known_actor(store).ok().flatten();
    let me = me.map(|actor| actor.person().clone());
    let mut news = News::new();
    for id in tasks {
        // What can't be read is no news.
        let Ok(dossier) = store.dossier(id) else {
            continue;
        };
        news.extend(against_the_delivery(store, &dossier));
        if let Some(me) = &me {
            news.extend(overruled(&dossier, me));
        }
    }
    news
}

/// Documents that speak against what was delivered.
fn against_the_delivery(store: &Store, dossier: &Dossier) -> News {
    let task = &dossier.history.task;
    let mut news = News::new();
    if task.state != State::Done {
        return news;
    }
    for contradiction in stage::contradictions_now(store, dossier) {
        let documents = contradiction.documents().iter();
        let mut documents: Vec<_> = documents.map(Digest::to_string).collect();
        documents.sort();
        let says = contradicting::of(dossier, &contradiction);
        let says = says.iter().filter(|one| speaks_against(one.says));
        let says: Vec<_> = says
            .map(|one| format!("{} by {}", word(one.says), one.by))
            .collect();
        let short = task.id.short();
        let text = format!(
            "task {short} ({}) was delivered, and {} speaks against that: an approver says what stands (`hangar task show {short}` has the documents)",
            task.title,
            says.join(" and "),
        );
        news.insert(format!("late {}", documents.join(" ")), text);
    }
    news
}

const fn speaks_against(says: Says) -> bool {
    matches!(says, Says::Rejected | Says::NotAccepted)
}

const fn word(says: Says) -> &'static str {
    match says {
        Says::Approved => "an approval",
        Says::Rejected => "a rejection",
        Says::Accepted => "a grade that accepts",
        Says::NotAccepted => "a grade that does not accept",
        Says::Sealed => "a version of the tests",
    }
}

/// Documents of this person of which somebody else said that they do not stand.
fn overruled(dossier: &Dossier, me: &Principal) -> News {
    let short = dossier.id().short();
    let said = contradicting::adjudications(dossier).into_iter();
    let mut news = News::new();
    for said in said.filter(|said| said.in_force && said.by != *me) {
        let fell = stage::rivals(dossier, said.stands).into_iter();
        for document in fell.filter(|document| dossier.is_aside(*document)) {
            let Some(own) = contradicting::one(dossier, document).filter(|one| one.by == *me)
            else {
                continue;
            };
            let text = format!(
                "{} said that {} of yours does not stand ({}), in task {short} ({}): {}",
                said.by,
                word(own.says),
                document.short(),
                dossier.history.task.title,
                said.reason,
            );
            news.insert(format!("overruled {document} {}", said.stands), text);
        }
    }
    news
}
