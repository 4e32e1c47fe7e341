//! Objects that are lost or damaged: the answer is no and names the ref, or, in a clone that was made
//! without them, that there is no answer. One broken task hides no other.

use super::forge::Forged;
use super::plot::Plot;
use serde_json::Value;
use std::fs;
use std::path::Path;

const POLICY: &str = "refs/hangar/policy";

/// Exit status, output as JSON, all the text.
type Said = (Option<i32>, Value, String);

fn hangar(forged: &Forged, dir: &Path, args: &[&str]) -> Said {
    let answer = forged.hangar(dir, args);
    (answer.code, answer.json, answer.text)
}

/// `hangar verify` says no, and names the ref.
#[track_caller]
fn names(forged: &Forged, subject: &str, place: &str, what: &str) {
    let (code, json, text) = hangar(forged, &forged.dir(), &["verify", subject]);
    assert_eq!(code, Some(1), "{subject} {text}");
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let mut faults = list(&json["faults"]);
    for task in list(&json["tasks"]) {
        faults.extend(list(&task["faults"]));
    }
    let fits = |fault: &Value| {
        fault["place"] == place
            && fault["what"]
                .as_str()
                .is_some_and(|said| said.contains(what))
    };
    assert!(faults.iter().any(fits), "{subject} {place} {what}: {text}");
}

/// Ways in which a file of an object goes bad.
const HARMS: [&str; 3] = ["lost", "emptied", "cut short"];

/// Does `check` with the object gone bad in each way, then puts it back.
fn harmed(forged: &Forged, object: &str, check: impl Fn(&str)) {
    let (folder, rest) = object.split_at(2);
    let path = forged.dir().join(".git/objects").join(folder).join(rest);
    let whole = fs::read(&path).unwrap();
    for harm in HARMS {
        fs::remove_file(&path).unwrap();
        match harm {
            "lost" => {}
            "emptied" => fs::write(&path, b"").unwrap(),
            _ => fs::write(&path, &whole[..whole.len() / 2]).unwrap(),
        }
        check(harm);
        let _ = fs::remove_file(&path);
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_policy_that_is_none_or_damaged_is_named() {
    let forged = Forged::honest();
    let everywhere = |what: &str| {
        for subject in [forged.id.as_str(), "KAN-80", "--all"] {
            names(&forged, subject, POLICY, what);
        }
    };
    let whole = forged.git(&["rev-parse", POLICY]);
    let blob = forged.git(&["rev-parse", "main:calc.sh"]);
    let file = forged.dir().join(".git").join(POLICY);
    fs::write(&file, format!("{blob}\n")).unwrap();
    everywhere("is a blob, not a commit");
    fs::write(&file, format!("{whole}\n")).unwrap();
    for revision in [POLICY, "refs/hangar/policy:members.toml"] {
        let object = forged.git(&["rev-parse", revision]);
        harmed(&forged, &object, |_| everywhere(&object));
    }
    forged.verify(&["--all"]).is_yes();
}

#[test]
fn a_damaged_task_is_named_by_each_of_its_names_and_hides_no_other() {
    let forged = Forged::honest();
    forged.another("KAN-81", &Plot::default());
    let (dir, events) = (forged.dir(), forged.events());
    let object = forged.git(&["rev-parse", &format!("{events}~2")]);
    let list = || hangar(&forged, &dir, &["task", "list", "-a"]);
    harmed(&forged, &object, |harm| {
        // What was read once is not asked for again.
        let _ = fs::remove_file(dir.join(".git/hangar/index.db"));
        for subject in [forged.id.as_str(), "KAN-80", "--all"] {
            names(&forged, subject, &events, &object);
        }
        let (code, list, text) = list();
        assert_eq!(code, Some(0), "{harm}: {text}");
        assert_eq!(list["tasks"][0]["key"], "KAN-81", "{harm}: {text}");
        assert_eq!(list["faults"][0]["id"], forged.id.as_str(), "{text}");
        let reason = list["faults"][0]["reason"].as_str().unwrap();
        assert!(reason.contains(&object), "{harm}: {text}");
        let (code, _, text) = hangar(&forged, &dir, &["task", "show", "KAN-81"]);
        assert_eq!(code, Some(0), "{harm}: {text}");
        let (code, _, text) = hangar(&forged, &dir, &["task", "show", "KAN-80"]);
        assert_eq!(code, Some(7), "{harm}: {text}");
        assert!(text.contains(&events), "{harm}: {text}");
    });
    // Once it is whole again, nothing of that is remembered.
    let (_, list, text) = list();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 2, "{text}");
    assert_eq!(list["faults"], Value::Null, "{text}");
}

#[test]
fn each_ref_of_a_task_is_named_where_its_document_is_damaged() {
    let forged = Forged::honest();
    for (place, name) in forged.kinds() {
        let object = forged.git(&["rev-parse", &format!("{place}:{name}.toml")]);
        harmed(&forged, &object, |_| {
            names(&forged, forged.id.as_str(), &place, &object);
        });
    }
    forged.task().is_yes();
}

#[test]
fn an_archive_that_is_none_is_named() {
    let forged = Forged::honest();
    let blob = forged.git(&["rev-parse", "main:calc.sh"]);
    let letter = &forged.id.as_str()[..1];
    let archive = format!("refs/hangar/archive/{letter}");
    let file = forged.dir().join(".git").join(&archive);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("{blob}\n")).unwrap();
    for subject in [forged.id.as_str(), &forged.id.as_str()[..8], "--all"] {
        names(&forged, subject, &archive, "is a blob, not a commit");
    }
}

