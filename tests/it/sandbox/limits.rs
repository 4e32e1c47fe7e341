//! Bombs: each ends within its bound, and an honest program beside it does not notice.

use super::support::{Who, err, out, sh, spec};
use hangar::sandbox::spec::{End, Hit, Limits, Outcome, Spec};
use std::time::Duration;

fn limited(who: Who, limits: Limits, script: &str) -> Outcome {
    who.run(&Spec {
        limits,
        steps: vec![sh(script)],
        ..spec()
    })
    .expect("the sandbox runs")
}

#[test]
pub(super) fn a_memory_bomb_is_killed_at_the_bound() {
    let limits = || Limits {
        memory: Some(64 << 20),
        ..Limits::default()
    };
    for who in Who::all() {
        // `tail` keeps in memory what it may have to print.
        let bomb = "head -c 150m /dev/zero | tail -c 140m > /dev/null; echo survived";
        let outcome = limited(who, limits(), bomb);
        if outcome.enforced.memory {
            assert!(outcome.steps[0].hits.contains(&Hit::Memory), "{outcome:?}");
        } else {
            // Without a control group the process itself is bounded, and the tree watched.
            assert!(err(&outcome).contains("memory exhausted"), "{outcome:?}");
        }
        let spread = "for i in 1 2 3; do (head -c 50m /dev/zero; sleep 1) | tail -c 45m > /dev/null & done; wait";
        let outcome = limited(who, limits(), spread);
        assert!(outcome.steps[0].hits.contains(&Hit::Memory), "{outcome:?}");
        let honest = "head -c 150m /dev/zero | tail -c 10m | wc -c";
        let outcome = limited(who, limits(), honest);
        assert_eq!(out(&outcome), "10485760\n");
        assert_eq!(outcome.steps[0].hits, []);
    }
}

#[test]
pub(super) fn a_fork_bomb_is_stopped_at_the_bound() {
    let limits = || Limits {
        processes: Some(20),
        ..Limits::default()
    };
    for who in Who::all() {
        let bomb = "i=0; while [ $i -lt 60 ]; do sleep 50 & i=$((i+1)); done; echo all";
        let outcome = limited(who, limits(), bomb);
        assert!(!out(&outcome).contains("all"), "{outcome:?}");
        let honest = "i=0; while [ $i -lt 10 ]; do sleep 0 & i=$((i+1)); done; wait; echo all";
        assert_eq!(out(&limited(who, limits(), honest)), "all\n");
    }
}

#[test]
pub(super) fn an_inode_bomb_is_stopped_at_the_bound() {
    let limits = || Limits {
        disk: Some(1 << 20),
        ..Limits::default()
    };
    for who in Who::all() {
        let bomb = "cd /tmp; mkdir d; cd d; seq 1 9000 | xargs touch 2>/dev/null || echo full";
        let outcome = limited(who, limits(), bomb);
        assert_eq!(out(&outcome), "full\n");
        assert!(outcome.steps[0].hits.contains(&Hit::Disk));
        let honest = "cd /tmp; seq 1 100 | xargs touch && ls | wc -l";
        assert_eq!(out(&limited(who, limits(), honest)), "100\n");
    }
}

#[test]
pub(super) fn a_large_file_is_refused() {
    let limits = || Limits {
        file: Some(1 << 20),
        ..Limits::default()
    };
    for who in Who::all() {
        let bomb = "exec head -c 2m /dev/zero > /tmp/f";
        let outcome = limited(who, limits(), bomb);
        assert_eq!(outcome.steps[0].end, End::Signalled(25));
        assert_eq!(outcome.steps[0].hits, [Hit::FileSize]);
        let honest = "head -c 1m /dev/zero > /tmp/f; head -c 1m /dev/zero > /tmp/g; echo fine";
        assert_eq!(out(&limited(who, limits(), honest)), "fine\n");
    }
}

#[test]
pub(super) fn a_flood_ends_with_the_clock() {
    for who in Who::all() {
        let mut step = sh("yes");
        step.timeout = Duration::from_millis(300);
        let outcome = who
            .run(&Spec {
                limits: Limits {
                    output: Some(10_000),
                    ..Limits::default()
                },
                steps: vec![step],
                ..spec()
            })
            .unwrap();
        assert_eq!(outcome.steps[0].end, End::TimedOut);
        assert_eq!(outcome.steps[0].stdout.len(), 10_000);
        assert_eq!(outcome.steps[0].hits, [Hit::Output]);
    }
}

#[test]
pub(super) fn descriptors_are_bounded() {
    for who in Who::all() {
        assert_eq!(who.says("ulimit -n"), "4096\n");
    }
}
