//! The bodies of `fuzz/` on a few inputs each time: seeds, seeds with a fault in them, and anything.

#[path = "../../fuzz/bodies.rs"]
#[expect(
    unreachable_pub,
    reason = "the targets of fuzz/ call them from outside"
)]
mod bodies;

use crate::docs::root;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use std::fs;

/// The seeds of a body.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let dir = root().join("fuzz/seeds").join(name);
    let mut files: Vec<_> = fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// A seed with one piece taken out, doubled, or overwritten.
fn bent(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let seed = prop::sample::select(seeds);
    let piece = prop::collection::vec(any::<u8>(), 0..12);
    let parts = (seed, any::<prop::sample::Index>(), 0..40_usize, piece);
    parts.prop_map(|(mut seed, at, length, piece)| {
        let start = at.index(seed.len() + 1);
        let end = (start + length).min(seed.len());
        seed.splice(start..end, piece);
        seed
    })
}

#[test]
fn no_body_fails_on_what_somebody_else_wrote() {
    for (name, body) in bodies::ALL {
        let seeds = seeds(name);
        for seed in &seeds {
            body(seed);
        }
        let config = Config {
            failure_persistence: None,
            ..Config::with_cases(24)
        };
        let any = prop::collection::vec(any::<u8>(), 0..300);
        let bytes = prop_oneof![3 => bent(seeds), 1 => any];
        let run = TestRunner::new(config).run(&bytes, |bytes| {
            body(&bytes);
            Ok(())
        });
        run.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
}

#[test]
fn every_body_is_a_target() {
    let text = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let targets: BTreeSet<&str> = manifest["bin"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin["name"].as_str().unwrap())
        .collect();
    let bodies: BTreeSet<&str> = bodies::ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(targets, bodies);
    for name in bodies {
        let target = root().join(format!("fuzz/targets/{name}.rs"));
        let text = fs::read_to_string(target).unwrap();
        assert!(
            text.contains(&format!("hangar_fuzz::{name}(bytes)")),
            "{name}"
        );
    }
}
