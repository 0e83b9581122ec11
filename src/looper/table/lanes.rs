//! What is ready, in a line for each priority, and the lanes that wait for it.
//!
//! A set bit for each line that is not empty finds the highest line in a few steps, whatever the
//! number of priorities. At most one lane at a time is being woken. It wakes the next one if it
//! finds more to do, so a burst of tasks does not wake all lanes at once.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use super::standby::Standby;
use crate::contain::KeptWaker;
use crate::instant::Instant;

pub(super) struct ReadyLines {
    lines: Box<[VecDeque<u32>]>,
    /// The lines that are not empty, the highest priority in the highest bit.
    filled: [u64; 4],
    len: usize,
    aging: Option<NonZeroU32>,
    turns: u32,
}

impl ReadyLines {
    pub(super) fn new(highest: u8, aging: u32) -> Self {
        ReadyLines {
            lines: (0..=highest).map(|_| VecDeque::new()).collect(),
            filled: [0; 4],
            len: 0,
            aging: NonZeroU32::new(aging),
            turns: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns 0 if it is empty, otherwise 1 more than the highest priority.
    pub(super) fn top(&self) -> u32 {
        let mut words = self.filled.iter().enumerate().rev();
        let top = words.find_map(|(at, &word)| Some(at as u32 * 64 + word.checked_ilog2()? + 1));
        top.unwrap_or(0)
    }

    pub(super) fn push(&mut self, priority: u8, looper: u32) {
        self.fill(priority).push_back(looper);
    }

    /// Puts a looper before all others of its priority.
    pub(super) fn push_first(&mut self, priority: u8, looper: u32) {
        self.fill(priority).push_front(looper);
    }

    pub(super) fn clear(&mut self) {
        self.lines.iter_mut().for_each(VecDeque::clear);
        self.filled = [0; 4];
        self.len = 0;
    }

    /// Removes a looper that is in the line of this priority.
    pub(super) fn remove(&mut self, priority: u8, looper: u32) {
        let line = &mut self.lines[usize::from(priority)];
        if let Some(at) = line.iter().position(|it| *it == looper) {
            line.remove(at);
            self.len -= 1;
            self.clear_if_empty(usize::from(priority));
        }
    }

    fn clear_if_empty(&mut self, priority: usize) {
        if self.lines[priority].is_empty() {
            self.filled[priority / 64] &= !(1 << (priority % 64));
        }
    }

    fn fill(&mut self, priority: u8) -> &mut VecDeque<u32> {
        self.len += 1;
        self.filled[usize::from(priority / 64)] |= 1 << (priority % 64);
        &mut self.lines[usize::from(priority)]
    }

    /// Takes the first looper of the highest priority or, at each turn that `aging` names, of the
    /// lowest.
    pub(super) fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        self.turns = self.turns.wrapping_add(1);
        // Each n-th choice is that of the lowest line, if `aging` is n.
        let is_lowest = self
            .aging
            .is_some_and(|aging| self.turns.is_multiple_of(aging.get()));
        let mut words = self.filled.iter().enumerate();
        let priority = if is_lowest {
            words.find_map(|(at, &word)| {
                Some(at * 64 + word.trailing_zeros() as usize).filter(|_| word != 0)
            })
        } else {
            words
                .rev()
                .find_map(|(at, &word)| Some(at * 64 + word.checked_ilog2()? as usize))
        }?;
        let looper = self.lines[priority].pop_front();
        self.clear_if_empty(priority);
        looper
    }
}

pub(in crate::looper) struct Lanes {
    /// The greatest number of lanes.
    limit: usize,
    made: usize,
    /// The wakers of the lanes that wait.
    idle: Vec<(usize, KeptWaker)>,
    /// A lane was woken and has not looked for work yet.
    is_waking: bool,
    /// One more lane is to be made.
    is_wanted: bool,
    pub(super) standby: Standby,
}

impl Lanes {
    pub(in crate::looper) fn new(limit: usize) -> Self {
        Lanes {
            limit,
            made: 0,
            idle: Vec::new(),
            is_waking: false,
            is_wanted: false,
            standby: Standby::new(),
        }
    }

