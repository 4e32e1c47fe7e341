//! The provider `none`: steps run as plain processes of this user. It holds nothing.
//!
//! It is there for machines where nothing else works and for code that is trusted anyway. What it
//! can't do without weakening a promise it refuses: files from memory would touch the disk, a
//! scratch folder would be changed, a private pipe or a network of its own is not there.

use super::probe::{Probe, Probes};
use super::spec::{End, Hit, Mount, Network, Outcome, Spec, Step, StepOutcome};
use super::{Cancel, Error, Event, Provider, Unavailable};
use crate::base::process;

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The name in configuration and grades.
const NAME: &str = "none";
/// How often the clock and the cancellation are looked at.
const TICK: Duration = Duration::from_millis(20);

/// No isolation.
#[derive(Debug, Clone, Copy, Default)]
pub struct None;

impl Provider for None {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        NAME.to_owned()
    }

    fn check(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    fn run(
        &self,
        spec: &Spec,
        cancel: &Cancel,
        events: &mut dyn FnMut(Event),
    ) -> Result<Outcome, Error> {
        refuse(spec)?;
        let mut outcome = Outcome::default();
        let begun = Instant::now();
        for (index, step) in spec.steps.iter().enumerate() {
            events(Event::Started(index));
            let mut step = step.clone();
            if let Some(deadline) = spec.deadline {
                step.timeout = step.timeout.min(deadline.saturating_sub(begun.elapsed()));
            }
            let ended = run_step(&step, spec.limits.output, cancel, events)?;
            events(Event::Ended(index));
            let failed = ended.end != End::Exited(0);
            outcome.steps.push(ended);
            if failed && spec.stop_on_failure {
                break;
            }
        }
        Ok(outcome)
    }

    fn probe(&self, spec: &Spec, _cancel: &Cancel) -> Result<Probes, Error> {
        refuse(spec)?;
        Ok(Probes {
            provider: NAME.to_owned(),
            version: self.version(),
            swap_exposed: super::linux::swap_is_on(),
            results: [("isolation".to_owned(), Probe::open("there is none"))].into(),
        })
    }
}

fn refuse(spec: &Spec) -> Result<(), Error> {
    let moved = |mount: &Mount| match mount {
        Mount::ReadOnly { host, inside } | Mount::ReadWrite { host, inside } => host != inside,
        Mount::Scratch { .. } => true,
    };
    let what = [
        (!spec.files.is_empty(), "keep files in memory only"),
        (
            spec.mounts.iter().any(moved),
            "show a folder elsewhere or keep it unchanged",
        ),
        (spec.network != Network::None, "bridge a network"),
        (
            spec.steps.iter().any(|step| step.channel),
            "open a private channel",
        ),
        (
            !spec.hash_after.is_empty() || !spec.collect.is_empty(),
            "read back files after every process is dead",
        ),
    ];
    match what.into_iter().find(|(asked, _)| *asked) {
        Some((_, what)) => Err(Error::Unsupported {
            provider: NAME,
            what: what.to_owned(),
        }),
        Option::None => Ok(()),
    }
}

enum Piece {
    Bytes(bool, Vec<u8>),
    Closed,
}

