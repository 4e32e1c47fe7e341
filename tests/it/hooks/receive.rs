//! `pre-receive`: each attack on refs of hangar is refused and named, and what is honest passes.

use super::server::{ALL, Server, hangar};
use super::{path, said};
use crate::common::git::{commit_all, git, git_input};
use crate::common::hub::{Hub, task_ref};
use crate::verify::forge::Forged;
use hangar::model::manifest::Manifest;
use hangar::store::chain::Content;
use hangar::store::identity::Identity;
use std::fs;
use std::process::Stdio;

#[test]
fn an_empty_server_takes_the_first_policy_and_what_it_signs() {
    let server = Server::empty();
    let task = server.forged.events();
    let task = format!("{task}:{task}");
    server.push(&[&task]).refused(
        &server.forged.events(),
        "there is no policy here for it yet",
    );
    assert_eq!(server.refs(), "");
    server.push(&[ALL]).done();
    assert_eq!(server.refs().lines().count(), 6);
    // Later events, and nothing new at all.
    let id = server
        .forged
        .another("KAN-81", &crate::verify::plot::Plot::default());
    server.push(&[ALL]).done();
    assert!(server.refs().contains(id.as_str()));
    server.push(&[ALL]).done();
}

#[test]
fn a_server_can_be_told_which_repository_it_is_for() {
    let server = Server::empty();
    let set = |value: &str| git(&server.hub, &["config", "hangar.repo", value]);
    set(&format!("sha256:{}", "0".repeat(64)));
    server.push(&[ALL]).refused(
        "refs/hangar/policy",
        "it is the policy of the repository sha256:",
    );
    assert_eq!(server.refs(), "");
    set(&server.forged.store().policy.repo().to_string());
    server.push(&[ALL]).done();
    // Also where a policy is there already.
    set(&format!("sha256:{}", "0".repeat(64)));
    server
        .forged
        .git(&["update-ref", "refs/hangar/policy-proposals/x", "main"]);
    let said = server.push(&[ALL]);
    assert!(
        !said.done && said.text.contains("hangar.repo"),
        "{}",
        said.text
    );
    set("nonsense");
    let said = server.push(&[ALL]);
    assert!(said.text.contains("is no digest"), "{}", said.text);
}

#[test]
fn nothing_is_deleted_or_put_back() {
    let server = Server::full();
    let refs = server.refs();
    for (name, _) in server.forged.kinds() {
        let gone = format!(":{name}");
        server.push(&[&gone]).refused(&name, "is never deleted");
    }
    server
        .push(&["--delete", "refs/hangar/policy"])
        .refused("refs/hangar/policy", "is never deleted");
    let events = server.forged.events();
    let back = format!("+{events}~1:{events}");
    server.push(&[&back]).refused(&events, "it would lose");
    let replaced = format!("+main:{events}");
    server.push(&[&replaced]).refused(&events, "it would lose");
    // A mirror of a clone that has nothing.
    let dir = server.forged.world.dir.path();
    git(dir, &["clone", "-q", "hub.git", "plain"]);
    let mirror = said(&dir.join("plain"), &["push", "--mirror", "origin"]);
    for name in refs.lines().filter_map(|line| line.split(' ').next()) {
        if name.starts_with("refs/hangar/") {
            mirror.refused(name, "is never deleted");
        }
    }
    assert_eq!(server.refs(), refs);
}

#[test]
fn a_document_without_its_signature() {
    let server = Server::founded();
    let forged = &server.forged;
    for (name, kind) in forged.kinds() {
        let sig = format!("{kind}.sig");
        server.refuses(&name, "it is not signed", || {
            forged.rewrite_tip(&name, &[(&sig, None)]);
        });
        let other = forged.read(&forged.grades(), "grade.sig");
        let other = if kind == "grade" {
            forged.read(&forged.runs(), "run.sig")
        } else {
            other
        };
        server.refuses(&name, "commit ", || {
            forged.rewrite_tip(&name, &[(&sig, Some(&other))]);
        });
        let mut bytes = forged.read(&name, &format!("{kind}.toml"));
        bytes.push(b'\n');
        server.refuses(&name, "commit ", || {
            forged.rewrite_tip(&name, &[(&format!("{kind}.toml"), Some(&bytes))]);
        });
        server.push(&[&format!("{name}:{name}")]).done();
    }
}

