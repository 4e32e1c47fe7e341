//! What a person is told to do next is what can be done next. Needs a sandbox.

use crate::cli_flow::Place;
use crate::common::{Ran, TestEnv, write};

const RIGHT: &str = "echo $(($1 - $2))\n";
const WRONG: &str = "echo $(($1 + $2))\n";

fn ran(place: &Place, args: &[&str]) -> Ran {
    place.env.hangar(&place.dir, args)
}

/// The task's own id as messages shorten it.
fn id(place: &Place) -> String {
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    task["id"].as_str().unwrap()[..8].to_owned()
}

/// A message, with its line breaks taken out, names this.
#[track_caller]
fn names(ran: &Ran, command: &str) {
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(command), "`{command}` is not named: {ran}");
}

#[test]
fn a_variable_that_cannot_be_used_is_refused_and_an_empty_one_is_none() {
    let env = TestEnv::new();
    for (name, value, says) in [
        (
            "HANGAR_NOW",
            "tomorrow",
            "HANGAR_NOW holds no RFC 3339 time",
        ),
        ("HANGAR_CONFIG", "config.toml", "must be an absolute path"),
    ] {
        let list = ["config", "list"];
        let bad = env
            .hangar_with(env.root(), &list, &[(name, value)], "")
            .exits(2);
        assert!(bad.stderr.contains(says), "{bad}");
    }
}

#[test]
fn a_task_without_criteria_says_how_one_is_added() {
    let place = Place::new();
    let new = ["task", "new", "Bare", "--key", "KAN-2"];
    ran(&place, &new).success();
    let refused = ran(&place, &["task", "enqueue", "KAN-2"]).exits(2);
    names(&refused, "hangar task edit TASK --criterion TEXT");
    let edit = ["task", "edit", "KAN-2", "--criterion", "it prints 2"];
    ran(&place, &edit).success();
    ran(&place, &["task", "enqueue", "KAN-2"]).success();
}

#[test]
fn an_open_task_is_not_retried_and_a_settled_one_takes_no_more_tests() {
    let place = Place::new();
    let id = id(&place);
    let refused = ran(&place, &["task", "retry", "KAN-1"]).exits(4);
    names(&refused, &format!("hangar run {id}"));
    place.seal();
    place.approve();
    let seal = [
        "seal",
        "KAN-1",
        "--from",
        "../hidden",
        "--map",
        "c1=tests/sub.sh",
    ];
    let settled = ran(&place, &seal).exits(4);
    names(&settled, &format!("hangar reject {id}"));
    place.commit(RIGHT);
    ran(&place, &["submit", "KAN-1"]).success();
    names(&ran(&place, &seal).exits(4), "hangar task new");
    names(
        &ran(&place, &["task", "retry", "KAN-1"]).exits(4),
        "hangar task new",
    );
    let card = ran(&place, &["review", "KAN-1", "--transcript"]).success();
    names(&card, "nothing left to decide");
    names(&card, "a person wrote these tests");
    assert!(!card.stdout.contains("hangar approve"), "{card}");
    let shown = ran(&place, &["task", "show", "KAN-1"]).success();
    names(&shown, &format!("hangar verify {id}"));
}

#[test]
fn a_grade_alone_delivers_nothing_and_says_what_does() {
    let place = Place::new();
    let id = id(&place);
    place.seal();
    place.approve();
    names(
        &ran(&place, &["deliver", "KAN-1"]).exits(4),
        "no accepted result",
    );
    place.commit(RIGHT);
    ran(&place, &["grade", "KAN-1"]).success();
    let refused = ran(&place, &["deliver", "KAN-1"]).exits(4);
    names(&refused, &format!("hangar submit {id} --rev REV"));
    let submitted = ["submit", "KAN-1", "--rev", "HEAD"];
    names(&ran(&place, &submitted).success(), "delivered");
    names(&ran(&place, &["deliver", "KAN-1"]).success(), "delivered");
}

