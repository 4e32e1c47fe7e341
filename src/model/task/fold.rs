//! From events to the task: the one place where it is decided what an event does.
//!
//! Each change is judged twice. First by what its author had seen: the fold of the events before it,
//! in which it must be allowed. That never changes, whatever arrives later. Then by what was made at
//! the same time: a more careful move outweighs it ([`Change::weight`]). What is left takes effect in
//! the order of the events.
//!
//! Pure and total: the same set of events gives the same task, in whatever order and how often they
//! are given. Normative text: `docs/format.md`, "Order of events".

use super::causal::{Order, Places, Relations};
use super::effect::Step;
use super::merge::Beside;
use super::{Author, Refusal, Task};
use crate::model::digest::Digest;
use crate::model::event::Change;
use crate::model::ids::{Principal, TaskId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// One event.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// What it has seen last.
    pub parents: &'a [Digest],
    /// Whether it is a creation event, by its form.
    pub creates: bool,
    /// Who signed it; its digest is `author.event`.
    pub author: Author<'a>,
    /// What happened.
    pub changes: &'a [Change],
}

/// What came of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Why a change had no effect, in the order of the changes; `None` where it had.
    pub refused: Vec<Option<String>>,
    /// Values set at the same time in place of which its own stand.
    pub beside: Vec<Beside>,
    /// To what a change without effect gave way, by its place among the changes.
    pub gave_way: BTreeMap<usize, GaveWay>,
}

/// The move against which a change has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaveWay {
    /// Its event.
    pub to: Digest,
    /// Whether it rests on the change, so that nothing is lost.
    pub follows: bool,
}

/// A fold.
#[derive(Debug)]
pub struct Folded {
    /// The task; `None` without a creation event.
    pub task: Option<Task>,
    /// Indexes of the events in order; those with missing ancestors are left out.
    pub order: Vec<usize>,
    /// What came of each, in the same order.
    pub outcomes: Vec<Outcome>,
    /// Events that no other has seen, sorted.
    pub heads: Vec<Digest>,
}

/// A state that [`fold`] passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// As the author of the event had it, with the event.
    Own,
    /// In the order, with everything up to the event. Comments may be left out.
    Placed,
}

/// Who may not do what: gives the reason why the event at this index has no right to the change, on
/// a task of this requester.
pub(super) type Bar<'a> = dyn Fn(usize, &Change, &Principal) -> Option<String> + 'a;

/// Folds events. `watch` sees every state on the way, with the index of its event.
pub fn fold(
    id: &TaskId,
    nodes: &[Node<'_>],
    bar: &Bar<'_>,
    watch: &mut dyn FnMut(usize, Sight, &Task),
) -> Folded {
    let events: Vec<_> = nodes
        .iter()
        .map(|node| (node.author.event, node.parents))
        .collect();
    let order = Order::of(&events);
    let judge = Judge { id, nodes, bar };
    let mut task: Option<Task> = None;
    let mut outcomes = Vec::with_capacity(order.sequence.len());
    let mut begin = 0;
    for end in order.ends() {
        let indexes = &order.sequence[begin..end];
        if let [index] = indexes {
            // It has seen everything before it, and everything after it has seen it.
            outcomes.push(judge.alone(&mut task, *index));
            if let Some(task) = &task {
                watch(*index, Sight::Own, task);
                watch(*index, Sight::Placed, task);
            }
        } else {
            let local = |places: &Vec<usize>| {
                let inside = places.iter().filter_map(|place| place.checked_sub(begin));
                inside.collect()
            };
            let parents: Vec<Vec<usize>> = order.parents[begin..end].iter().map(local).collect();
            let base = task.as_mut().map(|task| Rc::new(task.without_comments()));
            let stretch = Stretch::new(&judge, indexes, &parents, base, watch);
            outcomes.extend(stretch.play(&mut task, &Places::all(indexes.len()), watch));
        }
        begin = end;
    }
    let heads = order.heads().into_iter();
    let mut heads: Vec<_> = heads.map(|place| events[order.sequence[place]].0).collect();
    heads.sort_unstable();
    Folded {
        task,
        order: order.sequence,
        outcomes,
        heads,
    }
}

/// What a change means, or why it was not allowed to its author.
type Verdict = Result<Step, String>;

struct Judge<'a> {
    id: &'a TaskId,
    nodes: &'a [Node<'a>],
    bar: &'a Bar<'a>,
}