fn run_step(
    step: &Step,
    limit: Option<u64>,
    cancel: &Cancel,
    events: &mut dyn FnMut(Event),
) -> Result<StepOutcome, Error> {
    let mut outcome = StepOutcome::default();
    let Some((program, args)) = step.argv.split_first() else {
        outcome.end = End::NotStarted(libc::EINVAL);
        return Ok(outcome);
    };
    let mut command = process::command(program.as_ref());
    command
        .args(args)
        .envs(&step.env)
        .current_dir(&step.dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = match process::spawn(&mut command) {
        Ok(child) => child,
        Err(error) => {
            outcome.end = End::NotStarted(error.raw_os_error().unwrap_or(libc::EIO));
            return Ok(outcome);
        }
    };
    let (sender, pieces) = mpsc::channel();
    feed(child.stdin.take(), step.stdin.clone());
    read(child.stdout.take(), false, sender.clone());
    read(child.stderr.take(), true, sender);
    let (started, mut moved, mut open) = (Instant::now(), Instant::now(), 2);
    let mut ended = Option::None;
    while open > 0 || ended.is_none() {
        if cancel.is_set() {
            process::kill_group(&mut child);
            return Err(Error::Interrupted);
        }
        match pieces.recv_timeout(TICK) {
            Ok(Piece::Closed) => open -= 1,
            Ok(Piece::Bytes(error, bytes)) => {
                moved = Instant::now();
                take(&mut outcome, error, &bytes, limit, events);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => open = 0,
        }
        ended = ended.or_else(|| finished(&mut child));
        // What it left behind may hold the streams open for ever.
        let late = started.elapsed() >= step.timeout;
        let idle = step.idle.is_some_and(|idle| moved.elapsed() >= idle);
        if ended.is_some() && open > 0 && moved.elapsed() > TICK * 5 {
            break;
        }
        if ended.is_none() && (late || idle) {
            ended = Some(if late { End::TimedOut } else { End::Idle });
            break;
        }
    }
    process::kill_group(&mut child);
    outcome.end = ended.unwrap_or_default();
    outcome.wall = started.elapsed();
    Ok(outcome)
}

fn finished(child: &mut Child) -> Option<End> {
    let status = child.try_wait().ok().flatten()?;
    Some(match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (_, signal) => End::Signalled(signal.unwrap_or(libc::SIGKILL)),
    })
}

fn take(
    outcome: &mut StepOutcome,
    error: bool,
    bytes: &[u8],
    limit: Option<u64>,
    events: &mut dyn FnMut(Event),
) {
    let kept = if error {
        &mut outcome.stderr
    } else {
        &mut outcome.stdout
    };
    let room = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .saturating_sub(kept.len())
    });
    let part = &bytes[..bytes.len().min(room)];
    if part.len() < bytes.len() && !outcome.hits.contains(&Hit::Output) {
        outcome.hits.push(Hit::Output);
    }
    kept.extend_from_slice(part);
    for line in part.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
        events(if error {
            Event::Stderr(line)
        } else {
            Event::Stdout(line)
        });
    }
}

fn feed(stdin: Option<impl std::io::Write + Send + 'static>, bytes: Vec<u8>) {
    thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input closes the pipe; that is its right.
            let _ = stdin.write_all(&bytes);
        }
    });
}

fn read(stream: Option<impl std::io::Read + Send + 'static>, error: bool, to: Sender<Piece>) {
    thread::spawn(move || {
        if let Some(mut stream) = stream {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read) = stream.read(&mut buffer) {
                if read == 0
                    || to
                        .send(Piece::Bytes(error, buffer[..read].to_vec()))
                        .is_err()
                {
                    break;
                }
            }
        }
        let _ = to.send(Piece::Closed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::redact::Secret;
    use crate::sandbox::spec::{LaidFile, Limits};
    use std::collections::BTreeMap;

    fn spec(script: &str) -> Spec {
        Spec {
            mounts: Vec::new(),
            files: Vec::new(),
            network: Network::None,
            limits: Limits {
                output: Some(100),
                ..Limits::default()
            },
            inner_domain: false,
            hash_after: Vec::new(),
            collect: Vec::new(),
            steps: vec![Step {
                argv: vec!["/bin/sh".into(), "-c".into(), script.into()],
                env: BTreeMap::new(),
                dir: "/".into(),
                stdin: b"in".to_vec(),
                channel: false,
                timeout: Duration::from_secs(20),
                idle: Option::None,
            }],
            stop_on_failure: false,
            deadline: Option::None,
        }
    }

    fn run(spec: &Spec) -> Result<Outcome, Error> {
        None.run(spec, &Cancel::default(), &mut |_| {})
    }

    #[test]
    fn a_step_runs_with_its_input_and_its_output_is_cut() {
        let outcome = run(&spec("cat; echo x >&2; exit 4")).unwrap();
        assert_eq!(outcome.steps[0].end, End::Exited(4));
        assert_eq!(outcome.steps[0].stdout, b"in");
        let outcome = run(&spec("yes | head -c 1000")).unwrap();
        assert_eq!(outcome.steps[0].stdout.len(), 100);
        assert_eq!(outcome.steps[0].hits, [Hit::Output]);
    }

    #[test]
    fn a_step_that_does_not_end_is_stopped() {
        let mut spec = spec("sleep 60");
        spec.steps[0].timeout = Duration::from_millis(50);
        assert_eq!(run(&spec).unwrap().steps[0].end, End::TimedOut);
    }

    #[test]
    fn what_it_cannot_hold_is_refused() {
        let mut spec = spec("true");
        spec.files.push(LaidFile {
            path: "/src/t".into(),
            bytes: Secret::new(b"x".to_vec()),
            mode: 0o444,
        });
        assert!(matches!(run(&spec), Err(Error::Unsupported { .. })));
    }
}