    /// Returns the number of a new lane, which looks for work.
    pub(in crate::looper) fn make(&mut self) -> usize {
        self.is_wanted = false;
        self.is_waking = true;
        self.made += 1;
        self.made - 1
    }

    /// Returns whether a lane waits, or may be made.
    pub(in crate::looper) fn has_spare(&self) -> bool {
        !self.idle.is_empty() || self.made < self.limit
    }

    /// Returns whether one more lane is to be made.
    pub(in crate::looper) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Returns the waker of a lane that waits or, if one is to be made, of the steward.
    #[inline]
    pub(super) fn summon(&mut self, steward: &mut Option<KeptWaker>) -> Option<KeptWaker> {
        // A lane that stands by takes part soon if the others are stuck.
        let stands_by = self.standby.has_lane() && self.working() > 0;
        if self.is_waking || self.is_wanted || stands_by {
            return None;
        }
        if let Some((_, waker)) = self.idle.pop() {
            self.is_waking = true;
            return Some(waker);
        }
        self.is_wanted = self.made < self.limit;
        steward.take_if(|_| self.is_wanted)
    }

    /// Returns the number of lanes that neither wait nor stand by.
    fn working(&self) -> usize {
        self.made - self.idle.len() - usize::from(self.standby.has_lane())
    }

    /// Notes the end of a turn of a lane. Returns whether it stands by from now on.
    pub(in crate::looper) fn turn_ended(&mut self, lane: usize, now: Instant) -> bool {
        let may = !self.standby.has_lane() && !self.is_waking && self.working() > 1;
        may && self.standby.turn_ended(lane, now)
    }

    /// Returns whether the lane that stands by goes on doing so.
    pub(in crate::looper) fn goes_on(&mut self, now: Instant) -> bool {
        self.standby.goes_on(now)
    }

    /// Sets whether a lane is on its way. Returns whether one was.
    pub(in crate::looper) fn set_waking(&mut self, is_waking: bool) -> bool {
        std::mem::replace(&mut self.is_waking, is_waking)
    }

    /// Notes that a lane looks for work after it has waited.
    pub(in crate::looper) fn looks(&mut self, lane: usize) {
        let waits = self.idle.iter().position(|(idle, _)| *idle == lane);
        match waits {
            // It was polled without having been woken by the table.
            Some(at) => drop(self.idle.swap_remove(at)),
            None => self.is_waking = false,
        }
        self.standby.lanes_changed();
    }

    /// Notes that a lane waits.
    pub(in crate::looper) fn waits(&mut self, lane: usize, waker: KeptWaker) {
        self.idle.push((lane, waker));
        self.standby.lanes_changed();
    }

    /// Notes that the runtime has dropped a lane. It makes no others.
    pub(in crate::looper) fn lost(&mut self, lane: usize) {
        self.looks(lane);
        self.standby.lost(lane);
        self.limit = 0;
        self.is_wanted = false;
    }

    /// Takes the wakers of all lanes, so that they end.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = KeptWaker> {
        self.idle.drain(..).map(|(_, waker)| waker)
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use crate::looper::table::lanes::ReadyLines;

    #[test]
    fn a_choice_reads_four_words_and_only_the_line_that_it_takes_from() {
        for (aging, expected) in [(0, [3, 1, 2]), (1, [1, 2, 3])] {
            let mut ready = ReadyLines::new(u8::MAX, aging);
            for (priority, looper) in [(70, 1), (70, 2), (200, 3)] {
                ready.push(priority, looper);
            }
            // A choice that looked at the other lines would see loopers in them.
            for (priority, line) in ready.lines.iter_mut().enumerate() {
                if ![70, 200].contains(&priority) {
                    line.push_back(9);
                }
            }
            assert_eq!((ready.filled.len(), ready.top()), (4, 201));
            let order = [(); 3].map(|()| ready.pop());
            assert_eq!(order, expected.map(Some));
            assert_eq!((ready.pop(), ready.top()), (None, 0));
        }
    }
}
