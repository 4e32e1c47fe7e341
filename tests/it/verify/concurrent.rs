//! Changes that people made without knowing of each other: what they come to, and whether the delivery
//! stands. The second verifier is compared on each, with the task that its fold makes.

use super::forge::{CONFIG, Forged};
use super::plot::Plot;
use crate::common::founded::create;
use crate::common::git::{git, git_input};
use crate::flow::world::World;
use hangar::model::authority::Act;
use hangar::model::digest::Digest;
use hangar::model::event::{Change, Criterion, Event};
use hangar::model::ids::{CriterionId, TaskId};
use hangar::model::object_id::ObjectId;
use hangar::model::task::{Flow, Stage, State};
use hangar::store::identity::Identity;

/// Who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Alice,
    Worker,
    Second,
}

type Move = (By, Change);

/// A task's events, written whatever the flow would say.
struct Scene<'a> {
    world: &'a World,
    id: &'a TaskId,
    written: u32,
}

impl<'a> Scene<'a> {
    const fn of(world: &'a World, id: &'a TaskId) -> Self {
        Self {
            world,
            id,
            written: 0,
        }
    }

    fn name(&self) -> String {
        format!("refs/hangar/tasks/{}", self.id)
    }

    fn tip(&self) -> String {
        git(&self.world.repo_dir(), &["rev-parse", &self.name()])
    }

    fn put_back(&self, tip: &str) {
        git(&self.world.repo_dir(), &["update-ref", &self.name(), tip]);
    }

    /// One event that has seen what the ref holds.
    fn write(&mut self, by: By, change: Vec<Change>) {
        let store = self.world.store();
        let (one, two) = (self.world.host(), self.world.second_host());
        let identity = match by {
            By::Alice => self.world.person(&store),
            By::Worker => Identity::of(&store.policy, one.worker.signer()).unwrap(),
            By::Second => Identity::of(&store.policy, two.worker.signer()).unwrap(),
        };
        self.written += 1;
        let event = Event {
            format: 1,
            repo: store.policy.repo(),
            task: Some(self.id.clone()),
            nonce: format!("{:032x}", self.written),
            parents: store.task(self.id).unwrap().heads,
            signer: identity.table(store.clock.now()),
            change,
        };
        store
            .append_document(&self.name(), &identity, &event, Vec::new(), "x")
            .unwrap();
    }

    /// Each side goes on from the same point without the others; then all of it is on the ref.
    fn apart(&mut self, sides: &mut [&mut dyn FnMut(&mut Self)]) {
        let start = self.tip();
        let mut tips = Vec::new();
        for side in sides {
            self.put_back(&start);
            side(self);
            tips.push(self.tip());
        }
        self.join(&tips);
    }

    fn join(&self, tips: &[String]) {
        let dir = self.world.repo_dir();
        let empty = git_input(&dir, &["mktree"], b"");
        let mut args = vec!["commit-tree", empty.as_str(), "-m", "join"];
        args.extend(tips.iter().flat_map(|tip| ["-p", tip.as_str()]));
        self.put_back(&git(&dir, &args));
    }
}

fn edit(title: Option<&str>, criteria: Option<&[(usize, &str)]>, tags: Option<&[&str]>) -> Change {
    let criterion = |(at, text): &(usize, &str)| Criterion {
        id: CriterionId::at(*at),
        text: (*text).to_owned(),
    };
    Change::Edit {
        title: title.map(str::to_owned),
        mandate: None,
        criteria: criteria.map(|list| list.iter().map(criterion).collect()),
        priority: None,
        tags: tags.map(|list| list.iter().map(|tag| (*tag).to_owned()).collect()),
        base: None,
    }
}

fn deliver(base: ObjectId, run: Digest) -> Change {
    Change::Deliver {
        branch: "refs/heads/x".into(),
        commit: base,
        run,
        grade: Some(run),
        manifest: Some(run),
    }
}

fn world() -> World {
    World::new(&[("calc.sh", "echo 0\n"), ("hangar.toml", CONFIG)])
}

