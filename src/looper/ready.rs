//! The loopers that are ready, in a line for each priority.
//!
//! A set bit for each line that is not empty finds the highest line in a few steps, whatever the
//! number of priorities.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use super::identity::Key;

pub(super) struct ReadyLines {
    lines: Box<[VecDeque<Key>]>,
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

    pub(super) fn push(&mut self, priority: u8, looper: Key) {
        self.fill(priority).push_back(looper);
    }

    /// Puts a looper before all others of its priority.
    pub(super) fn push_first(&mut self, priority: u8, looper: Key) {
        self.fill(priority).push_front(looper);
    }

    pub(super) fn clear(&mut self) {
        self.lines.iter_mut().for_each(VecDeque::clear);
        self.filled = [0; 4];
        self.len = 0;
    }

    /// Removes a looper that is in the line of this priority.
    pub(super) fn remove(&mut self, priority: u8, looper: Key) {
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

    fn fill(&mut self, priority: u8) -> &mut VecDeque<Key> {
        self.len += 1;
        self.filled[usize::from(priority / 64)] |= 1 << (priority % 64);
        &mut self.lines[usize::from(priority)]
    }

    /// Takes the first looper of the highest priority or, at each turn that `aging` names, of the
    /// lowest.
    pub(super) fn pop(&mut self) -> Option<Key> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        self.turns = self.turns.wrapping_add(1);
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

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use super::ReadyLines;

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
