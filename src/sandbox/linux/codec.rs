//! The encoding of a [`Spec`] and of what the launcher reports, in the terms of [`super::wire`].

use super::wire::{Reader, Writer, expect, kind, send};
use crate::base::redact::Secret;
use crate::sandbox::spec::{
    Bridge, Collect, End, Enforced, Hit, LaidFile, Limits, Mount, Network, Spec, Step,
};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sends a specification: its head, then one frame per body, so that bodies are never copied.
pub(super) fn send_spec(mut to: impl Write, spec: &Spec) -> io::Result<()> {
    let mut out = Writer::default();
    out.list(&spec.mounts, |out, mount| {
        let (tag, host, inside) = match mount {
            Mount::ReadOnly { host, inside } => (0, host, inside),
            Mount::ReadWrite { host, inside } => (1, host, inside),
            Mount::Scratch { host, inside } => (2, host, inside),
        };
        out.number(tag).path(host).path(inside);
    });
    out.list(&spec.files, |out, file| {
        out.path(&file.path).number(file.mode.into());
    });
    let bridges: &[Bridge] = match &spec.network {
        Network::None => &[],
        Network::Bridged(bridges) => bridges,
    };
    out.number(u64::from(spec.network != Network::None));
    out.list(bridges, |out, bridge| {
        out.number(bridge.port.into()).path(&bridge.socket);
    });
    let limits = &spec.limits;
    out.option(limits.memory)
        .option(limits.processes)
        .option(limits.disk)
        .option(limits.output)
        .option(limits.file)
        .option(limits.cpus.map(u64::from));
    out.number(spec.inner_domain.into());
    out.list(&spec.hash_after, |out, path| {
        out.path(path);
    });
    out.list(&spec.collect, |out, collect| {
        out.path(&collect.path)
            .number(collect.max_file)
            .number(collect.max_total)
            .number(collect.max_files as u64);
    });
    out.list(&spec.steps, write_step);
    out.number(spec.stop_on_failure.into())
        .option(spec.deadline.map(nanoseconds));
    let head = Secret::new(out.finish());
    send(&mut to, kind::SPEC, head.expose())?;
    spec.files
        .iter()
        .try_for_each(|file| send(&mut to, kind::BODY, file.bytes.expose()))
}

fn write_step(out: &mut Writer, step: &Step) {
    out.list(&step.argv, |out, arg| {
        out.bytes(arg.as_bytes());
    });
    let env: Vec<_> = step.env.iter().collect();
    out.list(&env, |out, (key, value)| {
        out.bytes(key.as_bytes()).bytes(value.as_bytes());
    });
    out.path(&step.dir)
        .bytes(&step.stdin)
        .number(step.channel.into())
        .number(nanoseconds(step.timeout))
        .option(step.idle.map(nanoseconds));
}

/// Reads what [`send_spec`] sent.
pub(super) fn receive_spec(from: &mut impl Read) -> io::Result<Spec> {
    let head = expect(from, kind::SPEC)?;
    let mut spec = read_head(&mut Reader::new(head.payload.expose()))?;
    for file in &mut spec.files {
        file.bytes = expect(from, kind::BODY)?.payload;
    }
    Ok(spec)
}

fn read_head(head: &mut Reader<'_>) -> io::Result<Spec> {
    let mounts = head.list(|head| {
        let (tag, host, inside) = (head.number()?, head.path()?, head.path()?);
        Ok(match tag {
            0 => Mount::ReadOnly { host, inside },
            1 => Mount::ReadWrite { host, inside },
            _ => Mount::Scratch { host, inside },
        })
    })?;
    let files = head.list(|head| {
        Ok(LaidFile {
            path: head.path()?,
            mode: u32::try_from(head.number()?).map_err(|_| io::ErrorKind::InvalidData)?,
            bytes: Secret::new(Vec::new()),
        })
    })?;
    let bridged = head.number()? != 0;
    let bridges = head.list(|head| {
        Ok(Bridge {
            port: u16::try_from(head.number()?).map_err(|_| io::ErrorKind::InvalidData)?,
            socket: head.path()?,
        })
    })?;
    let limits = Limits {
        memory: head.option()?,
        processes: head.option()?,
        disk: head.option()?,
        output: head.option()?,
        file: head.option()?,
        cpus: head
            .option()?
            .map(|cpus| u32::try_from(cpus).unwrap_or(u32::MAX)),
    };
    Ok(Spec {
        mounts,
        files,
        network: if bridged {
            Network::Bridged(bridges)
        } else {
            Network::None
        },
        limits,
        inner_domain: head.number()? != 0,
        hash_after: head.list(Reader::path)?,
        collect: head.list(|head| {
            Ok(Collect {
                path: head.path()?,
                max_file: head.number()?,
                max_total: head.number()?,
                max_files: usize::try_from(head.number()?).unwrap_or(usize::MAX),
            })
        })?,
        steps: head.list(read_step)?,
        stop_on_failure: head.number()? != 0,
        deadline: head.option()?.map(Duration::from_nanos),
    })
}

fn read_step(head: &mut Reader<'_>) -> io::Result<Step> {
    Ok(Step {
        argv: head.list(Reader::text)?,
        env: head
            .list(|head| Ok((head.text()?, head.text()?)))?
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        dir: head.path()?,
        stdin: head.bytes()?.to_vec(),
        channel: head.number()? != 0,
        timeout: Duration::from_nanos(head.number()?),
        idle: head.option()?.map(Duration::from_nanos),
    })
}