fn draft(world: &World, key: &str, flow: Flow) -> TaskId {
    let store = world.store();
    let mut change = create(&store, key, "Subtract", &["5 3 prints 2"]);
    if let Change::Create { flow: own, .. } = &mut change {
        *own = flow;
    }
    store.create_task(&world.person(&store), change).unwrap()
}

#[test]
fn tests_for_what_two_clones_made_of_a_draft() {
    let world = world();
    let id = draft(&world, "KAN-80", Flow::TestFirst);
    let mut scene = Scene::of(&world, &id);
    // Both add a second criterion; one takes the first out, the other only moves it.
    scene.apart(&mut [
        &mut |side| {
            let list = [(0, "5 3 prints 2"), (1, "0 0 prints 0")];
            side.write(By::Alice, vec![edit(None, Some(&list), Some(&["a", "b"]))]);
        },
        &mut |side| {
            side.write(By::Alice, vec![edit(Some("Take away"), None, Some(&["c"]))]);
            let list = [(1, "1 1 prints 0"), (2, "5 3 prints 2")];
            side.write(By::Alice, vec![edit(None, Some(&list), None)]);
        },
    ]);
    let edited = world.store().task(&id).unwrap().task;
    assert_eq!(edited.criteria.len(), 3, "{edited:?}");
    scene.write(By::Alice, vec![Change::Enqueue]);
    let forged = Forged::of(world, id, &Plot::default());
    forged.task().is_yes();
}

/// A delivery, and beside it what each of these did without having seen it.
fn delivered_beside(sides: &[(By, Vec<Change>)]) -> Forged {
    let world = world();
    let id = world.task(&world.store(), "Subtract", &["5 3 prints 2"]);
    let forged = Forged::of(world, id, &Plot::default());
    let mut scene = Scene::of(&forged.world, &forged.id);
    let (after, name) = (scene.tip(), scene.name());
    let before = forged.git(&["rev-parse", &format!("{name}~1")]);
    let mut tips = vec![after];
    for (by, changes) in sides {
        scene.put_back(&before);
        scene.write(*by, changes.clone());
        tips.push(scene.tip());
    }
    scene.join(&tips);
    forged
}

#[test]
fn a_delivery_stands_whatever_is_done_beside_it() {
    let summary = || "no".to_owned();
    let end = |change| (By::Worker, vec![change]);
    for sides in [
        vec![(By::Alice, vec![Change::Cancel { reason: summary() }])],
        vec![end(Change::Reject { summary: summary() })],
        vec![
            end(Change::Fail { summary: summary() }),
            (By::Alice, vec![edit(Some("Another"), None, None)]),
        ],
        vec![
            (By::Alice, vec![Change::Cancel { reason: summary() }]),
            end(Change::Reject { summary: summary() }),
            (
                By::Second,
                vec![Change::Claim {
                    lease: "00".repeat(16),
                }],
            ),
        ],
    ] {
        let forged = delivered_beside(&sides);
        assert_eq!(forged.dossier().history.task.state, State::Done);
        forged.task().is_yes();
    }
}

/// A task that was delivered by somebody who had seen, in the end, what was done beside the work from its
/// first event or from its second on.
fn delivered_after(after: usize, change: Change) -> Forged {
    let world = world();
    let id = world.task(&world.store(), "Subtract", &["5 3 prints 2"]);
    let mut scene = Scene::of(&world, &id);
    let queued = scene.tip();
    if after == 1 {
        scene.put_back(&git(
            &world.repo_dir(),
            &["rev-parse", &format!("{queued}~1")],
        ));
    }
    scene.write(By::Alice, vec![change]);
    let beside = scene.tip();
    scene.put_back(&queued);
    let forged = Forged::of(world, id, &Plot::default());
    let mut scene = Scene::of(&forged.world, &forged.id);
    let dossier = forged.dossier();
    let delivery = dossier.history.records.last().unwrap().event.value();
    let before = forged.git(&["rev-parse", &format!("{}~1", scene.name())]);
    scene.join(&[before, beside]);
    scene.write(By::Worker, delivery.change.clone());
    forged
}