#[test]
fn a_document_that_somebody_put_on_top() {
    let server = Server::full();
    for (name, kind) in server.forged.kinds() {
        let toml = format!("{kind}.toml");
        server.refuses(&name, "it is not signed", || {
            server.forged.append(&name, &[(&toml, b"format = 1\n")]);
        });
        server.refuses(&name, "commit ", || {
            server.forged.append(&name, &[("junk", b"x")]);
        });
    }
}

#[test]
fn what_lies_beside_a_document_is_what_it_names() {
    let server = Server::founded();
    let forged = &server.forged;
    let (sealed, runs, events) = (forged.sealed(), forged.runs(), forged.events());
    let misnamed = "0".repeat(64);
    for name in [misnamed.as_str(), "more"] {
        server.refuses(&events, "has no place there", || {
            forged.rewrite_tip(&events, &[(name, Some(b"x"))]);
        });
    }
    server.push(&[&format!("{events}:{events}")]).done();
    server.refuses(&sealed, "is not the ciphertext that it names", || {
        forged.rewrite_tip(&sealed, &[("sealed.age", Some(b"x"))]);
    });
    server.refuses(&sealed, "no sealed.age", || {
        forged.rewrite_tip(&sealed, &[("sealed.age", None)]);
    });
    server.refuses(&runs, "is not the result that it names", || {
        let other = forged.git(&["rev-parse", "main^{tree}"]);
        let lines: Vec<_> = forged
            .git(&["ls-tree", &runs])
            .lines()
            .map(|line| {
                let (mode, name) = line.split_once('\t').unwrap();
                match name {
                    "result" => format!("040000 tree {other}\tresult"),
                    _ => format!("{mode}\t{name}"),
                }
            })
            .collect();
        let tree = git_input(&forged.dir(), &["mktree"], lines.join("\n").as_bytes());
        let commit = forged.git(&["commit-tree", &tree, "-m", "x"]);
        forged.git(&["update-ref", &runs, &commit]);
    });
    for (name, _) in &forged.kinds()[1..] {
        server.refuses(name, "`more` has no place there", || {
            forged.rewrite_tip(name, &[("more", Some(b"x"))]);
        });
    }
    server.push(&[ALL]).done();
}

#[test]
fn what_is_larger_than_the_format_allows() {
    let server = Server::founded();
    let forged = &server.forged;
    let large = vec![b'#'; (1 << 20) + 1];
    for (name, kind) in forged.kinds() {
        for (file, why) in [
            (format!("{kind}.toml"), "is larger than 1048576 bytes"),
            (format!("{kind}.sig"), "is larger than 8192 bytes"),
        ] {
            server.refuses(&name, why, || {
                forged.rewrite_tip(&name, &[(&file, Some(&large))]);
            });
        }
        server.push(&[&format!("{name}:{name}")]).done();
    }
    server.refuses("refs/hangar/policy", "is larger than 1048576 bytes", || {
        forged.append("refs/hangar/policy", &[("members.toml", &large)]);
    });
    server.push(&[ALL]).done();
}

/// Seals once more what is sealed, with the grader's own key.
fn seal_again(forged: &Forged, edit: impl FnOnce(&mut Manifest)) {
    let (store, host) = (forged.store(), forged.world.host());
    let dossier = forged.dossier();
    let seal = dossier.seals.last().unwrap();
    let sealed = seal.folder.file(&store.repo, "sealed.age").unwrap();
    let mut manifest = seal.value().clone();
    edit(&mut manifest);
    let grader = Identity::of(&store.policy, host.grader.signer()).unwrap();
    let more = vec![("sealed.age".into(), Content::File(sealed.unwrap()))];
    store
        .append_document(&forged.sealed(), &grader, &manifest, more, "x")
        .unwrap();
}

