//! What a walk remembers of each live cell, so that the next walk finds what has changed.
//!
//! A mark is the number of a cell and a hash of its state. So a cell that did not change costs a look
//! and a comparison, and no memory is allocated for it. A cell that has ended is missed in its slot,
//! or another one is there.
//!
//! A walk holds the lock of a shard for one cell at a time.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};

use super::table::NextCell;
use super::{LiveCells, PeekedCell, SeenActor};
use crate::directory::HashSeeds;
use crate::task::{Look, NotedWaits, TaskInfo};

/// The marks of the cells of a list, by shard and slot.
#[derive(Default)]
pub(crate) struct CellMarks(Vec<Vec<CellMark>>);

/// The number of the cell in a slot, or 0, and a hash of its state.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct CellMark {
    id: u64,
    state: u64,
}

/// How a walk looks at cells, and what it finds.
pub(crate) struct MarkedWalk<'a> {
    pub(crate) seeds: &'a HashSeeds,
    /// Whether cells are reported that did not change.
    pub(crate) is_whole: bool,
    /// What else belongs to the state of the cell with this number.
    pub(crate) beside: &'a dyn Fn(u64, &Look) -> u64,
    /// The numbers of cells of which something else has changed since the look before.
    pub(crate) registered: &'a HashSet<u64>,
    /// Gets each cell, and whether it is new or has changed.
    pub(crate) each: &'a mut dyn FnMut(SeenActor, bool),
    /// The numbers of the cells that have ended.
    pub(crate) ended: Vec<u64>,
}

impl CellMarks {
    /// Looks at all cells, and reports those that have changed since the look before.
    pub(crate) fn look_again(&mut self, live: &LiveCells, walk: &mut MarkedWalk<'_>) {
        self.0.resize_with(live.shards(), Vec::new);
        for (shard, marks) in self.0.iter_mut().enumerate() {
            let mut from = 0;
            loop {
                let judge = |key, cell: PeekedCell<'_>| walk.judge(&cell, mark_at(marks, key));
                match live.peek(shard, from, judge) {
                    NextCell::Cell(key, judged) => {
                        end(marks, from, key, &mut walk.ended);
                        judged.note(marks, key, walk);
                        from = key + 1;
                    }
                    NextCell::Free(next) => {
                        end(marks, from, next, &mut walk.ended);
                        from = next;
                    }
                    NextCell::End => break,
                }
            }
            end(marks, from, usize::MAX, &mut walk.ended);
            marks.truncate(from);
            if marks.capacity() > KEPT.max(4 * from) {
                marks.shrink_to(2 * from);
            }
        }
    }

    /// Reports that all cells have ended.
    pub(crate) fn end(&mut self, ended: &mut Vec<u64>) {
        for marks in &mut self.0 {
            end(marks, 0, usize::MAX, ended);
        }
    }

    /// Looks for the cells that `wanted` has no answer for, among those of the last walk.
    pub(crate) fn find(&self, live: &LiveCells, wanted: &mut HashMap<u64, Option<TaskInfo>>) {
        for (shard, marks) in self.0.iter().enumerate() {
            for (key, mark) in marks.iter().enumerate() {
                if mark.id != 0
                    && let Some(missing @ None) = wanted.get_mut(&mark.id)
                    && let NextCell::Cell(_, info) = live.peek(shard, key, |_, cell| {
                        (cell.id() == mark.id).then(|| cell.info())
                    })
                {
                    *missing = info;
                }
            }
        }
    }
}

/// The most marks for which a shard keeps memory when it shrinks.
const KEPT: usize = 1024;

fn mark_at(marks: &[CellMark], key: usize) -> CellMark {
    marks.get(key).copied().unwrap_or_default()
}

/// Reports the ends of the cells that were in these slots.
fn end(marks: &mut [CellMark], from: usize, to: usize, ended: &mut Vec<u64>) {
    let to = to.min(marks.len());
    for mark in marks.get_mut(from..to).unwrap_or_default() {
        if mark.id != 0 {
            ended.push(mark.id);
            *mark = CellMark::default();
        }
    }
}

/// What was found in a slot, to be noted without the lock.
struct Judged {
    before: CellMark,
    now: CellMark,
    has_changed: bool,
    seen: Option<SeenActor>,
}

impl Judged {
    fn note(self, marks: &mut Vec<CellMark>, key: usize, walk: &mut MarkedWalk<'_>) {
        let Judged {
            before,
            now,
            has_changed,
            seen,
        } = self;
        if before != now {
            if marks.len() <= key {
                marks.resize(key + 1, CellMark::default());
            }
            marks[key] = now;
            if before.id != 0 && before.id != now.id {
                walk.ended.push(before.id);
            }
        }
        if let Some(seen) = seen {
            (walk.each)(seen, has_changed);
        }
    }
}

impl MarkedWalk<'_> {
    fn judge(&self, cell: &PeekedCell<'_>, before: CellMark) -> Judged {
        let (id, look) = (cell.id(), cell.look());
        // While it receives, nothing else that it waits for is known.
        let waits = match look.is_dormant && !look.is_receiving {
            true => cell.waits(),
            false => NotedWaits::NONE,
        };
        let state = self.hash(&look, &waits, (self.beside)(id, &look));
        let now = CellMark { id, state };
        let has_changed = before != now || self.registered.contains(&id);
        let seen = (self.is_whole || has_changed).then(|| SeenActor {
            info: cell.info(),
            look,
            waits,
        });
        Judged {
            before,
            now,
            has_changed,
            seen,
        }
    }

    /// Returns a hash of what a report shows.
    fn hash(&self, look: &Look, waits: &NotedWaits, beside: u64) -> u64 {
        let flags = [look.is_dormant, look.is_receiving, look.has_handle];
        let flags = flags
            .iter()
            .fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        let mut hasher = self.seeds.build_hasher();
        for word in [
            flags,
            look.mailbox as u64,
            look.addresses as u64,
            look.incarnation,
            look.displaced,
            look.turns,
            look.messages,
            look.highest as u64,
            look.parent.unwrap_or_default(),
            // A name is a constant, so its address says which one it is.
            look.state.map_or(0, |name| name.as_ptr().addr() as u64),
            beside,
        ] {
            hasher.write_u64(word);
        }
        if look.is_dormant && !look.is_receiving {
            // Of the other references a report says only whether it knows all.
            hasher.write_u32(look.others);
            waits.as_slice().hash(&mut hasher);
        }
        hasher.finish()
    }
}