#[test]
fn what_the_patch_leaves_out_and_takes_in_is_said() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit(RIGHT);
    let out = "the work tree has changes that are not in the patch";
    let graded = ran(&place, &["grade", "KAN-1"]).success();
    assert!(!graded.stderr.contains("the patch"), "{graded}");
    let new = place.dir.join("new.txt");
    write(&new, "not added\n");
    write(&place.dir.join("calc.sh"), WRONG);
    let graded = ran(&place, &["grade", "KAN-1"]).success();
    assert!(
        graded.stderr.contains(&format!("{out} (2 paths)")),
        "{graded}"
    );
    // Of another revision the work tree says nothing.
    let graded = ran(&place, &["grade", "KAN-1", "--rev", "HEAD~1"]).exits(1);
    assert!(!graded.stderr.contains(out), "{graded}");
    place.commit("echo $(( $1 - $2 ))\n");
    place.env.git(
        &place.dir,
        &["commit", "-q", "--allow-empty", "-m", "main moved on"],
    );
    let submitted = ran(&place, &["submit", "KAN-1"]).success();
    assert!(
        submitted.stderr.contains(&format!("{out} (1 path)")),
        "{submitted}"
    );
    assert!(
        submitted.stderr.contains("takes in 3 commits"),
        "{submitted}"
    );
}

#[test]
fn a_retried_task_shows_no_grade_that_was_set_aside() {
    let place = Place::new();
    let id = id(&place);
    place.seal();
    place.approve();
    place.commit(WRONG);
    let submitted = ran(&place, &["submit", "KAN-1"]).exits(1);
    names(&submitted, "not accepted");
    ran(&place, &["task", "cancel", "KAN-1"]).success();
    let shown = ran(&place, &["task", "show", "KAN-1"]).success();
    names(&shown, &format!("Next: hangar task retry {id}"));
    let retry = ["task", "retry", "KAN-1", "--from", "awaiting-approval"];
    ran(&place, &retry).success();
    let waits = ran(&place, &["run", "KAN-1"]).exits(6);
    assert!(!waits.stdout.contains("grade "), "{waits}");
}

#[test]
fn hidden_tests_are_not_published_in_an_agent_s_environment() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit(RIGHT);
    ran(&place, &["submit", "KAN-1"]).success();
    let publish = ["sealed", "publish", "KAN-1"];
    for name in ["CLAUDECODE", "AI_AGENT"] {
        let vars = [(name, "1")];
        let refused = place
            .env
            .hangar_with(&place.dir, &publish, &vars, "")
            .exits(4);
        names(&refused, "no agent decides");
    }
    ran(&place, &publish).success();
}

#[test]
fn a_branch_that_moved_on_is_kept_under_another_name() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.env.git(&place.dir, &["branch", "hangar/KAN-1"]);
    place.commit(RIGHT);
    let refused = ran(&place, &["submit", "KAN-1"]).exits(4);
    let command = "git branch -m hangar/KAN-1 ";
    names(&refused, command);
    place
        .env
        .git(&place.dir, &["branch", "-m", "hangar/KAN-1", "mine"]);
    names(&ran(&place, &["submit", "KAN-1"]).success(), "delivered");
}

#[test]
fn a_branch_that_somebody_deleted_is_put_back() {
    let place = Place::new();
    let id = id(&place);
    place.seal();
    place.approve();
    place.commit(RIGHT);
    ran(&place, &["submit", "KAN-1"]).success();
    let commit = place.env.git(&place.dir, &["rev-parse", "hangar/KAN-1"]);
    let delete = ["branch", "-D", "hangar/KAN-1"];
    place.env.git(&place.dir, &delete);
    let gone = ran(&place, &["run", "KAN-1"]).success();
    names(&gone, "(that branch is not in this clone)");
    names(&gone, &format!("hangar deliver {id}"));
    ran(&place, &["deliver", "KAN-1"]).success();
    let back = place.env.git(&place.dir, &["rev-parse", "hangar/KAN-1"]);
    assert_eq!(back, commit);
    // Where the commit is not there either, somebody else has it.
    place.env.git(&place.dir, &delete);
    let expire = ["reflog", "expire", "--expire=now", "--all"];
    place.env.git(&place.dir, &expire);
    place.env.git(&place.dir, &["gc", "-q", "--prune=now"]);
    let lost = ran(&place, &["deliver", "KAN-1"]).exits(3);
    names(&lost, "git fetch REMOTE hangar/KAN-1:hangar/KAN-1");
}

