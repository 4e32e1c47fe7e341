//! What a sandbox gives its programs and its caller.

use super::support::{Who, err, out, sh, spec, text, tried, visible};
use hangar::sandbox::spec::{End, Hit, Limits, Spec, Step};
use hangar::sandbox::{Cancel, Event, provider};
use std::time::Duration;

#[test]
pub(super) fn streams_and_status_come_back() {
    for who in Who::all() {
        let outcome = who.script("echo hello; echo oops >&2; exit 3");
        assert_eq!(outcome.steps[0].end, End::Exited(3));
        assert_eq!(out(&outcome), "hello\n");
        assert_eq!(err(&outcome), "oops\n");
        assert_eq!(outcome.steps[0].channel, None);
        // The kernel of gVisor has none.
        assert!(outcome.enforced.landlock > 0 || tried() == "gvisor");
        let outcome = who.script("kill -USR1 $$");
        assert_eq!(outcome.steps[0].end, End::Signalled(10));
    }
}

#[test]
pub(super) fn a_program_that_is_not_there_is_said_so() {
    let step = Step {
        argv: vec!["/usr/bin/no-such-program".into()],
        ..sh("")
    };
    let outcome = Who::Us
        .run(&Spec {
            steps: vec![step],
            ..spec()
        })
        .unwrap();
    assert_eq!(outcome.steps[0].end, End::NotStarted(2));
    let step = Step {
        dir: "/no/such/folder".into(),
        ..sh("")
    };
    let outcome = Who::Us
        .run(&Spec {
            steps: vec![step],
            ..spec()
        })
        .unwrap();
    assert_eq!(outcome.steps[0].end, End::NotStarted(2));
}

#[test]
pub(super) fn the_environment_is_what_the_step_names_and_nothing_else() {
    for who in Who::all() {
        let mut step = sh("");
        step.argv = vec!["/usr/bin/env".into()];
        step.env = [("ONLY".into(), "this".into())].into();
        let outcome = who
            .run(&Spec {
                steps: vec![step],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), "ONLY=this\n");
    }
}

#[test]
pub(super) fn the_machine_looks_neutral() {
    for who in Who::all() {
        let said =
            who.says("whoami; hostname; pwd; cat /etc/hostname; umask; ls -A /home /root 2>&1");
        assert!(
            said.starts_with("user\nlocalhost\n/\nlocalhost\n0022\n"),
            "{said}"
        );
        assert!(!said.contains("hangar"), "{said}");
    }
}

#[test]
pub(super) fn standard_input_and_the_channel_are_connected() {
    for who in Who::all() {
        let mut step = sh("cat; echo report >&3");
        step.stdin = b"input".to_vec();
        step.channel = true;
        let outcome = who
            .run(&Spec {
                steps: vec![step],
                ..spec()
            })
            .unwrap();
        assert_eq!(out(&outcome), "input");
        assert_eq!(outcome.steps[0].channel.as_deref(), Some(&b"report\n"[..]));
    }
    let outcome = Who::Us.script("cat; readlink /proc/self/fd/0");
    assert_eq!(out(&outcome), "/dev/null\n");
}

#[test]
pub(super) fn steps_share_files_but_no_processes() {
    for who in Who::all() {
        let mut steps = vec![
            sh("echo one > /tmp/file; (sleep 100; echo late > /tmp/late) & "),
            sh("cat /tmp/file; ls /tmp; ls -d /proc/[0-9]* | wc -l"),
        ];
        steps[0].channel = true;
        let outcome = who.run(&Spec { steps, ..spec() }).unwrap();
        assert_eq!(outcome.steps[0].channel.as_deref(), Some(&b""[..]));
        // The shell, `ls` and `wc`, and hangar's own; nothing of the first step.
        let said = text(&outcome.steps[1].stdout);
        let count: u32 = said
            .strip_prefix("one\nfile\n")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert!(count <= visible(), "{said}");
    }
}

#[test]
pub(super) fn the_rest_is_skipped_after_a_failure_when_asked() {
    for (stop, ran) in [(true, 1), (false, 2)] {
        let outcome = Who::Us
            .run(&Spec {
                steps: vec![sh("exit 1"), sh("exit 0")],
                stop_on_failure: stop,
                deadline: None,
                ..spec()
            })
            .unwrap();
        assert_eq!(outcome.steps.len(), ran);
    }
}