#[test]
fn a_sealed_version_that_takes_the_place_of_another() {
    let server = Server::full();
    let forged = &server.forged;
    let sealed = forged.sealed();
    server.refuses(&sealed, "version 1 is sealed already, in commit", || {
        seal_again(forged, |manifest| manifest.counts.tests += 1);
    });
    let first = forged.dossier().seals[0].digest();
    seal_again(forged, |manifest| {
        manifest.version = 2;
        manifest.previous = Some(first);
    });
    server.push(&[ALL]).done();
    // Two clones that sealed at the same time did nothing wrong: an approver decides.
    let (left, before) = (
        server.head(&sealed),
        forged.git(&["rev-parse", &format!("{sealed}~1")]),
    );
    forged.git(&["update-ref", &sealed, &before]);
    seal_again(forged, |manifest| {
        manifest.version = 2;
        manifest.previous = Some(first);
        manifest.counts.tests += 1;
    });
    let right = server.head(&sealed);
    let join = join(forged, &left, &right);
    forged.git(&["update-ref", &sealed, &join]);
    server.push(&[ALL]).done();
}

/// The join of two heads as hangar makes it.
pub(super) fn join(forged: &Forged, one: &str, two: &str) -> String {
    let repo = forged.world.store().repo;
    let id = |text: &str| text.parse().unwrap();
    let join = hangar::store::join::join(&repo, id(one), id(two)).unwrap();
    repo.sync_objects(&[join]).unwrap();
    join.to_string()
}

#[test]
fn commits_that_only_make_a_ref_longer() {
    let server = Server::full();
    let forged = &server.forged;
    let events = forged.events();
    let (head, before) = (
        server.head(&events),
        forged.git(&["rev-parse", &format!("{events}~1")]),
    );
    server.refuses(&events, "an empty commit that is no join", || {
        let join = join(forged, &head, &before);
        forged.git(&["update-ref", &events, &join]);
    });
    server.refuses(&events, "an empty commit that is no join", || {
        let tree = git_input(&forged.dir(), &["mktree"], b"");
        let empty = forged.git(&["commit-tree", &tree, "-p", &events, "-m", "x"]);
        forged.git(&["update-ref", &events, &empty]);
    });
}

#[test]
fn a_policy_that_its_holders_did_not_sign() {
    let server = Server::full();
    let forged = &server.forged;
    let name = "refs/hangar/policy";
    let rival = Forged::honest();
    let from = rival.dir().display().to_string();
    git(&forged.dir(), &["fetch", "-q", &from, name]);
    let other = forged.git(&["rev-parse", "FETCH_HEAD"]);
    server.refuses(name, "it would lose", || {
        forged.git(&["update-ref", name, &other]);
    });
    // A pusher who says that nothing is there: Git would refuse this ref alone, and other refs of the
    // push must not be judged by it.
    git(
        &forged.dir(),
        &["push", "-q", "origin", &format!("{other}:refs/heads/x")],
    );
    let lines = format!("{} {other} {name}\n", "0".repeat(40));
    hangar(&server.hub, &["hook", "pre-receive"], &lines).refused(name, "it would lose");
    // A version that nobody signed, and one that is no version.
    let members = forged.read(name, "members.toml");
    let root = forged.read(name, "root.toml");
    server.refuses(name, "version 1 has 0 of 1 needed signatures", || {
        forged.append(name, &[("root.toml", &root), ("members.toml", &members)]);
    });
    let text = String::from_utf8(members).unwrap();
    let digest = hangar::model::digest::Digest::of(text.as_bytes());
    let next = text.replacen(
        "version = 1\n",
        &format!("version = 2\nprevious = \"{digest}\"\n"),
        1,
    );
    server.refuses(name, "version 2 has 0 of 1 needed signatures", || {
        forged.append(
            name,
            &[("root.toml", &root), ("members.toml", next.as_bytes())],
        );
    });
    server.refuses(name, "lacks root.toml", || {
        forged.append(name, &[("members.toml", b"x")]);
    });
    // Not the join of rivals: what the other side holds is no policy.
    server.refuses(name, "`calc.sh` has no place there", || {
        let tree = forged.git(&["rev-parse", &format!("{name}^{{tree}}")]);
        let args = ["commit-tree", &tree, "-p", name, "-p", "main", "-m", "x"];
        let commit = forged.git(&args);
        forged.git(&["update-ref", name, &commit]);
    });
}