impl Judge<'_> {
    /// Whether a change is allowed to an author who sees `task`.
    fn verdict(&self, task: Option<&Task>, index: usize, change: &Change) -> Verdict {
        let node = &self.nodes[index];
        let creates = matches!(change, Change::Create { .. });
        let requester = match (task, change) {
            (Some(task), _) => &task.requester,
            (None, Change::Create { requester, .. }) => requester,
            (None, _) => return Err("the task does not exist yet".into()),
        };
        if creates != node.creates {
            return Err(Refusal::Creation.to_string());
        }
        if let Some(why) = (self.bar)(index, change, requester) {
            return Err(why);
        }
        let Some(task) = task else {
            return Ok(Step::default());
        };
        let allowed = task.allows(change, node.author);
        allowed.map_err(|refusal| refusal.to_string())?;
        Ok(task.step(change))
    }

    /// Gives a change its effect.
    fn enact(
        &self,
        task: &mut Option<Task>,
        index: usize,
        change: &Change,
        step: &Step,
    ) -> Result<Vec<Beside>, Refusal> {
        let author = self.nodes[index].author;
        if let Some(task) = task {
            return task.enact(change, author, step);
        }
        *task = Some(Task::create(self.id.clone(), change, author)?);
        Ok(Vec::new())
    }

    /// An event that has seen everything: judged and given its effect, change by change.
    fn alone(&self, task: &mut Option<Task>, index: usize) -> Outcome {
        let mut outcome = Outcome::default();
        for change in self.nodes[index].changes {
            let done = self.verdict(task.as_ref(), index, change).and_then(|step| {
                let done = self.enact(task, index, change, &step);
                done.map_err(|refusal| refusal.to_string())
            });
            outcome.note(done);
        }
        outcome
    }

    /// The same, on what the author had seen; kept for the place in the order.
    fn verdicts(&self, task: &mut Option<Rc<Task>>, index: usize) -> Vec<Verdict> {
        let changes = self.nodes[index].changes.iter();
        changes
            .map(|change| {
                let step = self.verdict(task.as_deref(), index, change)?;
                let mut now = task.take().map(Rc::unwrap_or_clone);
                let done = self.enact(&mut now, index, change, &step);
                if let Some(now) = &mut now {
                    now.comments.clear();
                }
                *task = now.map(Rc::new);
                done.map(|_| step).map_err(|refusal| refusal.to_string())
            })
            .collect()
    }
}

impl Outcome {
    fn note(&mut self, done: Result<Vec<Beside>, String>) {
        match done {
            Ok(beside) => {
                self.refused.push(None);
                self.beside.extend(beside);
            }
            Err(why) => self.refused.push(Some(why)),
        }
    }
}

/// A stretch of events of which some are concurrent.
struct Stretch<'a> {
    judge: &'a Judge<'a>,
    /// The events, by place.
    indexes: &'a [usize],
    relations: Relations,
    /// The state that every one of them has seen.
    base: Option<Rc<Task>>,
    /// What each change is to its author.
    verdicts: Vec<Vec<Verdict>>,
}

/// The move that outweighs what has less weight.
#[derive(Clone, Copy)]
struct Floor<'a> {
    power: u8,
    change: &'a Change,
    author: Author<'a>,
}

impl<'a> Stretch<'a> {
    fn new(
        judge: &'a Judge<'a>,
        indexes: &'a [usize],
        parents: &[Vec<usize>],
        base: Option<Rc<Task>>,
        watch: &mut dyn FnMut(usize, Sight, &Task),
    ) -> Self {
        let mut stretch = Self {
            judge,
            indexes,
            relations: Relations::of(parents),
            base,
            verdicts: Vec::with_capacity(indexes.len()),
        };
        let mut uses = vec![0_usize; indexes.len()];
        let newest: Vec<_> = parents
            .iter()
            .map(|own| stretch.relations.newest(own))
            .collect();
        for own in newest.iter().filter(|own| own.len() == 1) {
            uses[own[0]] += 1;
        }
        // The state after each event, as its author had it, while another rests on that alone.
        let mut after: Vec<Option<Rc<Task>>> = Vec::with_capacity(indexes.len());
        let mut joined: BTreeMap<&[usize], Option<Rc<Task>>> = BTreeMap::new();
        for (place, index) in indexes.iter().enumerate() {
            let mut seen = match newest[place].as_slice() {
                [] => stretch.base.clone(),
                [parent] => {
                    uses[*parent] -= 1;
                    if uses[*parent] == 0 {
                        after[*parent].take()
                    } else {
                        after[*parent].clone()
                    }
                }
                several => joined
                    .entry(several)
                    .or_insert_with(|| stretch.joined(place))
                    .clone(),
            };
            stretch.verdicts.push(judge.verdicts(&mut seen, *index));
            if let Some(task) = &seen {
                watch(*index, Sight::Own, task);
            }
            after.push(seen.filter(|_| uses[place] > 0));
        }
        stretch
    }

    /// What the author of an event had seen, where that is several events that had not seen each
    /// other.
    fn joined(&self, place: usize) -> Option<Rc<Task>> {
        let mut task = self.base.as_deref().cloned();
        self.play(&mut task, self.relations.above(place), &mut |_, _, _| ());
        task.map(|mut task| {
            task.comments.clear();
            Rc::new(task)
        })
    }

