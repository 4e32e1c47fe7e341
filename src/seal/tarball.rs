//! The tar inside the payload: one spelling for one set of files.
//!
//! Written by hand-set header fields and checked on reading by writing again, so that order, owner,
//! time, padding, extension records and trailing bytes leave no room for a second reading.

use crate::base::redact::Secret;
use std::ops::Range;
use tar::{EntryType, Header};

const BLOCK: usize = 512;
/// Longest name that fits into a header.
const SHORT_NAME: usize = 100;
const LONG_NAME: &[u8] = b"././@LongLink";
/// Longest name that is read from an extension record.
const MAX_NAME: usize = 2048;

/// One file to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) executable: bool,
    pub(super) bytes: &'a [u8],
}

/// One file as read; the content stays in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) executable: bool,
    pub(super) content: Range<usize>,
}

/// Not an archive of regular files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Length of the archive in bytes.
pub(super) fn len(items: &[Item<'_>]) -> usize {
    let entry = |item: &Item<'_>| {
        let long = item.name.len() > SHORT_NAME;
        let name = if long {
            BLOCK + padded(item.name.len() + 1)
        } else {
            0
        };
        name + BLOCK + padded(item.bytes.len())
    };
    items.iter().map(entry).sum::<usize>() + 2 * BLOCK
}

/// Writes the archive (GNU tar format) in the order given.
pub(super) fn write(items: &[Item<'_>]) -> Secret {
    // One allocation of the exact size: growing would leave copies of the content behind.
    let mut out = Vec::with_capacity(len(items));
    for item in items {
        if item.name.len() > SHORT_NAME {
            let name = [item.name.as_bytes(), b"\0"].concat();
            put(&mut out, LONG_NAME, EntryType::GNULongName, 0o644, &name);
        }
        let short = &item.name.as_bytes()[..item.name.len().min(SHORT_NAME)];
        let mode = if item.executable { 0o755 } else { 0o644 };
        put(&mut out, short, EntryType::Regular, mode, item.bytes);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Secret::new(out)
}

fn put(out: &mut Vec<u8>, name: &[u8], kind: EntryType, mode: u32, bytes: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(bytes.len() as u64);
    header.set_entry_type(kind);
    header.set_cksum();
    out.extend(header.as_bytes());
    out.extend(bytes);
    out.resize(out.len() + padded(bytes.len()) - bytes.len(), 0);
}

const fn padded(len: usize) -> usize {
    len.div_ceil(BLOCK) * BLOCK
}

/// Reads an archive that [`write()`] could have written, of at most `max` files.
pub(super) fn read(archive: &[u8], max: usize) -> Result<Vec<Found>, Malformed> {
    let mut found = Vec::new();
    let mut long_name = None;
    let mut reader = tar::Archive::new(archive);
    for entry in reader.entries().map_err(|_| Malformed)?.raw(true) {
        let entry = entry.map_err(|_| Malformed)?;
        let start = usize::try_from(entry.raw_file_position()).map_err(|_| Malformed)?;
        let size = usize::try_from(entry.size()).map_err(|_| Malformed)?;
        let content = start..start.checked_add(size).ok_or(Malformed)?;
        let bytes = archive.get(content.clone()).ok_or(Malformed)?;
        match entry.header().entry_type() {
            EntryType::GNULongName if long_name.is_none() && size <= MAX_NAME => {
                let name = bytes.strip_suffix(b"\0").ok_or(Malformed)?;
                long_name = Some(name.to_vec());
            }
            EntryType::Regular if found.len() < max => {
                let name = match long_name.take() {
                    Some(name) => name,
                    None => entry.header().path_bytes().into_owned(),
                };
                let mode = entry.header().mode().map_err(|_| Malformed)?;
                found.push(Found {
                    name: String::from_utf8(name).map_err(|_| Malformed)?,
                    executable: mode & 0o100 != 0,
                    content,
                });
            }
            _ => return Err(Malformed),
        }
    }
    let items: Vec<_> = found.iter().map(|file| item(file, archive)).collect();
    if write(&items).expose() != archive {
        return Err(Malformed);
    }
    Ok(found)
}

fn item<'a>(found: &'a Found, archive: &'a [u8]) -> Item<'a> {
    Item {
        name: &found.name,
        executable: found.executable,
        bytes: &archive[found.content.clone()],
    }
}