/// From before there was the hook.
#[test]
fn what_stands_in_place_of_the_policy_gives_way_to_the_policy_and_to_nothing_else() {
    let server = Server::full();
    let forged = &server.forged;
    let name = "refs/hangar/policy";
    let policy = server.head(name);
    let junk = |object: &str| git(&server.hub, &["update-ref", name, object]);
    let on_top = |file: &str| {
        let blob = git_input(&server.hub, &["hash-object", "-w", "--stdin"], b"x");
        let line = format!("100644 blob {blob}\t{file}\n");
        let tree = git_input(&server.hub, &["mktree"], line.as_bytes());
        git(
            &server.hub,
            &["commit-tree", &tree, "-p", &policy, "-m", "x"],
        )
    };
    let rival = Forged::honest();
    let from = rival.dir().display().to_string();
    git(&forged.dir(), &["fetch", "-q", &from, name]);
    let other = forged.git(&["rev-parse", "FETCH_HEAD"]);
    let foreign = format!("+{other}:{name}");
    for object in [
        on_top("README"),
        git_input(&server.hub, &["hash-object", "-w", "--stdin"], b"x"),
    ] {
        junk(&object);
        // A push that leaves it there, and one that says that something else is there.
        let main = forged.git(&["rev-parse", "main"]);
        let task = format!("refs/hangar/runs/{}", "b".repeat(52));
        assert!(!server.push(&[&format!("{main}:{task}")]).done);
        let lines = format!("{main} {policy} {name}\n{} {main} {task}\n", "0".repeat(40));
        assert!(!hangar(&server.hub, &["hook", "pre-receive"], &lines).done);
        server.push(&[&format!("+{name}:{name}")]).done();
        assert!(server.refs().contains(&format!("{name} {policy}")));
    }
    // Another repository's policy does not take the place of one that lies below, nor of what may be one.
    for file in ["README", "members.toml"] {
        junk(&on_top(file));
        let said = server.push(&[&foreign]);
        assert!(!said.done, "{}", said.text);
    }
    // Where the server knows which repository it is for, it never does.
    junk(&git_input(
        &server.hub,
        &["hash-object", "-w", "--stdin"],
        b"x",
    ));
    let wanted = forged.store().policy.repo().to_string();
    git(&server.hub, &["config", "hangar.repo", &wanted]);
    server
        .push(&[&foreign])
        .refused(name, "it is the policy of the repository");
    server.push(&[&format!("+{name}:{name}")]).done();
}

#[test]
fn names_that_are_no_refs_of_hangar_or_stand_in_their_way() {
    let server = Server::full();
    let events = server.forged.events();
    let id = server.forged.id.as_str();
    for (name, why) in [
        (
            "refs/hangar/goals/x".to_owned(),
            "no ref of hangar has this name",
        ),
        (
            "refs/hangar/tasks/x".into(),
            "no ref of hangar has this name",
        ),
        ("refs/hangar/HEAD".into(), "no ref of hangar has this name"),
        (
            "refs/HANGAR/policy".into(),
            "no ref of hangar has this name",
        ),
        (
            "refs/hangar/tasks/".to_owned() + &id.to_uppercase(),
            "no ref of hangar",
        ),
        (
            "refs/heads/hangar-state/policy".into(),
            "lies under refs/hangar/",
        ),
        (
            format!("refs/hangar/approvals/{id}-{0}-{0}", "0".repeat(64)),
            "another decision's name",
        ),
    ] {
        let from = if name.contains("approvals") {
            server.forged.approval()
        } else {
            events.clone()
        };
        server
            .push(&[&format!("{from}:{name}")])
            .refused(&name, why);
    }
    let ordinary = [
        "main:refs/heads/hangar-state",
        "main:refs/heads/hangar-states/policy",
    ];
    server.push(&ordinary).done();
}