#[test]
fn a_run_that_is_refused_leaves_the_draft_as_it_was() {
    let place = Place::new();
    let harness =
        |name: &str| format!("[harness.{name}]\nkind = \"command\"\ncommand = [\"/bin/{name}\"]\n");
    let text = format!(
        "{}{}[lanes]\nwriter = [\"true\"]\nimplementer = [\"false\"]\n",
        harness("true"),
        harness("false")
    );
    write(&place.env.home().join(".config/hangar/config.toml"), &text);
    place.env.git(&place.dir, &["branch", "hangar/KAN-1"]);
    let refused = ran(&place, &["run", "KAN-1"]).exits(4);
    names(&refused, "git branch -m hangar/KAN-1 ");
    let task = place.json("task-show", &["task", "show", "KAN-1"], 0);
    assert_eq!(task["state"], "draft");
}

#[test]
fn a_key_without_a_letter_for_a_branch_is_no_dead_end() {
    let place = Place::new();
    let new = ["task", "new", "T", "--plain", "--key", "\u{f6}"];
    ran(&place, &new).success();
    place.commit(RIGHT);
    let delivered = ran(&place, &["submit", "\u{f6}"]).success();
    names(&delivered, "delivered hangar/");
}

#[test]
fn a_configured_program_that_is_not_there_is_named() {
    let place = Place::new();
    let text = "[toolchain]\npython = \"/nowhere/python3\"\n";
    write(&place.env.home().join(".config/hangar/config.toml"), text);
    let toml = place.dir.join("hangar.toml");
    let exec = std::fs::read_to_string(&toml).unwrap();
    write(
        &toml,
        &exec.replace("framework = \"exec\"", "framework = \"pytest\""),
    );
    place.env.git(&place.dir, &["commit", "-qam", "pytest"]);
    let doctor = ran(&place, &["doctor"]).exits(3);
    names(&doctor, "`toolchain.python` names /nowhere/python3");
}

#[test]
fn a_grade_that_asks_for_more_than_was_measured_is_refused_before_a_test_runs() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit(RIGHT);
    let grade = ["grade", "KAN-1", "--require-trust"];
    let refused = ran(&place, &[&grade[..], &["isolated"]].concat()).exits(3);
    names(&refused, "needs a sandbox that holds `isolated`");
    names(&refused, "hangar doctor -v");
    // Where doctor knows a provider that holds it, that one is named.
    let doctor = ran(&place, &["doctor", "--json"]);
    let seen: serde_json::Value = serde_json::from_str(&doctor.stdout).unwrap();
    let providers = seen["providers"].as_array().unwrap();
    if let Some(one) = providers.iter().find(|one| one["trust"] == "isolated") {
        let name = one["name"].as_str().unwrap();
        names(&refused, &format!("--provider {name}"));
    }
    let refs = ["for-each-ref", "refs/hangar/grades"];
    assert_eq!(place.env.git(&place.dir, &refs), "");
    // What holds enough grades as ever.
    let graded = ran(&place, &[&grade[..], &["sealed"]].concat());
    graded.success();
    assert_ne!(place.env.git(&place.dir, &refs), "");
}