#[test]
pub(super) fn a_deadline_bounds_all_steps_together() {
    for who in Who::all() {
        let steps = vec![sh("exit 0"), sh("sleep 60"), sh("sleep 60")];
        let deadline = Some(std::time::Duration::from_millis(400));
        let outcome = who
            .run(&Spec {
                steps,
                deadline,
                ..spec()
            })
            .unwrap();
        let ends: Vec<_> = outcome.steps.iter().map(|step| step.end).collect();
        assert_eq!(ends, [End::Exited(0), End::TimedOut, End::TimedOut]);
    }
}

#[test]
pub(super) fn lines_are_shown_as_they_come() {
    let mut seen = Vec::new();
    let spec = Spec {
        steps: vec![sh("echo a; echo b >&2; sleep 0.05; printf c")],
        ..spec()
    };
    Who::Us
        .provider()
        .run(&spec, &Cancel::default(), &mut |event| seen.push(event))
        .unwrap();
    assert_eq!(seen.first(), Some(&Event::Started(0)));
    assert_eq!(seen.last(), Some(&Event::Ended(0)));
    for event in [
        Event::Stdout(b"a".to_vec()),
        Event::Stderr(b"b".to_vec()),
        Event::Stdout(b"c".to_vec()),
    ] {
        assert!(seen.contains(&event), "{seen:?}");
    }
}

#[test]
pub(super) fn output_is_cut_at_its_bound_and_the_program_goes_on() {
    for who in Who::all() {
        let mut step =
            sh("yes x | head -c 300000; yes y | head -c 300000 >&2; printf z >&3; exit 5");
        step.channel = true;
        let outcome = who
            .run(&Spec {
                limits: Limits {
                    output: Some(1000),
                    ..Limits::default()
                },
                steps: vec![step],
                ..spec()
            })
            .unwrap();
        let step = &outcome.steps[0];
        assert_eq!(step.end, End::Exited(5));
        assert_eq!((step.stdout.len(), step.stderr.len()), (1000, 1000));
        assert_eq!(step.channel.as_deref(), Some(&b"z"[..]));
        assert_eq!(step.hits, [Hit::Output]);
    }
}

#[test]
pub(super) fn a_large_channel_is_read_to_its_end() {
    let mut step = sh("head -c 3000000 /dev/zero >&3");
    step.channel = true;
    let spec = Spec {
        limits: Limits::default(),
        steps: vec![step],
        ..spec()
    };
    let outcome = Who::Us.run(&spec).unwrap();
    assert_eq!(
        outcome.steps[0].channel.as_ref().map(Vec::len),
        Some(3_000_000)
    );
}

#[test]
pub(super) fn a_step_that_stands_still_is_ended() {
    for who in Who::all() {
        let mut step = sh("echo a; sleep 0.1; echo b; sleep 100");
        step.idle = Some(Duration::from_millis(700));
        let outcome = who
            .run(&Spec {
                steps: vec![step],
                ..spec()
            })
            .unwrap();
        assert_eq!(outcome.steps[0].end, End::Idle);
        assert_eq!(out(&outcome), "a\nb\n");
    }
}

#[test]
pub(super) fn the_provider_works_here_by_its_own_account() {
    for who in Who::all() {
        who.provider().check().unwrap();
    }
}

#[test]
pub(super) fn providers_are_found_by_name() {
    let launcher = hangar::sandbox::Launcher::default();
    for name in ["linux", "bwrap", "podman", "docker", "gvisor", "none"] {
        assert_eq!(provider(name, &launcher).unwrap().name(), name);
    }
    assert!(provider("nonesuch", &launcher).is_none());
    // What can be configured is there, or refused with what to use instead.
    for name in hangar::config::user::PROVIDERS {
        let refused = hangar::sandbox::absent(name);
        assert!(
            provider(name, &launcher).is_some() != refused.is_some(),
            "{name}"
        );
        if let Some(refused) = refused {
            assert!(refused.to_string().contains("not part of this version"));
            assert!(refused.remedy.contains("`bwrap`"), "{refused:?}");
        }
    }
}
