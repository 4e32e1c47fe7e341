//! Small objects that lie in files of their own, read without mapping them into memory.
//!
//! gix maps such a file twice for each object: to see its size, and to read it. Taking a map away stops
//! every other thread of the process for a moment, so that threads slow each other down. What is not a
//! small and healthy file is left to gix, which says what is wrong with it.

use super::objects::Found;
use super::repository::{Repository, to_gix};
use crate::model::object_id::ObjectId;
use std::fs::File;
use std::io::Read as _;

/// Largest object, and largest file, in bytes.
const LARGEST: usize = 64 << 10;
/// Room for the word and the size in front of the data.
const HEADER: usize = 64;

impl Repository {
    /// The object, if it is small, whole and in a file of its own.
    pub(super) fn small_loose(&self, id: ObjectId) -> Option<Found> {
        let hex = to_gix(id).to_string();
        let (folder, name) = hex.split_at(2);
        let path = self.inner.objects.store_ref().path().join(folder);
        let file = File::open(path.join(name)).ok()?;
        let mut packed = Vec::with_capacity(4 << 10);
        let most = u64::try_from(LARGEST).unwrap_or_default();
        file.take(most + 1).read_to_end(&mut packed).ok()?;
        if packed.len() > LARGEST {
            return None;
        }
        unpack(&packed)
    }
}

fn unpack(packed: &[u8]) -> Option<Found> {
    // Text seldom shrinks to less than an eighth; what does is tried with all the room there is.
    let rooms = [(packed.len() * 8 + HEADER).min(LARGEST), LARGEST];
    let (kind, size, mut out) = rooms.into_iter().find_map(|room| {
        let mut out = vec![0; room];
        let done = gix::zlib::Inflate::default().once(packed, &mut out);
        let (gix::zlib::Status::StreamEnd, _, written) = done.ok()? else {
            return None;
        };
        out.truncate(written);
        let (kind, size, start) = gix::objs::decode::loose_header(&out).ok()?;
        out.drain(..start);
        Some((kind, size, out))
    })?;
    out.shrink_to_fit();
    let whole = u64::try_from(out.len()).is_ok_and(|len| len == size);
    whole.then_some(Found { kind, data: out })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gix::objs::Kind;
    use std::io::Write as _;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut deflate =
            gix::zlib::stream::deflate::Write::new(Vec::new(), gix::zlib::Compression::DEFAULT);
        deflate.write_all(bytes).unwrap();
        deflate.flush().unwrap();
        deflate.into_inner()
    }

    #[test]
    fn whole_objects_are_read_and_nothing_else() {
        for len in [0, 1, 5000, 60_000] {
            let data = vec![b'x'; len];
            let object = [format!("blob {len}\0").as_bytes(), &data].concat();
            let found = unpack(&packed(&object)).unwrap();
            assert_eq!((found.kind, &found.data), (Kind::Blob, &data));
        }
        let good = packed(b"tree 3\0abc");
        assert_eq!(unpack(&good).unwrap().kind, Kind::Tree);
        for end in 0..good.len() {
            assert!(unpack(&good[..end]).is_none(), "{end}");
        }
        let large = [&b"blob 100000\0"[..], &vec![0; 100_000]].concat();
        for bad in [
            &b"blob 4\0abc"[..],
            b"blob 2\0abc",
            b"blog 3\0abc",
            b"abc",
            b"",
            &large,
        ] {
            assert!(unpack(&packed(bad)).is_none());
        }
        assert!(unpack(b"no stream at all").is_none());
    }
}
