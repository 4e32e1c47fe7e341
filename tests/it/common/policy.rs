//! First versions of a policy. Also compiled into the benchmarks and into the library's own tests, so
//! that all of them found a repository in the same way.

use hangar::model::digest::Digest;
use hangar::model::policy::{
    Acceptance, Machine, MachineRole, Members, Person, Role, Root, RootKey, Thresholds,
};

/// `root.toml` with these root keys, by who holds them.
pub(crate) fn root(keys: &[(&str, &str)]) -> Root {
    let key = |(name, public): &(&str, &str)| RootKey {
        principal: name.parse().expect("it is a name"),
        public: (*public).to_owned(),
        recovery: false,
    };
    Root {
        format: 1,
        version: 1,
        nonce: "00".repeat(16),
        previous: None,
        thresholds: Thresholds {
            root: 1,
            members: 1,
        },
        acceptance: Acceptance::default(),
        key: keys.iter().map(key).collect(),
    }
}

/// `members.toml` with these people and machines.
pub(crate) fn members(person: Vec<Person>, machine: Vec<Machine>) -> Members {
    Members {
        format: 1,
        version: 1,
        previous: None,
        root: Digest::of(b""),
        arbiter: String::new(),
        archive_days: None,
        person,
        machine,
        reduced: Vec::new(),
        rival: Vec::new(),
    }
}

/// A person with one key, which decrypts too.
pub(crate) fn person(name: &str, role: Role, key: &str) -> Person {
    Person {
        name: name.parse().expect("it is a name"),
        role,
        keys: vec![key.to_owned()],
        recipients: vec![key.to_owned()],
    }
}

/// A machine of alice's.
pub(crate) fn machine(name: &str, role: MachineRole, key: &str) -> Machine {
    Machine {
        name: name.parse().expect("it is a name"),
        role,
        owner: "alice".parse().expect("it is a name"),
        public: key.to_owned(),
    }
}