#[test]
fn a_shallow_clone_says_that_it_cannot_tell_and_how_it_could() {
    let forged = Forged::honest();
    forged.git(&["merge", "-q", "--no-ff", "-m", "merge", "hangar/KAN-80"]);
    let root = forged.world.dir.path();
    let shallow = root.join("shallow");
    let url = format!("file://{}", forged.dir().display());
    let git = |args: &[&str]| crate::common::git::git(&shallow, args);
    let to = shallow.to_str().unwrap();
    forged.git(&["clone", "-q", "--depth", "1", &url, to]);
    git(&["fetch", "-q", "origin", "refs/hangar/*:refs/hangar/*"]);
    let id = forged.id.as_str();
    for subject in [id, "KAN-80", "--all"] {
        let (code, json, text) = hangar(&forged, &shallow, &["verify", subject]);
        assert_eq!(code, Some(3), "{subject} {text}");
        assert_eq!(json["accepted"], false, "{text}");
        let task = &json["tasks"][0];
        assert_eq!(task["faults"].as_array().unwrap().len(), 0, "{text}");
        assert!(text.contains("which is shallow"), "{text}");
        assert_eq!(json["remedies"][0], "git fetch --unshallow", "{text}");
    }
    let (code, _, text) = hangar(&forged, &shallow, &["verify", "HEAD"]);
    assert_eq!(code, Some(3), "{text}");
    // What is wrong is said all the same: of documents that are gone, and of damage.
    let grades = git(&["rev-parse", &forged.grades()]);
    let blob = git(&["rev-parse", "HEAD:calc.sh"]);
    git(&["update-ref", "-d", &forged.grades()]);
    let (code, _, text) = hangar(&forged, &shallow, &["verify", id]);
    assert_eq!(code, Some(1), "{text}");
    let file = shallow.join(".git").join(forged.grades());
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("{}\n", blob.trim())).unwrap();
    let (code, _, text) = hangar(&forged, &shallow, &["verify", id]);
    assert_eq!(code, Some(1), "{text}");
    fs::write(&file, format!("{}\n", grades.trim())).unwrap();
    // The way that was named leads there.
    let (_, json, _) = hangar(&forged, &shallow, &["verify", id]);
    for remedy in json["remedies"].as_array().unwrap() {
        let words: Vec<_> = remedy.as_str().unwrap().split(' ').skip(1).collect();
        git(&words);
    }
    let (code, _, text) = hangar(&forged, &shallow, &["verify", id]);
    assert_eq!(code, Some(0), "{text}");
}
