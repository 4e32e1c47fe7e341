//! What has to happen to one ref, from where it is here, where the remote has it, and where the
//! remote had it last. Pure: how two commits stand to each other is asked through a function.

use crate::model::object_id::ObjectId;

/// One ref in both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// In this clone.
    pub here: Option<ObjectId>,
    /// On the remote, now.
    pub there: Option<ObjectId>,
    /// On the remote, when this clone last looked.
    pub before: Option<ObjectId>,
}

/// How two different commits stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The first is an ancestor of the second.
    Behind,
    /// The second is an ancestor of the first.
    Ahead,
    /// Neither.
    Apart,
}

/// What this clone does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// Take what the remote has: it holds everything that is here.
    Take(ObjectId),
    /// Join both heads.
    Join(ObjectId, ObjectId),
}

/// What the remote did that no honest client does. It is healed by pushing again, never obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It had the ref and has it no more.
    Deleted,
    /// It went back to an earlier commit.
    RolledBack,
    /// It shows a history without the commit that it had.
    Rewritten,
    /// It shows something that is none of ours, without any document.
    Replaced,
}

/// What to do with one ref.
pub fn step<E>(
    sides: Sides,
    mut relation: impl FnMut(ObjectId, ObjectId) -> Result<Relation, E>,
) -> Result<Step, E> {
    let (here, there) = match (sides.here, sides.there) {
        (_, None) => return Ok(Step::Keep),
        (None, Some(there)) => return Ok(Step::Take(there)),
        (Some(here), Some(there)) if here == there => return Ok(Step::Keep),
        (Some(here), Some(there)) => (here, there),
    };
    Ok(match relation(here, there)? {
        Relation::Ahead => Step::Keep,
        Relation::Behind => Step::Take(there),
        Relation::Apart => Step::Join(here, there),
    })
}

/// Whether the remote lost something that it had.
pub fn loss<E>(
    sides: Sides,
    mut relation: impl FnMut(ObjectId, ObjectId) -> Result<Relation, E>,
) -> Result<Option<Loss>, E> {
    let Some(before) = sides.before else {
        return Ok(None);
    };
    let Some(there) = sides.there else {
        return Ok(Some(Loss::Deleted));
    };
    if before == there {
        return Ok(None);
    }
    Ok(match relation(before, there)? {
        Relation::Behind => None,
        Relation::Ahead => Some(Loss::RolledBack),
        Relation::Apart => Some(Loss::Rewritten),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn id(number: u8) -> ObjectId {
        format!("{number:02x}").repeat(20).parse().unwrap()
    }

    /// 1 ← 2 ← 3, and 1 ← 9.
    const ANCESTORS: [(u8, u8); 4] = [(1, 2), (1, 3), (2, 3), (1, 9)];

    #[expect(
        clippy::unnecessary_wraps,
        reason = "what the functions here are given"
    )]
    fn relation(one: ObjectId, two: ObjectId) -> Result<Relation, Infallible> {
        let above = |one: ObjectId, two: ObjectId| {
            let mut pairs = ANCESTORS.iter();
            pairs.any(|(old, new)| id(*old) == one && id(*new) == two)
        };
        Ok(match (above(one, two), above(two, one)) {
            (true, _) => Relation::Behind,
            (_, true) => Relation::Ahead,
            _ => Relation::Apart,
        })
    }

    fn sides(here: u8, there: u8, before: u8) -> Sides {
        let some = |number| (number > 0).then(|| id(number));
        Sides {
            here: some(here),
            there: some(there),
            before: some(before),
        }
    }

    #[test]
    fn what_is_here_is_never_given_up() {
        let step = |here, there| step(sides(here, there, 0), relation).unwrap();
        assert_eq!(step(0, 0), Step::Keep);
        assert_eq!(step(2, 0), Step::Keep);
        assert_eq!(step(0, 2), Step::Take(id(2)));
        assert_eq!(step(2, 2), Step::Keep);
        assert_eq!(step(2, 3), Step::Take(id(3)));
        assert_eq!(step(3, 2), Step::Keep);
        assert_eq!(step(3, 9), Step::Join(id(3), id(9)));
    }

    #[test]
    fn a_remote_that_lost_something_is_noticed() {
        let loss = |there, before| loss(sides(3, there, before), relation).unwrap();
        assert_eq!(loss(2, 0), None);
        assert_eq!(loss(2, 2), None);
        assert_eq!(loss(3, 2), None);
        assert_eq!(loss(0, 2), Some(Loss::Deleted));
        assert_eq!(loss(1, 2), Some(Loss::RolledBack));
        assert_eq!(loss(9, 2), Some(Loss::Rewritten));
    }
}