#[test]
fn what_was_done_beside_the_work_may_keep_it_from_being_delivered() {
    let text = || "Take care".to_owned();
    delivered_after(2, Change::Comment { text: text() })
        .task()
        .is_yes();
    let forged = delivered_after(2, Change::Cancel { reason: text() });
    assert_eq!(forged.dossier().history.task.state, State::Failed);
    assert_eq!(forged.task().code, Some(1));
    // An edit of the draft takes nothing from the work but its text.
    delivered_after(1, edit(None, None, Some(&["a"])))
        .task()
        .is_yes();
    let forged = delivered_after(1, edit(Some("Add"), None, None));
    assert_eq!(forged.dossier().history.task.state, State::Done);
    forged
        .task()
        .names("versions", "was not written for the text");
    // A deletion of the draft outweighs that it was put into the queue.
    let forged = delivered_after(1, Change::Delete);
    assert_eq!(forged.dossier().history.task.state, State::Deleted);
    assert_eq!(forged.task().code, Some(1));
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn criteria(&mut self) -> Vec<Criterion> {
        let texts = ["one", "two", "three", "four"];
        let mut at = 0;
        let kept = texts.iter().filter(|_| self.roll(2) == 0);
        kept.map(|text| {
            at += 1;
            Criterion {
                id: CriterionId::at(at - 1),
                text: (*text).to_owned(),
            }
        })
        .collect()
    }

    fn digest(&mut self) -> Digest {
        Digest::of(&[u8::try_from(self.roll(3)).unwrap()])
    }

    fn edit(&mut self, base: ObjectId) -> Change {
        let tags = ["a", "b", "c"].map(str::to_owned).into_iter();
        let some = |yes: usize| yes == 0;
        Change::Edit {
            title: some(self.roll(3)).then(|| format!("Title {}", self.roll(9))),
            mandate: some(self.roll(4)).then(|| format!("Do {}", self.roll(9))),
            criteria: some(self.roll(2)).then(|| self.criteria()),
            priority: some(self.roll(4)).then(|| u8::try_from(self.roll(11)).unwrap()),
            tags: some(self.roll(3)).then(|| tags.filter(|_| self.roll(2) == 0).collect()),
            base: some(self.roll(6)).then_some(base),
        }
    }

    fn change(&mut self, base: ObjectId) -> Change {
        let lease = format!("{:032x}", self.roll(2));
        let summary = String::new();
        match self.roll(19) {
            0 | 1 => Change::Enqueue,
            2 | 3 => Change::Claim { lease },
            4 => Change::Renew { lease },
            5 => Change::Release { lease },
            6 => Change::Stage {
                stage: Stage::Writing,
                documents: Vec::new(),
                note: String::new(),
            },
            7 => Change::Consume {
                manifest: self.digest(),
                approvals: vec![self.digest()],
            },
            8 => deliver(base, self.digest()),
            9 => Change::Fail { summary },
            10 => Change::Reject { summary },
            11 => Change::Cancel { reason: summary },
            12 | 13 => Change::Retry {
                from: Stage::Writing,
                set_aside: vec![self.digest()],
            },
            14 => Change::Adjudicate {
                stands: self.digest(),
                falls: vec![self.digest()],
                reason: summary,
            },
            15 => Change::Delete,
            _ => self.edit(base),
        }
    }

    /// Mostly by somebody who has the right to it.
    fn event(&mut self, scene: &mut Scene<'_>, base: ObjectId) {
        let changes: Vec<_> = (0..=self.roll(2)).map(|_| self.change(base)).collect();
        let by = match (changes[0].act(), self.roll(8)) {
            (_, 0) => By::Second,
            (Act::Work, _) | (_, 1) => By::Worker,
            _ => By::Alice,
        };
        scene.write(by, changes);
    }
}

