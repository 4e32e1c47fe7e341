//! Which of two moves that were made at the same time stands: the more careful one.
//!
//! A delivery outweighs everything: it is recorded by compare-and-swap and the work is on a branch,
//! so whatever was done at the same time is shown and not applied.

use crate::model::event::Change;

impl Change {
    /// What is made at the same time with less [`Change::weight`] has no effect. 0 where nothing is
    /// outweighed.
    pub const fn power(&self) -> u8 {
        match self {
            Self::Deliver { .. }
            | Self::Cancel { .. }
            | Self::Delete
            | Self::Reject { .. }
            | Self::Fail { .. } => self.weight(),
            _ => 0,
        }
    }

    /// How much [`Change::power`] it takes to outweigh the change.
    pub const fn weight(&self) -> u8 {
        match self {
            // Facts and words: they are true or said, whatever else happened.
            Self::Create { .. }
            | Self::Comment { .. }
            | Self::Consume { .. }
            | Self::ApprovePatch { .. }
            | Self::Adjudicate { .. }
            | Self::Publish { .. } => u8::MAX,
            Self::Deliver { .. } => 6,
            // An edit outweighs nothing; only a delivery was made of the text as it was.
            Self::Edit { .. } | Self::Cancel { .. } => 5,
            Self::Delete => 4,
            Self::Reject { .. } => 3,
            Self::Fail { .. } => 2,
            Self::Enqueue
            | Self::Claim { .. }
            | Self::Renew { .. }
            | Self::Release { .. }
            | Self::Stage { .. }
            | Self::Retry { .. } => 1,
        }
    }
}
