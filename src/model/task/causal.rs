//! Which events have seen which: their order, the stretches in which some are concurrent, and who is
//! concurrent with whom.
//!
//! Cost: ordering is linear but for one sort. A history without forks is stretches of one event; only
//! within a longer stretch of `n` events are `n²/4` bytes of relations kept. Must not know changes.

use crate::model::digest::Digest;
use std::collections::BTreeMap;

/// Events in causal order; concurrent ones by (depth, digest).
#[derive(Debug)]
pub(super) struct Order {
    /// Indexes of the given events. Those whose ancestors are missing are left out.
    pub(super) sequence: Vec<usize>,
    /// For each place of the sequence, the places of its parents, sorted.
    pub(super) parents: Vec<Vec<usize>>,
}

impl Order {
    /// Orders events, each a digest with the digests of its parents. The same event twice counts
    /// once.
    pub(super) fn of(events: &[(Digest, &[Digest])]) -> Self {
        let mut index: BTreeMap<Digest, usize> = BTreeMap::new();
        for (at, (digest, _)) in events.iter().enumerate() {
            index.entry(*digest).or_insert(at);
        }
        let mut open = vec![0_usize; events.len()];
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); events.len()];
        let mut ready = Vec::new();
        for at in index.values().copied() {
            let mut parents = events[at].1.to_vec();
            parents.sort_unstable();
            parents.dedup();
            open[at] = parents.len();
            for parent in parents.iter().filter_map(|parent| index.get(parent)) {
                children[*parent].push(at);
            }
            if parents.is_empty() {
                ready.push(at);
            }
        }
        let mut depth = vec![0_usize; events.len()];
        let mut sequence = Vec::with_capacity(events.len());
        while let Some(at) = ready.pop() {
            sequence.push(at);
            for child in std::mem::take(&mut children[at]) {
                depth[child] = depth[child].max(depth[at] + 1);
                open[child] -= 1;
                if open[child] == 0 {
                    ready.push(child);
                }
            }
        }
        sequence.sort_unstable_by_key(|at| (depth[*at], events[*at].0));
        let place: BTreeMap<Digest, usize> = sequence
            .iter()
            .enumerate()
            .map(|(place, at)| (events[*at].0, place))
            .collect();
        let places = |at: &usize| {
            let mut parents: Vec<usize> = events[*at].1.iter().map(|one| place[one]).collect();
            parents.sort_unstable();
            parents.dedup();
            parents
        };
        let parents = sequence.iter().map(places).collect();
        Self { sequence, parents }
    }

    /// Places that no other has seen.
    pub(super) fn heads(&self) -> Vec<usize> {
        let mut seen = vec![false; self.sequence.len()];
        for parent in self.parents.iter().flatten() {
            seen[*parent] = true;
        }
        (0..seen.len()).filter(|place| !seen[*place]).collect()
    }

    /// The ends of the stretches that the sequence falls into: the event before an end has seen
    /// everything before it and is seen by everything after it, so only events of one stretch can be
    /// concurrent.
    pub(super) fn ends(&self) -> Vec<usize> {
        let count = self.sequence.len();
        // The earliest place that anything from here on rests on; an event that rests on nothing
        // counts as resting on what is before the first.
        let mut lowest = vec![usize::MAX; count + 1];
        for place in (0..count).rev() {
            let own = self.parents[place].first().map_or(0, |first| first + 1);
            lowest[place] = lowest[place + 1].min(own);
        }
        let mut is_head = vec![false; count];
        let (mut heads, mut ends) = (0_usize, Vec::new());
        for place in 0..count {
            for parent in &self.parents[place] {
                if std::mem::take(&mut is_head[*parent]) {
                    heads -= 1;
                }
            }
            is_head[place] = true;
            heads += 1;
            if place + 1 == count || (heads == 1 && lowest[place + 1] > place) {
                ends.push(place + 1);
            }
        }
        ends
    }
}

/// A set of places of one stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places(Vec<u64>);

impl Places {
    pub(super) fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    pub(super) fn all(count: usize) -> Self {
        let mut all = Self::none(count);
        (0..count).for_each(|place| all.insert(place));
        all
    }

    pub(super) fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn has(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own |= other;
        }
    }

    pub(super) fn take_out(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own &= !other;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            let bits = *bits;
            (0..64)
                .filter(move |bit| bits >> bit & 1 == 1)
                .map(move |bit| word * 64 + bit)
        })
    }
}

/// Who has seen whom in one stretch.
#[derive(Debug)]
pub(super) struct Relations {
    above: Vec<Places>,
    below: Vec<Places>,
}

impl Relations {
    /// From the parents of each place, which come before it.
    pub(super) fn of(parents: &[Vec<usize>]) -> Self {
        let count = parents.len();
        let mut above = vec![Places::none(count); count];
        for place in 0..count {
            let mut own = Places::none(count);
            for parent in &parents[place] {
                own.add(&above[*parent]);
                own.insert(*parent);
            }
            above[place] = own;
        }
        let mut below = vec![Places::none(count); count];
        for place in (0..count).rev() {
            let mut own = below[place].clone();
            own.insert(place);
            for parent in &parents[place] {
                below[*parent].add(&own);
            }
        }
        Self { above, below }
    }

    /// What `place` has seen.
    pub(super) fn above(&self, place: usize) -> &Places {
        &self.above[place]
    }

    /// Those of `among` that have not seen `place` and that it has not seen.
    pub(super) fn beside(&self, place: usize, among: &Places) -> Places {
        let mut beside = among.clone();
        beside.take_out(&self.above[place]);
        beside.take_out(&self.below[place]);
        let mut own = Places::none(self.above.len());
        own.insert(place);
        beside.take_out(&own);
        beside
    }

    /// Those places that no other of them has seen.
    pub(super) fn newest(&self, places: &[usize]) -> Vec<usize> {
        let is_newest = |one: &&usize| !places.iter().any(|other| self.above[*other].has(**one));
        places.iter().filter(is_newest).copied().collect()
    }
}
