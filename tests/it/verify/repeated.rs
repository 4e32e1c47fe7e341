//! What somebody without a key pushes again: a document that is there already means nothing more, whatever
//! lies beside it, and wherever its commit stands.

use super::forge::Forged;
use hangar::flow::decide::{Look, decide};
use hangar::model::approval::Action;
use hangar::model::task::State;

impl Forged {
    /// Puts a tree that was pushed before on top of a ref, and once more beside all of it, where it is read
    /// first.
    fn repeat(&self, reference: &str, tree: &str) {
        let tip = self.git(&["rev-parse", reference]);
        let on_top = self.git(&["commit-tree", tree, "-m", "x", "-p", &tip]);
        let root = self.git(&["commit-tree", tree, "-m", "x"]);
        let empty = self.tree(&[]);
        let join = ["commit-tree", &empty, "-m", "x", "-p", &root, "-p", &on_top];
        let joined = self.git(&join);
        self.git(&["update-ref", reference, &joined]);
    }

    /// The tree of a commit of a ref without some of its files.
    fn without(&self, commit: &str, gone: impl Fn(&str) -> bool) -> String {
        let listing = self.git(&["ls-tree", commit]);
        let kept = listing
            .lines()
            .filter(|line| !gone(line.split('\t').nth(1).unwrap()));
        self.tree(&kept.map(str::to_owned).collect::<Vec<_>>())
    }
}

#[test]
fn a_document_that_is_pushed_again_counts_once() {
    let forged = Forged::honest();
    for (reference, _) in forged.kinds() {
        let commits = forged.git(&["rev-list", &reference]);
        for commit in commits.lines() {
            forged.repeat(&reference, &format!("{commit}^{{tree}}"));
        }
    }
    forged.task().is_yes();
    let dossier = forged.dossier();
    let counts = [
        dossier.seals.len(),
        dossier.decisions.len() + dossier.overruled.len(),
        dossier.runs.len(),
        dossier.grades.len(),
    ];
    assert_eq!(counts, [1; 4]);
}

#[test]
fn what_lies_beside_a_copy_takes_the_place_of_nothing() {
    let forged = Forged::honest();
    let junk = format!("100644 blob {}\tsealed.age", forged.blob(b"junk"));
    let of_tip = |reference: &str, name: &str| {
        let line = forged.git(&["ls-tree", reference, name]);
        assert!(!line.is_empty(), "{reference} {name}");
        line
    };
    let sealed = forged.sealed();
    let lines = ["manifest.toml", "manifest.sig"].map(|name| of_tip(&sealed, name));
    let tree = forged.tree(&[&lines[..], &[junk]].concat());
    forged.repeat(&sealed, &tree);
    forged.task().is_yes();
    // The approvals beside the event that used them, and the result beside its run.
    let events = forged.events();
    for commit in forged.git(&["rev-list", &events]).lines() {
        let tree = forged.without(commit, |name| name.len() == 64);
        forged.repeat(&events, &tree);
    }
    let runs = forged.runs();
    let tree = forged.without(&runs, |name| !name.starts_with("run."));
    forged.repeat(&runs, &tree);
    let answer = forged.task();
    answer.is_yes();
    assert_eq!(forged.dossier().seals.len(), 1);
}

#[test]
fn an_earlier_decision_that_is_pushed_again_takes_no_later_one_back() {
    let forged = Forged::honest();
    let (store, reference) = (forged.store(), forged.approval());
    let alice = forged.world.person(&store);
    let tree = || forged.git(&["rev-parse", &format!("{reference}^{{tree}}")]);
    let approved = tree();
    // As a clone decides that does not know of the delivery.
    let decided = |action: Action, reason: &str| {
        let mut dossier = forged.dossier();
        dossier.history.task.state = State::Working;
        let seal = dossier.seals[0].clone();
        let look = Look {
            seconds: None,
            files_opened: 1,
        };
        decide(&store, &dossier, &seal, &alice, action, reason, look).unwrap();
    };
    let stands = || {
        let dossier = forged.dossier();
        assert_eq!(dossier.decisions.len(), 1);
        dossier.decisions[0].value().action
    };
    decided(Action::Reject, "no");
    let rejected = tree();
    assert_eq!(stands(), Action::Reject);
    forged.repeat(&reference, &approved);
    assert_eq!(stands(), Action::Reject);
    forged.task().names("approval", "rejected this manifest");
    decided(Action::Approve, "");
    assert_eq!(stands(), Action::Approve);
    for tree in [&rejected, &approved, &forged.tree(&[])] {
        forged.repeat(&reference, tree);
        assert_eq!(stands(), Action::Approve);
    }
    forged.task().is_yes();
}
