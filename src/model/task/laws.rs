//! Laws of the fold, tried on random histories: of clones that work apart and now and then take each
//! other's events, and of events that nobody honest would write.

mod histories;

use super::*;
use crate::model::authority::may;
use histories::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Few, so that nobody waits; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: if asked { default.cases } else { 24 },
        max_global_rejects: 100_000,
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_fold_is_a_function_of_the_set_of_events(
        (mut events, _) in honest(),
        keys in vec(any::<u32>(), 50),
    ) {
        let before = said(&events);
        // Another order, and some of them twice.
        let twice: Vec<_> = events.iter().take(5).cloned().collect();
        events.extend(twice);
        let mut keyed: Vec<_> = keys.iter().cycle().zip(events).collect();
        keyed.sort_by_key(|(key, _)| **key);
        let events: Vec<_> = keyed.into_iter().map(|(_, made)| made).collect();
        prop_assert_eq!(said(&events), before);
    }

    #[test]
    fn a_fold_takes_anything(mut events in hostile(), keys in vec(any::<u32>(), 50)) {
        let before = said(&events);
        for made in &events {
            let Some(outcome) = before.3.get(&made.digest) else { continue };
            prop_assert_eq!(outcome.refused.len(), made.changes.len());
            for (change, refused) in made.changes.iter().zip(&outcome.refused) {
                let right = may(&actor(made.who), change.act(), &name(0));
                prop_assert!(right || refused.is_some(), "{} had effect", change.name());
            }
        }
        let mut keyed: Vec<_> = keys.iter().zip(events.drain(..)).collect();
        keyed.sort_by_key(|(key, _)| **key);
        events.extend(keyed.into_iter().map(|(_, made)| made));
        prop_assert_eq!(said(&events), before);
    }

    #[test]
    fn what_somebody_without_rights_adds_changes_nothing(
        (mut events, _) in honest(),
        picks in vec((0..10_000_usize, 0..40_usize), 1..5),
    ) {
        let before = task(&events);
        let honest = events.clone();
        for (number, (pick, on)) in picks.into_iter().enumerate() {
            let mut made = honest[on % honest.len()].clone();
            made.parents = vec![made.digest];
            made.digest = document(900_000 + number);
            made.creates = false;
            made.who = 4;
            let change = any_change(&before, pick % 3, pick);
            let is_word = matches!(change, Change::Comment { .. });
            made.changes = if is_word { vec![Change::Delete] } else { vec![change] };
            events.push(made);
        }
        prop_assert_eq!(task(&events), before);
    }

    #[test]
    fn every_join_of_the_same_events_is_the_same(
        (events, states) in honest(),
        at in (0..50_usize, 0..50_usize, 0..50_usize),
    ) {
        prop_assume!(!states.is_empty());
        let part = |at: usize| states[at % states.len()].clone();
        let join = |one: &[Made], two: &[Made]| [one, two].concat();
        let (one, two, three) = (part(at.0), part(at.1), part(at.2));
        prop_assert_eq!(said(&join(&one, &two)), said(&join(&two, &one)));
        prop_assert_eq!(said(&join(&one, &one)), said(&one));
        let left = join(&join(&one, &two), &three);
        prop_assert_eq!(said(&left), said(&join(&one, &join(&two, &three))));
        prop_assert_eq!(said(&join(&events, &one)), said(&events));
    }

    #[test]
    fn a_delivery_never_flips((events, states) in honest()) {
        let last = task(&events);
        for known in states {
            let then = task(&known);
            if then.state == State::Done {
                prop_assert_eq!(last.state, State::Done);
                prop_assert!(last.delivery.is_some());
                let deliver = |made: &&Made| matches!(made.changes[0], Change::Deliver { .. });
                if events.iter().filter(deliver).count() == 1 {
                    prop_assert_eq!(&last.delivery, &then.delivery);
                    prop_assert_eq!((&last.title, last.base), (&then.title, then.base));
                }
            }
        }
    }

    /// Every event of these histories was allowed to its author.
    #[test]
    fn the_more_careful_of_concurrent_moves_stands((events, _) in honest()) {
        let last = task(&events);
        let all = |is: fn(&Change) -> bool| -> Vec<&Made> {
            events.iter().filter(|made| is(&made.changes[0])).collect()
        };
        let retries = all(|change| matches!(change, Change::Retry { .. }));
        let standing = |is: fn(&Change) -> bool| {
            let undone = |made: &&Made| {
                retries.iter().any(|retry| has_seen(&events, retry, made))
            };
            all(is).into_iter().any(|made| !undone(&made))
        };
        let delivered = !all(|change| matches!(change, Change::Deliver { .. })).is_empty();
        let expected = if delivered {
            Some(State::Done)
        } else if standing(|change| matches!(change, Change::Cancel { .. })) {
            Some(State::Failed)
        } else if all(|change| change.power() > 3).is_empty() {
            if standing(|change| matches!(change, Change::Reject { .. })) {
                Some(State::Rejected)
            } else if all(|change| change.power() > 2).is_empty()
                && standing(|change| matches!(change, Change::Fail { .. }))
            {
                Some(State::Failed)
            } else {
                None
            }
        } else if all(|change| change.power() > 4).is_empty() {
            Some(State::Deleted)
        } else {
            None
        };
        if let Some(expected) = expected {
            prop_assert_eq!(last.state, expected);
        }
        if all(|change| change.power() > 0).is_empty() {
            prop_assert!(!last.state.is_terminal());
        }
    }

    /// Who holds a task is for the arbiter; where there is none, the order decides.
    #[test]
    fn where_a_task_stands_does_not_hang_on_digests((events, _) in honest(), salt in any::<u16>()) {
        let decided = |made: &&Made| {
            matches!(made.changes[0], Change::Claim { .. } | Change::Consume { .. })
        };
        let decided: Vec<_> = events.iter().filter(decided).collect();
        let in_a_row = |one: &Made, two: &Made| {
            one == two || has_seen(&events, one, two) || has_seen(&events, two, one)
        };
        prop_assume!(decided.iter().all(|one| decided.iter().all(|two| in_a_row(one, two))));
        let one = task(&events);
        let two = task(&renamed(&events, usize::from(salt)));
        prop_assert_eq!(one.state, two.state);
        prop_assert_eq!(&one.set_aside, &two.set_aside);
        prop_assert_eq!(&one.approved_patches, &two.approved_patches);
        let sorted = |mut list: Vec<String>| {
            list.sort();
            list
        };
        let texts = |task: &Task| {
            sorted(task.criteria.iter().map(|one| one.text.clone()).collect())
        };
        prop_assert_eq!(texts(&one), texts(&two));
        prop_assert_eq!(sorted(one.tags.clone()), sorted(two.tags.clone()));
        let said = |task: &Task| sorted(task.comments.iter().map(|one| one.text.clone()).collect());
        let words = said(&one).into_iter().filter(|text| text.starts_with("remark"));
        let other = said(&two).into_iter().filter(|text| text.starts_with("remark"));
        prop_assert!(words.eq(other));
    }

    #[test]
    fn one_who_sees_everything_gets_what_they_are_shown((events, _) in honest(), pick in 0..10_000_usize, who in 0..3_usize) {
        let known = folded(&events);
        let mut shown = known.task.unwrap();
        let choices = choices(&shown, who, pick);
        prop_assume!(!choices.is_empty());
        let change = choices[pick % choices.len()].clone();
        let made = Made {
            digest: document(999_999),
            parents: known.heads,
            creates: false,
            who,
            changes: vec![change.clone()],
        };
        let people = (name(who), key(who));
        let author = Author {
            principal: &people.0,
            key: &people.1,
            at: "2026-01-01T00:00:00Z",
            event: made.digest,
        };
        shown.apply(&change, author).unwrap();
        let all = [events, vec![made]].concat();
        prop_assert_eq!(task(&all), shown);
    }
}
