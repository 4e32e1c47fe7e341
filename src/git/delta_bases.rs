//! Objects of packs that were read last: most others in a pack are differences from one of them.

use gix::objs::Kind;
use gix::odb::pack::cache::DecodeEntry;

/// Objects that are remembered.
const SLOTS: usize = 256;
/// Larger ones are not, in bytes.
const LARGEST: usize = 16 << 10;

/// Each object has one place, by where it lies; the one that came last is there.
pub(super) struct DeltaBases(Vec<Option<Slot>>);

struct Slot {
    pack: u32,
    offset: u64,
    kind: Kind,
    compressed: usize,
    data: Vec<u8>,
}

impl DeltaBases {
    fn place(pack: u32, offset: u64) -> usize {
        // Neighbours in a pack are some hundred bytes apart: the low bits alone would do, mixed.
        let mixed = (offset ^ u64::from(pack)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mixed >> 32).unwrap_or_default() % SLOTS
    }
}

impl Default for DeltaBases {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| None).collect())
    }
}

impl DecodeEntry for DeltaBases {
    fn put(&mut self, pack: u32, offset: u64, data: &[u8], kind: Kind, compressed: usize) {
        if data.len() > LARGEST {
            return;
        }
        let slot = &mut self.0[Self::place(pack, offset)];
        let mut room = slot.take().map(|old| old.data).unwrap_or_default();
        room.clear();
        room.extend_from_slice(data);
        *slot = Some(Slot {
            pack,
            offset,
            kind,
            compressed,
            data: room,
        });
    }

    fn get(&mut self, pack: u32, offset: u64, out: &mut Vec<u8>) -> Option<(Kind, usize)> {
        let slot = self.0[Self::place(pack, offset)].as_ref();
        let slot = slot.filter(|slot| slot.pack == pack && slot.offset == offset)?;
        out.clear();
        out.extend_from_slice(&slot.data);
        Some((slot.kind, slot.compressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_last_is_got_and_nothing_else() {
        let mut bases = DeltaBases::default();
        let mut out = vec![7];
        assert_eq!(bases.get(1, 12, &mut out), None);
        for offset in 0..10_000 {
            let data = offset.to_string();
            bases.put(1, offset, data.as_bytes(), Kind::Blob, 3);
            assert_eq!(bases.get(1, offset, &mut out), Some((Kind::Blob, 3)));
            assert_eq!(out, data.as_bytes());
            assert_eq!(bases.get(2, offset, &mut out), None);
        }
        let kept = (0..10_000).filter(|at| bases.get(1, *at, &mut out).is_some());
        assert!((1..=SLOTS).contains(&kept.count()));
        bases.put(3, 1, &vec![0; LARGEST + 1], Kind::Blob, 3);
        assert_eq!(bases.get(3, 1, &mut out), None);
    }
}