/// How a step ended, as the launcher saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepEnd {
    pub(super) end: End,
    pub(super) hits: Vec<Hit>,
    pub(super) wall: Duration,
    pub(super) peak_memory: Option<u64>,
}

const HITS: [Hit; 5] = [
    Hit::Memory,
    Hit::Processes,
    Hit::Output,
    Hit::FileSize,
    Hit::Disk,
];

impl StepEnd {
    /// As a payload.
    pub(super) fn encode(&self) -> Vec<u8> {
        let number = |value: i32| u64::from(u32::from_ne_bytes(value.to_ne_bytes()));
        let (tag, value) = match self.end {
            End::Exited(status) => (0, number(status)),
            End::Signalled(signal) => (1, number(signal)),
            End::TimedOut => (2, 0),
            End::Idle => (3, 0),
            End::NotStarted(errno) => (4, number(errno)),
        };
        let hits = HITS
            .iter()
            .enumerate()
            .filter(|(_, hit)| self.hits.contains(hit))
            .fold(0, |bits, (bit, _)| bits | 1 << bit);
        let mut out = Writer::default();
        out.number(tag)
            .number(value)
            .number(hits)
            .number(nanoseconds(self.wall))
            .option(self.peak_memory);
        out.finish()
    }

    /// From a payload.
    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut from = Reader::new(bytes);
        let tag = from.number()?;
        let value = u32::try_from(from.number()?).map_err(|_| io::ErrorKind::InvalidData)?;
        let value = i32::from_ne_bytes(value.to_ne_bytes());
        let end = match tag {
            0 => End::Exited(value),
            1 => End::Signalled(value),
            2 => End::TimedOut,
            3 => End::Idle,
            4 => End::NotStarted(value),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let bits = from.number()?;
        let hits = HITS
            .iter()
            .enumerate()
            .filter(|(bit, _)| bits & (1 << bit) != 0)
            .map(|(_, hit)| *hit)
            .collect();
        Ok(Self {
            end,
            hits,
            wall: Duration::from_nanos(from.number()?),
            peak_memory: from.option()?,
        })
    }
}

/// What holds a sandbox, as a payload.
pub(super) fn encode_facts(facts: &Enforced) -> Vec<u8> {
    let mut out = Writer::default();
    out.number(facts.other_user.into())
        .number(facts.landlock.into())
        .number(facts.memory.into())
        .number(facts.processes.into())
        .number(facts.cpus.into())
        .number(facts.copied.into());
    out.finish()
}

/// From a payload.
pub(super) fn decode_facts(bytes: &[u8]) -> io::Result<Enforced> {
    let mut from = Reader::new(bytes);
    Ok(Enforced {
        other_user: from.number()? != 0,
        landlock: u32::try_from(from.number()?).unwrap_or_default(),
        memory: from.number()? != 0,
        processes: from.number()? != 0,
        cpus: from.number()? != 0,
        copied: from.number()? != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::wire::Receiver;
    use super::*;
    use std::os::unix::net::UnixStream;

    fn full_spec() -> Spec {
        Spec {
            mounts: vec![
                Mount::ReadOnly {
                    host: "/a".into(),
                    inside: "/b".into(),
                },
                Mount::ReadWrite {
                    host: "/c".into(),
                    inside: "/d".into(),
                },
                Mount::Scratch {
                    host: "/e".into(),
                    inside: "/f".into(),
                },
            ],
            files: vec![LaidFile {
                path: "/src/t.py".into(),
                bytes: Secret::new(b"body".to_vec()),
                mode: 0o444,
            }],
            network: Network::Bridged(vec![Bridge {
                port: 3128,
                socket: "/s".into(),
            }]),
            limits: Limits {
                memory: Some(1),
                processes: None,
                cpus: Some(2),
                ..Limits::default()
            },
            inner_domain: true,
            hash_after: vec!["/src".into()],
            collect: vec![Collect {
                path: "/out".into(),
                max_file: 1,
                max_total: 2,
                max_files: 3,
            }],
            steps: vec![Step {
                argv: vec!["/bin/sh".into()],
                env: BTreeMap::from([("A".into(), "b".into())]),
                dir: "/src".into(),
                stdin: vec![1, 2],
                channel: true,
                timeout: Duration::from_millis(1500),
                idle: Some(Duration::from_secs(1)),
            }],
            stop_on_failure: true,
            deadline: Some(Duration::from_secs(7)),
        }
    }

    #[test]
    fn a_specification_survives_the_socket() {
        let (here, there) = UnixStream::pair().unwrap();
        let spec = full_spec();
        send_spec(&here, &spec).unwrap();
        let got = receive_spec(&mut Receiver::new(&there)).unwrap();
        assert_eq!(format!("{spec:?}"), format!("{got:?}"));
        assert_eq!(got.files[0].bytes.expose(), b"body");
    }

    #[test]
    fn cut_or_wrong_bytes_are_an_error() {
        let mut out = Writer::default();
        out.number(u64::MAX);
        assert!(read_head(&mut Reader::new(&out.finish())).is_err());
        let end = StepEnd {
            end: End::Signalled(9),
            hits: vec![Hit::Memory, Hit::Disk],
            wall: Duration::from_millis(3),
            peak_memory: Some(7),
        };
        let bytes = end.encode();
        assert_eq!(StepEnd::decode(&bytes).unwrap(), end);
        for length in 0..bytes.len() {
            assert!(StepEnd::decode(&bytes[..length]).is_err());
        }
    }
}
