//! Versions of the policy that follow the same one: who may say which of them stands.

use super::forge::Forged;
use hangar::model::codec;
use hangar::model::digest::Digest;
use hangar::model::policy::{Members, Person, Role, Root};
use hangar::model::rival::Rival;
use hangar::store::draft::Draft;
use hangar::trust::{MachineKey, MachineRole};

/// A version, and the documents that make it.
#[derive(Clone)]
struct Version {
    root: Root,
    members: Members,
    digest: Digest,
}

/// alice, with the root key, and bob, an admin, each made a version that the other had not seen.
struct Divided {
    forged: Forged,
    bob: MachineKey,
    before: Version,
    alices: Version,
    bobs: Version,
}

impl Divided {
    fn new() -> Self {
        let forged = Forged::honest();
        let dir = forged.world.dir.path().join("bob");
        let bob = MachineKey::load_or_create(&dir, MachineRole::Worker).unwrap();
        let first = {
            let store = forged.store();
            let newest = store.policy.newest();
            Version {
                root: newest.root.clone(),
                members: newest.members.clone(),
                digest: newest.reference.digest,
            }
        };
        let mut divided = Self {
            before: first.clone(),
            alices: first.clone(),
            bobs: first.clone(),
            forged,
            bob,
        };
        let admin = |members: &mut Members| {
            let person = Person {
                name: "bob".parse().unwrap(),
                role: Role::Admin,
                keys: vec![divided.bob.public().as_str().to_owned()],
                recipients: Vec::new(),
            };
            members.person.push(person);
        };
        divided.before = divided.follow(&first, "alice", &[], admin);
        let days = |days| move |members: &mut Members| members.archive_days = Some(days);
        divided.alices = divided.follow(&divided.before, "alice", &[], days(10));
        divided.bobs = divided.follow(&divided.before, "bob", &[], days(20));
        divided
    }

    /// Puts a version on the ref that follows another, signed by one person.
    fn follow(
        &self,
        before: &Version,
        by: &str,
        lists: &[&[u8]],
        edit: impl FnOnce(&mut Members),
    ) -> Version {
        let mut new = before.clone();
        new.members.version += 1;
        new.members.previous = Some(before.digest);
        edit(&mut new.members);
        let members = codec::encode(&new.members).unwrap();
        new.digest = codec::digest(&members);
        let mut draft = Draft::unsigned(codec::encode(&new.root).unwrap(), members);
        let signer = match by {
            "alice" => self.forged.world.person.signer(),
            _ => self.bob.signer(),
        };
        draft.sign_members(signer).unwrap();
        let folder = |files: Vec<(String, &[u8])>| {
            let line = |(name, bytes): (String, &[u8])| {
                format!("100644 blob {}\t{name}", self.forged.blob(bytes))
            };
            let lines: Vec<_> = files.into_iter().map(line).collect();
            self.forged.tree(&lines)
        };
        let signatures = draft.members_signatures.iter();
        let signatures = folder(
            signatures
                .map(|(name, one)| (name.clone(), &one[..]))
                .collect(),
        );
        let lists = lists.iter().map(|list| (Digest::of(list).hex(), *list));
        let tree = self.forged.tree(&[
            format!("040000 tree {}\taccepted", folder(lists.collect())),
            format!(
                "100644 blob {}\tmembers.toml",
                self.forged.blob(&draft.members)
            ),
            format!("040000 tree {signatures}\tmembers.sigs"),
            format!("100644 blob {}\troot.toml", self.forged.blob(&draft.root)),
        ]);
        let policy = "refs/hangar/policy";
        let commit = self
            .forged
            .git(&["commit-tree", &tree, "-p", policy, "-m", "x"]);
        self.forged.git(&["update-ref", policy, &commit]);
        new
    }

    /// The version that keeps one and sets another aside.
    fn resolve(&self, keep: &Version, aside: Digest, by: &str, lists: &[&[u8]]) -> Version {
        self.follow(keep, by, lists, |members| {
            members.rival.push(Rival {
                digest: aside,
                accepted: Digest::of(b""),
            });
        })
    }
}

#[test]
fn the_root_keys_keep_one_of_two_rivals() {
    for alices in [true, false] {
        let divided = Divided::new();
        let forged = &divided.forged;
        forged.verify(&["--all"]).names("policy", "rival versions");
        let (keep, aside) = if alices {
            (&divided.alices, &divided.bobs)
        } else {
            (&divided.bobs, &divided.alices)
        };
        let stands = divided.resolve(keep, aside.digest, "alice", &[b""]);
        assert_eq!(
            forged.store().policy.newest().reference.digest,
            stands.digest
        );
        forged.verify(&["--all"]).is_yes();
        forged.task().is_yes();
        // What follows the side that fell does not bring it back, nor does another at the same place.
        divided.follow(aside, "bob", &[], |members| members.archive_days = Some(1));
        divided.follow(&divided.before, "bob", &[], |members| {
            members.archive_days = Some(2);
        });
        assert_eq!(
            forged.store().policy.newest().reference.digest,
            stands.digest
        );
        forged.task().is_yes();
    }
}

#[test]
fn a_rival_that_nobody_with_a_say_set_aside() {
    let refused = |divided: &Divided, what: &str| {
        divided.forged.verify(&["--all"]).names("policy", what);
    };
    // An admin without a root key.
    let divided = Divided::new();
    divided.resolve(&divided.bobs, divided.alices.digest, "bob", &[b""]);
    refused(&divided, "by root keys");
    // Without the list of what counts all the same.
    let divided = Divided::new();
    divided.resolve(&divided.bobs, divided.alices.digest, "alice", &[]);
    refused(&divided, "list");
    // What it rests on, and what is not here.
    for aside in [None, Some(Digest::of(b"another"))] {
        let divided = Divided::new();
        let aside = aside.unwrap_or(divided.before.digest);
        divided.resolve(&divided.bobs, aside, "alice", &[b""]);
        refused(&divided, "no rival of it");
    }
    // The entry is there once and for all.
    let divided = Divided::new();
    let stands = divided.resolve(&divided.bobs, divided.alices.digest, "alice", &[b""]);
    divided.forged.task().is_yes();
    divided.follow(&stands, "alice", &[], |members| members.rival.clear());
    refused(&divided, "went");
}