#[test]
fn a_server_that_keeps_the_state_on_branches() {
    let server = Server::empty();
    server
        .push(&["refs/hangar/*:refs/heads/hangar-state/*"])
        .done();
    assert_eq!(server.refs().lines().count(), 6);
    let policy = "refs/heads/hangar-state/policy";
    server
        .push(&[&format!(":{policy}")])
        .refused(policy, "is never deleted");
    server
        .push(&["refs/hangar/policy"])
        .refused("refs/hangar/policy", "lies under refs/heads/hangar-state/");
    let other = "refs/heads/hangar-state/mine";
    server
        .push(&[&format!("main:{other}")])
        .refused(other, "no ref of hangar has this name");
    server.push(&["main:refs/heads/hangar-stated"]).done();
}

#[test]
fn a_repository_whose_objects_have_long_names() {
    let env = crate::common::TestEnv::new();
    let git = |dir: &std::path::Path, args: &[&str]| env.git(dir, args);
    for more in [&["repo"][..], &["--bare", "hub.git"]] {
        git(
            env.root(),
            &[&["init", "-q", "--object-format=sha256"], more].concat(),
        );
    }
    let (dir, hub) = (env.root().join("repo"), env.root().join("hub.git"));
    git(&dir, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&dir, &["remote", "add", "origin", hub.to_str().unwrap()]);
    env.hangar(&dir, &["init", "--yes", "--hooks"]).success();
    let install = ["hook", "pre-receive", "--install"];
    env.hangar_found(&hub, &install).success();
    env.hangar_found(&dir, &["sync"]).success();
    let policy = "refs/hangar/policy";
    let gone = format!(":{policy}");
    for push in [
        &["push", "origin", &gone][..],
        &["push", "--no-verify", "origin", &gone],
    ] {
        env.git_said(&dir, push).refused(policy, "is never deleted");
    }
    env.git_said(&dir, &["update-ref", "-d", policy])
        .refused(policy, "is never deleted");
}

#[test]
fn a_task_that_is_not_there_and_a_signer_without_the_right() {
    let server = Server::founded();
    let forged = &server.forged;
    let grades = forged.grades();
    server.refuses(&grades, "the task that it is about is not here", || {});
    server.push(&[&format!("{0}:{0}", forged.events())]).done();
    server.refuses(&grades, "had no right to sign a grade", || {
        let (store, host) = (forged.store(), forged.world.host());
        let worker = Identity::of(&store.policy, host.worker.signer()).unwrap();
        let mut grade = forged.dossier().grades[0].value().clone();
        grade.signer = worker.table(store.clock.now());
        store
            .append_document(&grades, &worker, &grade, Vec::new(), "x")
            .unwrap();
    });
    server.push(&[ALL]).done();
}

#[test]
fn ordinary_branches_are_not_looked_at_and_one_bad_ref_keeps_all_away() {
    let server = Server::full();
    let forged = &server.forged;
    server.push_without_hangar(&["main"]).done();
    fs::write(forged.dir().join("new"), "x").unwrap();
    commit_all(&forged.dir(), "new");
    let refs = server.refs();
    let said = server.push(&["main", ":refs/hangar/policy"]);
    said.refused("refs/hangar/policy", "is never deleted");
    assert_eq!(server.refs(), refs);
    // Nothing of a refused push stays.
    let new = forged.git(&["rev-parse", "main"]);
    let there = said_hub(&server, &["cat-file", "-e", &new]);
    assert!(!there.done);
    server.push(&["main"]).done();
}

fn said_hub(server: &Server, args: &[&str]) -> super::Said {
    said(&server.hub, args)
}

#[test]
fn a_server_without_a_hangar_on_its_path_takes_branches_only() {
    let server = Server::empty();
    server.push_without_hangar(&["main"]).done();
    let said = server.push_without_hangar(&["main:refs/heads/x", ALL]);
    assert!(
        !said.done && said.text.contains("the server has no hangar on PATH"),
        "{}",
        said.text
    );
    assert_eq!(server.refs().lines().count(), 1);
}

