//! What the host process and the launcher say to each other over one Unix socket.
//!
//! Owns the frames: one kind byte, a
//! 32-bit little-endian length and the payload. Both ends are the same binary, so there is no
//! version; the limits hold all the same, because the launcher handles what hostile code wrote.

use crate::base::redact::Secret;
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Longest frame that either side reads.
pub(super) const MAX_FRAME: usize = 1 << 30;
/// Longest piece of a stream in one frame.
pub(super) const CHUNK: usize = 64 << 10;

/// One message: its kind and payload.
pub(super) struct Frame {
    /// What it is.
    pub(super) kind: u8,
    /// What it carries; wiped on drop, since it may be a test body.
    pub(super) payload: Secret,
}

/// Kinds of frames. Those to the launcher come first.
pub(super) mod kind {
    /// The specification without bodies.
    pub(crate) const SPEC: u8 = 1;
    /// The body of the next laid file.
    pub(crate) const BODY: u8 = 2;
    /// What the launcher hands to the part of it that runs inside another program's walls.
    pub(crate) const HANDOVER: u8 = 3;
    /// A listener for a bridge; a descriptor travels with it.
    pub(crate) const LISTENER: u8 = 16;
    /// Facts about what holds the sandbox.
    pub(crate) const FACTS: u8 = 17;
    /// A step starts.
    pub(crate) const STARTED: u8 = 18;
    /// Bytes of standard output.
    pub(crate) const STDOUT: u8 = 19;
    /// Bytes of standard error.
    pub(crate) const STDERR: u8 = 20;
    /// Bytes of the channel.
    pub(crate) const CHANNEL: u8 = 21;
    /// A step ended, all its processes are dead and its streams were read to their end.
    pub(crate) const ENDED: u8 = 22;
    /// A hash.
    pub(crate) const HASH: u8 = 23;
    /// A collected file.
    pub(crate) const FILE: u8 = 24;
    /// A path that was not collected.
    pub(crate) const LEFT: u8 = 25;
    /// Everything was sent.
    pub(crate) const DONE: u8 = 26;
    /// The launcher gave up.
    pub(crate) const FAILED: u8 = 27;
}

/// Writes one frame.
pub(super) fn send(mut to: impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    send_parts(&mut to, kind, &[payload])
}

/// Writes one frame whose payload is the parts one after the other.
pub(super) fn send_parts(socket: &mut impl Write, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length > MAX_FRAME {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let length = u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&length.to_le_bytes());
    socket.write_all(&head)?;
    parts.iter().try_for_each(|part| socket.write_all(part))
}

/// Writes one frame with a descriptor.
pub(super) fn send_with(
    socket: &UnixStream,
    kind: u8,
    payload: &[u8],
    fd: &OwnedFd,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    // The descriptor rides on the kind byte; the rest follows as plain bytes.
    sendmsg(
        socket,
        &[IoSlice::new(&[kind])],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    let length = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut socket = socket;
    socket.write_all(&length.to_le_bytes())?;
    socket.write_all(payload)
}

/// The next frame; `None` at the end of the stream.
fn next(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut head = [0; 5];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let mut length = [0; 4];
    length.copy_from_slice(&head[1..]);
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut payload = vec![0; length];
    let result = from.read_exact(&mut payload);
    let payload = Secret::new(payload);
    result?;
    Ok(Some(Frame {
        kind: head[0],
        payload,
    }))
}

/// The next frame, which must be of this kind.
pub(super) fn expect(from: &mut impl Read, kind: u8) -> io::Result<Frame> {
    next(from)?
        .filter(|frame| frame.kind == kind)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads frames and keeps the descriptors that came with them.
pub(super) struct Receiver<'socket> {
    socket: &'socket UnixStream,
    fds: VecDeque<OwnedFd>,
}

impl<'socket> Receiver<'socket> {
    /// Reads from `socket`.
    pub(super) fn new(socket: &'socket UnixStream) -> Self {
        Self {
            socket,
            fds: VecDeque::new(),
        }
    }

    /// The next frame; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        next(self)
    }

    /// The descriptor that came longest ago and was not taken yet.
    pub(super) fn take_fd(&mut self) -> Option<OwnedFd> {
        self.fds.pop_front()
    }
}

impl Read for Receiver<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            self.socket,
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds);
            }
        }
        Ok(received.bytes)
    }
}

/// Builds a payload.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn path(&mut self, value: &Path) -> &mut Self {
        self.bytes(value.as_os_str().as_bytes())
    }

    pub(super) fn list<T>(
        &mut self,
        items: &[T],
        mut each: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        self.number(items.len() as u64);
        for item in items {
            each(self, item);
        }
        self
    }

    /// A descriptor that the reader inherits under the same number.
    pub(super) fn descriptor(&mut self, fd: &OwnedFd) -> &mut Self {
        self.number(u64::from(fd.as_raw_fd().unsigned_abs()))
    }

    pub(super) fn option(&mut self, value: Option<u64>) -> &mut Self {
        self.number(u64::from(value.is_some()));
        self.number(value.unwrap_or_default())
    }
}

/// Takes a payload apart. Every read fails on bytes that are not there.
pub(super) struct Reader<'bytes>(&'bytes [u8]);

impl<'bytes> Reader<'bytes> {
    pub(super) fn new(bytes: &'bytes [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, length: usize) -> io::Result<&'bytes [u8]> {
        if length > self.0.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn bytes(&mut self) -> io::Result<&'bytes [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| io::ErrorKind::InvalidData)?;
        self.take(length)
    }

    /// What was not read yet.
    pub(super) fn rest(self) -> &'bytes [u8] {
        self.0
    }

    pub(super) fn text(&mut self) -> io::Result<OsString> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()))
    }

    pub(super) fn path(&mut self) -> io::Result<PathBuf> {
        Ok(PathBuf::from(self.text()?))
    }

    pub(super) fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        let count = self.number()?;
        // Every item takes at least eight bytes, so a wrong count can't make us reserve memory.
        if count > (self.0.len() / 8) as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        (0..count).map(|_| each(self)).collect()
    }

    /// A descriptor that was inherited. To be read once.
    pub(super) fn descriptor(&mut self) -> io::Result<OwnedFd> {
        let number = i32::try_from(self.number()?).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(super::sys::adopt(number)?)
    }

    pub(super) fn option(&mut self) -> io::Result<Option<u64>> {
        let there = self.number()? != 0;
        let value = self.number()?;
        Ok(there.then_some(value))
    }
}