#[test]
fn after_too_many_rejections_the_retry_is_named() {
    let place = Place::new();
    let id = id(&place);
    let retry = format!("hangar task retry {id}");
    for round in 1..=3 {
        place.seal();
        ran(&place, &["review", "KAN-1"]).success();
        let rejected = ran(&place, &["reject", "KAN-1", "--reason", "too few"]).success();
        assert_eq!(rejected.stdout.contains(&retry), round == 3, "{rejected}");
    }
    names(&ran(&place, &["task", "show", "KAN-1"]).success(), &retry);
    names(&ran(&place, &["run", "KAN-1"]).exits(1), &retry);
    ran(&place, &["task", "retry", "KAN-1"]).success();
    place.seal();
}

#[test]
fn nothing_is_retried_from_a_delivery_that_cannot_be() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit(WRONG);
    ran(&place, &["submit", "KAN-1"]).exits(1);
    ran(&place, &["task", "cancel", "KAN-1"]).success();
    let from = |stage: &str| ran(&place, &["task", "retry", "KAN-1", "--from", stage]);
    let refused = from("delivering").exits(4);
    names(&refused, "no accepted result to deliver");
    names(&refused, "--from implementing");
    // It is still to be retried, from another stage.
    from("implementing").success();
    place.commit(RIGHT);
    ran(&place, &["grade", "KAN-1"]).success();
    ran(&place, &["submit", "KAN-1"]).success();
}

#[test]
fn a_submission_that_is_done_is_said_to_be_and_another_is_not_taken() {
    let place = Place::new();
    place.seal();
    place.approve();
    place.commit(RIGHT);
    ran(&place, &["submit", "KAN-1"]).success();
    let again = ran(&place, &["submit", "KAN-1"]).success();
    names(&again, "hangar/KAN-1");
    place.commit(WRONG);
    let other = ran(&place, &["submit", "KAN-1"]).exits(4);
    names(&other, "another patch was delivered already");
}

#[test]
fn a_patch_of_another_ground_is_told_to_be_rebased() {
    let place = Place::new();
    place.seal();
    place.approve();
    let patch = "diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n-echo 7\n+echo 2\n";
    write(&place.dir.join("fix.diff"), patch);
    let refused = ran(&place, &["grade", "KAN-1", "--patch", "fix.diff"]).exits(4);
    names(&refused, "does not apply");
    names(&refused, "git rebase");
}

#[test]
fn a_folder_that_is_not_there_is_called_so() {
    let env = TestEnv::new();
    let said = env
        .hangar(env.root(), &["-C", "nope", "task", "list"])
        .exits(2);
    names(&said, "there is no folder");
    let said = env.hangar(env.root(), &["task", "list"]).exits(3);
    names(&said, "not in a Git repository");
}

#[test]
fn a_patch_of_a_protected_path_is_told_what_allows_it() {
    let place = Place::new();
    let file = place.dir.join("hangar.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let protected = "protected = [\"locked.txt\"]";
    write(&file, &text.replace("protected = []", protected));
    write(&place.dir.join("locked.txt"), "a\n");
    place.env.commit(&place.dir, "protect a file");
    ran(&place, &["task", "edit", "KAN-1", "--base", "HEAD"]).success();
    place.seal();
    place.approve();
    write(&place.dir.join("locked.txt"), "b\n");
    place.commit(RIGHT);
    for command in ["grade", "submit"] {
        let refused = ran(&place, &[command, "KAN-1"]).exits(1);
        names(&refused, "locked.txt");
        names(&refused, "grader.may_touch");
    }
}

#[test]
fn init_puts_no_file_in_the_place_of_a_link() {
    for name in ["hangar.toml", "AGENTS.md"] {
        let env = TestEnv::new();
        let dir = env.repo("repo", &[("a.sh", "echo\n")]);
        let shared = env.root().join("shared");
        write(&shared, "");
        std::os::unix::fs::symlink(&shared, dir.join(name)).unwrap();
        let refused = env.hangar(&dir, &["init", "--agents"]).exits(2);
        names(&refused, &format!("`{name}` is a symbolic link"));
        assert!(dir.join(name).is_symlink());
        assert_eq!(std::fs::read_to_string(&shared).unwrap(), "");
        assert_eq!(env.git(&dir, &["for-each-ref", "refs/hangar"]), "");
    }
}