/// A hub that checks, with its first clone.
pub(super) fn guarded_hub() -> (Hub, std::path::PathBuf) {
    let (hub, first) = Hub::new();
    hub.env
        .hangar_found(&hub.bare, &["hook", "pre-receive", "--install"])
        .success();
    (hub, first)
}

#[test]
fn clones_that_sync_through_the_server_notice_nothing_of_it() {
    let (hub, first) = guarded_hub();
    let sync = |dir: &std::path::Path| hub.env.hangar_found(dir, &["sync", "--json"]);
    let task = hub.task(&first, "Shared");
    sync(&first).success();
    hub.env
        .git(hub.env.root(), &["clone", "-q", "hub.git", "second"]);
    let second = hub.env.root().join("second");
    hub.env.hangar_found(&second, &["init", "--yes"]).success();
    sync(&second).success();
    hub.edit(&first, &task, "From the first");
    hub.edit(&second, &task, "From the second");
    sync(&first).success();
    let joined = sync(&second).success().json();
    assert_eq!(joined["joined"], serde_json::json!([task_ref(&task)]));
    sync(&first).success();
    assert_eq!(hub.show(&first, &task), hub.show(&second, &task));
    let edit = ["policy", "edit", "--set", "max_rounds=1"];
    hub.env.hangar_found(&first, &edit).success();
    sync(&first).success();
    let there = hub
        .env
        .git(&hub.bare, &["rev-list", "--count", "refs/hangar/policy"]);
    assert_eq!(there, "2");
    // What one ref is refused for keeps the others from nothing.
    let other = hub.task(&first, "Other");
    let head = hub.env.git(&first, &["rev-parse", &task_ref(&task)]);
    let junk = hub.stranger(None, "event.toml", "x");
    hub.env
        .git(&first, &["fetch", "-q", hub.bare.to_str().unwrap(), &junk]);
    let tree = hub
        .env
        .git(&first, &["rev-parse", &format!("{junk}^{{tree}}")]);
    let junk = hub
        .env
        .git(&first, &["commit-tree", &tree, "-p", &head, "-m", "x"]);
    hub.env
        .git(&first, &["update-ref", &task_ref(&task), &junk]);
    let report = sync(&first).exits(7).json();
    assert_eq!(
        report["pushed"],
        serde_json::json!([task_ref(&other)]),
        "{report}"
    );
    assert!(
        report["not_pushed"]
            .as_str()
            .unwrap()
            .contains("pre-receive hook declined")
    );
}

#[test]
fn clones_that_push_at_the_same_time_all_arrive() {
    let (hub, first) = guarded_hub();
    let shared = hub.task(&first, "Shared");
    hub.env.hangar_found(&first, &["sync"]).success();
    let clones: Vec<_> = (0..3)
        .map(|number| {
            let name = format!("clone-{number}");
            hub.env
                .git(hub.env.root(), &["clone", "-q", "hub.git", &name]);
            let dir = hub.env.root().join(name);
            hub.env.hangar_found(&dir, &["init", "--yes"]).success();
            hub.env.hangar_found(&dir, &["sync"]).success();
            hub.edit(&dir, &shared, &format!("From {number}"));
            hub.task(&dir, &format!("Own {number}"));
            dir
        })
        .collect();
    let running: Vec<_> = clones
        .iter()
        .map(|dir| {
            hub.env
                .command(env!("CARGO_BIN_EXE_hangar"), dir)
                .env("PATH", path())
                .arg("sync")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    crate::common::all_end_well(running);
    for dir in &clones {
        hub.env.hangar_found(dir, &["sync"]).success();
    }
    let shows: Vec<_> = clones.iter().map(|dir| hub.show(dir, &shared)).collect();
    assert!(shows.windows(2).all(|two| two[0] == two[1]));
    let tasks = hub
        .env
        .git(&hub.bare, &["for-each-ref", "refs/hangar/tasks"]);
    assert_eq!(tasks.lines().count(), 4);
}