    /// Gives these events of the stretch, which hold all that they have seen, their effects in order.
    fn play(
        &self,
        task: &mut Option<Task>,
        among: &Places,
        watch: &mut dyn FnMut(usize, Sight, &Task),
    ) -> Vec<Outcome> {
        let floors = self.floors(among);
        let mut outcomes: Vec<Outcome> = Vec::new();
        let (mut lost, mut late, mut won) = (Vec::new(), Vec::new(), Vec::new());
        for place in among.iter() {
            let index = self.indexes[place];
            let node = &self.judge.nodes[index];
            let mut outcome = Outcome::default();
            for (change, verdict) in node.changes.iter().zip(&self.verdicts[place]) {
                let floor = floors[place].filter(|floor| floor.power > change.weight());
                if let (Some(floor), Ok(_)) = (floor, verdict) {
                    let which = outcome.refused.len();
                    lost.push((outcomes.len(), which, place, floor));
                    outcome.note(Err(String::new()));
                    continue;
                }
                let done = self.place(task, index, change, verdict);
                let (power, author) = (change.power(), node.author);
                if done.is_ok() && power > 0 {
                    let stands = Floor {
                        power,
                        change,
                        author,
                    };
                    won.push((place, stands));
                } else if power > 0 && verdict.is_ok() {
                    late.push((outcomes.len(), outcome.refused.len(), place, power));
                }
                outcome.note(done);
            }
            if let Some(task) = task {
                watch(index, Sight::Placed, task);
            }
            outcomes.push(outcome);
        }
        for (at, which, place, floor) in lost {
            let (winner, follows) = self.winner(place, floor, &won, among);
            self.give_way(&mut outcomes[at], (place, which), winner, follows);
        }
        // Of equal moves the first in order has an effect, and stands against those behind it.
        for (at, which, place, power) in late {
            let beside = self.relations.beside(place, among);
            let stands = |(at, one): &&(usize, Floor<'_>)| one.power >= power && beside.has(*at);
            if let Some((_, winner)) = won.iter().find(stands) {
                self.give_way(&mut outcomes[at], (place, which), *winner, false);
            }
        }
        outcomes
    }

    /// The move that stands against a change that `floor` outweighs, and whether it rests on the change.
    /// Of equal moves only the first in order has an effect itself: that one is named.
    fn winner<'f>(
        &self,
        place: usize,
        floor: Floor<'f>,
        won: &[(usize, Floor<'f>)],
        among: &Places,
    ) -> (Floor<'f>, bool) {
        let is_floor = |(_, one): &(usize, Floor<'_>)| one.author.event == floor.author.event;
        if won.iter().any(is_floor) {
            return (floor, false);
        }
        let beside = self.relations.beside(place, among);
        let mut equal = won.iter().filter(|(_, one)| one.power >= floor.power);
        let follows = |at: usize| self.relations.above(at).has(place);
        match equal.clone().find(|(at, _)| beside.has(*at)) {
            Some((_, one)) => (*one, false),
            None => match equal.find(|(at, _)| follows(*at)) {
                Some((_, one)) => (*one, true),
                None => (floor, false),
            },
        }
    }

    /// Notes to what a change gave way.
    fn give_way(
        &self,
        outcome: &mut Outcome,
        (place, which): (usize, usize),
        winner: Floor<'_>,
        follows: bool,
    ) {
        let node = &self.judge.nodes[self.indexes[place]];
        let (what, by) = (winner.change.noun(), winner.author.principal.clone());
        let (lost, loser) = (node.changes[which].noun(), node.author.principal.clone());
        let event = winner.author.event;
        let why = if follows {
            Refusal::Followed {
                what,
                by,
                event,
                lost,
                loser,
            }
        } else {
            Refusal::Outweighed {
                what,
                by,
                event,
                lost,
                loser,
            }
        };
        outcome.refused[which] = Some(why.to_string());
        let to = GaveWay { to: event, follows };
        outcome.gave_way.insert(which, to);
    }

    fn place(
        &self,
        task: &mut Option<Task>,
        index: usize,
        change: &Change,
        verdict: &Verdict,
    ) -> Result<Vec<Beside>, String> {
        let step = verdict.as_ref().map_err(Clone::clone)?;
        let done = self.judge.enact(task, index, change, step);
        done.map_err(|refusal| refusal.to_string())
    }

    /// For each event, the most powerful move among those that were made at the same time and are
    /// not outweighed themselves.
    fn floors(&self, among: &Places) -> Vec<Option<Floor<'a>>> {
        let mut moves = Vec::new();
        for place in among.iter() {
            let node = &self.judge.nodes[self.indexes[place]];
            for (change, verdict) in node.changes.iter().zip(&self.verdicts[place]) {
                let power = change.power();
                if power > 0 && verdict.is_ok() {
                    let author = node.author;
                    moves.push((
                        place,
                        Floor {
                            power,
                            change,
                            author,
                        },
                    ));
                }
            }
        }
        // The most powerful first; it is stable, so of equal ones the first in order is named.
        moves.sort_by_key(|(_, floor)| std::cmp::Reverse(floor.power));
        let mut floors: Vec<Option<Floor<'a>>> = vec![None; self.indexes.len()];
        let mut open = among.clone();
        for (place, floor) in moves {
            if floors[place].is_some_and(|above| above.power > floor.power) {
                continue;
            }
            let beside = self.relations.beside(place, &open);
            for other in beside.iter() {
                floors[other] = Some(floor);
            }
            open.take_out(&beside);
        }
        floors
    }
}
