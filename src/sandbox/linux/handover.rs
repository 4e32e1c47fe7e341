//! What the launcher hands to the part of it that runs inside another program's walls: a file in
//! memory, and the descriptors that it names.

use super::cgroup::Group;
use super::codec;
use super::fault::{Doing as _, Fault};
use super::sys;
use super::wire::{self, Reader, Writer, kind};
use crate::sandbox::spec::{Limits, Spec};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::MemfdFlags;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::path::PathBuf;

/// A folder of the host to be copied to its scratch mount.
pub(super) struct Copy {
    pub(super) source: OwnedFd,
    /// Where its mount is, made and empty but for what must not be touched.
    pub(super) inside: PathBuf,
    /// Paths below it that are laid already.
    pub(super) but: BTreeSet<Vec<u8>>,
}

/// Everything the inner part needs.
pub(super) struct Handover {
    /// The specification with those files only that are still to be laid.
    pub(super) spec: Spec,
    pub(super) copies: Vec<Copy>,
    pub(super) group: Option<Group>,
    /// Bounds that no control group holds.
    pub(super) fallback: Limits,
}

impl Handover {
    /// As a file in memory that stays open across exec, like all that it names.
    pub(super) fn write(self) -> Result<OwnedFd, Fault> {
        let mut out = Writer::default();
        out.option(self.fallback.memory)
            .option(self.fallback.processes);
        for copy in &self.copies {
            sys::keep(copy.source.as_fd()).doing("hand over a folder")?;
        }
        out.list(&self.copies, |out, copy| {
            let but: Vec<_> = copy.but.iter().collect();
            out.descriptor(&copy.source)
                .path(&copy.inside)
                .list(&but, |out, path| {
                    out.bytes(path);
                });
        });
        match self.group {
            Some(group) => group
                .hand_over(&mut out)
                .doing("hand over control groups")?,
            None => {
                out.list(&[(); 0], |_, ()| {});
            }
        }
        let memory = rustix::fs::memfd_create("sandbox", MemfdFlags::CLOEXEC)
            .doing("make a file in memory")?;
        let mut file = File::from(memory);
        wire::send(&mut file, kind::HANDOVER, &out.finish())
            .and_then(|()| codec::send_spec(&mut file, &self.spec))
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .doing("hand over the specification")?;
        std::mem::forget(self.copies);
        let memory = OwnedFd::from(file);
        sys::keep(memory.as_fd()).doing("hand over the specification")?;
        Ok(memory)
    }

    /// Takes everything over. `memory` is closed.
    pub(super) fn read(memory: OwnedFd) -> io::Result<Self> {
        let mut file = File::from(memory);
        let head = wire::expect(&mut file, kind::HANDOVER)?;
        let mut from = Reader::new(head.payload.expose());
        let fallback = Limits {
            memory: from.option()?,
            processes: from.option()?,
            ..Limits::default()
        };
        let copies = from.list(|from| {
            Ok(Copy {
                source: from.descriptor()?,
                inside: from.path()?,
                but: from
                    .list(|from| Ok(from.bytes()?.to_vec()))?
                    .into_iter()
                    .collect(),
            })
        })?;
        let group = Group::take_over(&mut from)?;
        Ok(Self {
            spec: codec::receive_spec(&mut file)?,
            copies,
            group,
            fallback,
        })
    }
}