/// Moves that two people can make at the same time: from which state on (as the events after the first), and
/// what.
fn moves(base: ObjectId) -> Vec<(Vec<Move>, Vec<Move>)> {
    let (one, two) = ("0".repeat(32), "1".repeat(32));
    let claim = |lease: &str| Change::Claim {
        lease: lease.to_owned(),
    };
    let (enqueue, summary) = ((By::Alice, Change::Enqueue), String::new);
    let cancel = Change::Cancel { reason: summary() };
    let retry = |byte| Change::Retry {
        from: Stage::Writing,
        set_aside: vec![Digest::of(&[byte])],
    };
    let list = [(0, "5 3 prints 2"), (1, "one")];
    let draft = vec![
        (By::Alice, edit(Some("Add"), Some(&list), Some(&["a"]))),
        (By::Alice, edit(None, Some(&[(1, "two")]), Some(&["b"]))),
        (By::Alice, edit(None, Some(&[]), Some(&[]))),
        enqueue.clone(),
        (By::Alice, Change::Delete),
        (By::Alice, cancel.clone()),
    ];
    let stage = Change::Stage {
        stage: Stage::Writing,
        documents: Vec::new(),
        note: String::new(),
    };
    let work = vec![
        (By::Second, claim(&two)),
        (By::Worker, Change::Renew { lease: one.clone() }),
        (By::Worker, Change::Release { lease: one.clone() }),
        (By::Worker, stage.clone()),
        (By::Worker, deliver(base, Digest::of(b"one"))),
        (By::Worker, deliver(base, Digest::of(b"two"))),
        (By::Worker, Change::Fail { summary: summary() }),
        (By::Worker, Change::Reject { summary: summary() }),
        (By::Alice, cancel.clone()),
        (By::Alice, edit(None, None, Some(&["c"]))),
    ];
    let ended = vec![
        (By::Alice, retry(1)),
        (By::Alice, retry(2)),
        (By::Alice, edit(Some("Again"), None, None)),
    ];
    let held = vec![enqueue.clone(), (By::Worker, claim(&one))];
    vec![
        (Vec::new(), draft),
        ([held.clone(), vec![(By::Worker, stage)]].concat(), work),
        (vec![enqueue, (By::Alice, cancel)], ended),
    ]
}

#[test]
#[ignore = "heavy: for the second verifier, which is asked about what each pair of moves comes to"]
fn of_each_pair_of_moves_both_verifiers_see_the_same_task() {
    let world = world();
    let mut last = None;
    let base = world.store().repo.head().unwrap().unwrap();
    for (before, moves) in moves(base) {
        for (at, one) in moves.iter().enumerate() {
            for two in &moves[at + 1..] {
                let id = draft(&world, "", Flow::TestFirst);
                let mut scene = Scene::of(&world, &id);
                for (by, change) in &before {
                    scene.write(*by, vec![change.clone()]);
                }
                let start = scene.tip();
                let tips = [one, two].map(|(by, change)| {
                    scene.put_back(&start);
                    scene.write(*by, vec![change.clone()]);
                    scene.tip()
                });
                scene.join(&tips);
                last = Some(id);
            }
        }
    }
    let id = last.unwrap();
    Forged { world, id }.verify(&["--all"]);
}

#[test]
#[ignore = "heavy: for the second verifier, which is asked about many histories"]
fn whatever_people_do_apart_both_verifiers_see_the_same_task() {
    let world = world();
    let base = world.store().repo.head().unwrap().unwrap();
    let mut dice = Dice(7);
    let mut states = std::collections::BTreeSet::new();
    let mut last = None;
    for number in 0..24 {
        let flow = [Flow::Plain, Flow::TestFirst][number % 2];
        let id = draft(&world, &format!("KAN-{number}"), flow);
        let mut scene = Scene::of(&world, &id);
        if number % 3 == 0 {
            let claim = Change::Claim {
                lease: "0".repeat(32),
            };
            scene.write(By::Alice, vec![Change::Enqueue]);
            scene.write(By::Worker, vec![claim]);
        }
        for _ in 0..2 {
            let start = scene.tip();
            let mut tips = Vec::new();
            for _ in 0..2 + dice.roll(2) {
                scene.put_back(&start);
                for _ in 0..=dice.roll(2) {
                    dice.event(&mut scene, base);
                }
                tips.push(scene.tip());
            }
            scene.join(&tips);
            dice.event(&mut scene, base);
        }
        states.insert(world.store().task(&id).unwrap().task.state.to_string());
        last = Some(id);
    }
    assert!(states.len() > 3, "{states:?}");
    let forged = Forged {
        world,
        id: last.unwrap(),
    };
    let answer = forged.verify(&["--all"]);
    assert_eq!(answer.json["tasks"].as_array().unwrap().len(), 24);
}
