//! What one end of a link has sent, taken and granted.
//!
//! - `FLOW-1`: a batch is taken only if all batches before it were taken.
//! - `FLOW-2`: an end sends a batch only if its grant is not used up, so at most one batch exceeds it.
//! - `FLOW-3`: all grants of a node that are not used up are [`BUDGET`] together, and a [`LEAST`] for
//!   each link.

use std::collections::VecDeque;

use super::packet::BatchNumbers;

/// The weight of all that may be under way to one node.
pub(super) const BUDGET: u64 = 16 << 20;

/// What each end may send before it was granted more.
pub(super) const LEAST: u64 = 64 << 10;

/// What a batch weighs besides its bytes. So the batches that may be under way are at most
/// `BUDGET / BATCH`, and as many for each `LEAST`.
pub(super) const BATCH: u64 = 512;

/// What a link that has carried nothing yet is granted at most. Then as much more as it has carried, so
/// that a link without use leaves the budget to others.
const FIRST: u64 = 1 << 20;

/// The weight that an end takes without a word. Senders wait when much is not acknowledged.
const UNTOLD: u64 = 512 << 10;

/// The state of one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flow {
    sent: u64,
    /// The number of the last batch that the other end has taken.
    acknowledged: u64,
    sent_weight: u64,
    acknowledged_weight: u64,
    /// The weights of the batches that the other end has not taken, the oldest one first.
    under_way: VecDeque<u64>,
    /// The weight that the other end lets this one send.
    granted: u64,
    taken: u64,
    taken_weight: u64,
    /// The weight that this end lets the other one send.
    given: u64,
    /// What the other end knows, if all comes there.
    told: Told,
}

/// What was sent last of `taken`, `taken_weight` and `given`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    taken: u64,
    taken_weight: u64,
    given: u64,
}

/// Why a link is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowError {
    /// A batch is missing.
    Gap,
    /// The other end sent more than it may, or says what cannot be.
    Broken,
}

impl Flow {
    pub(super) fn new() -> Flow {
        Flow {
            sent: 0,
            acknowledged: 0,
            sent_weight: 0,
            acknowledged_weight: 0,
            under_way: VecDeque::new(),
            granted: LEAST,
            taken: 0,
            taken_weight: 0,
            given: LEAST,
            told: Told {
                taken: 0,
                taken_weight: 0,
                given: LEAST,
            },
        }
    }

    /// Returns whether a batch may be sent (FLOW-2).
    pub(super) fn may_send(&self) -> bool {
        self.sent_weight < self.granted
    }

    /// Returns the bytes of the largest batch that does not exceed the grant.
    pub(super) fn room(&self) -> u64 {
        (self.granted.saturating_sub(self.sent_weight)).saturating_sub(BATCH)
    }

    /// Notes that a batch of so many bytes is sent now. Returns its numbers.
    pub(super) fn send(&mut self, bytes: usize) -> BatchNumbers {
        let weight = bytes as u64 + BATCH;
        self.sent += 1;
        self.sent_weight += weight;
        self.under_way.push_back(weight);
        self.numbers()
    }

    /// Returns the numbers to send now.
    pub(super) fn numbers(&mut self) -> BatchNumbers {
        self.told = Told {
            taken: self.taken,
            taken_weight: self.taken_weight,
            given: self.given,
        };
        BatchNumbers {
            sent: self.sent,
            taken: self.taken,
            granted: self.given,
            awaits: self.acknowledged < self.sent || !self.may_send(),
        }
    }

    /// Takes a batch of so many bytes (FLOW-1).
    pub(super) fn take(&mut self, numbers: BatchNumbers, bytes: usize) -> Result<(), FlowError> {
        if self.taken_weight >= self.given {
            return Err(FlowError::Broken);
        }
        if numbers.sent != self.taken + 1 {
            return Err(FlowError::Gap);
        }
        self.taken += 1;
        self.taken_weight += bytes as u64 + BATCH;
        self.acknowledge(numbers)
    }

    /// Takes the numbers of the other end, which follow all batches that it has sent.
    pub(super) fn compare(&mut self, numbers: BatchNumbers) -> Result<(), FlowError> {
        if numbers.sent != self.taken {
            return Err(FlowError::Gap);
        }
        self.acknowledge(numbers)
    }

    fn acknowledge(&mut self, numbers: BatchNumbers) -> Result<(), FlowError> {
        if numbers.taken > self.sent {
            return Err(FlowError::Broken);
        }
        // Both count in order, so a number that goes back was overtaken.
        let taken = (numbers.taken.checked_sub(self.acknowledged)).ok_or(FlowError::Gap)?;
        // There are as many as batches that were sent and not acknowledged.
        self.acknowledged_weight += self.under_way.drain(..taken as usize).sum::<u64>();
        self.acknowledged = numbers.taken;
        self.granted = self.granted.max(numbers.granted);
        Ok(())
    }

    /// Returns the weight of what the other end has not taken.
    pub(super) fn weight_under_way(&self) -> u64 {
        self.sent_weight - self.acknowledged_weight
    }

    /// Returns what the other end may send.
    pub(super) fn outstanding(&self) -> u64 {
        self.given.saturating_sub(self.taken_weight)
    }

    /// Grants the other end as much as `share`, and within what others have left of the budget
    /// (FLOW-3). Returns whether the other end is to know that at once, since it may wait for it.
    pub(super) fn grant(&mut self, share: u64, others: u64) -> bool {
        let most = (share.min(BUDGET.saturating_sub(others)))
            .min(FIRST + self.taken_weight)
            .max(LEAST);
        self.given = self.given.max(self.taken_weight + most);
        let known = self.told.given.saturating_sub(self.taken_weight);
        let is_short = self.given > self.told.given && known < most / 2;
        is_short || self.taken_weight - self.told.taken_weight >= UNTOLD
    }

    /// Returns whether the other end has not acknowledged all that was sent, or does not know what was
    /// taken.
    pub(super) fn is_under_way(&self) -> bool {
        self.acknowledged < self.sent || self.told.taken < self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(from: &mut Flow, to: &mut Flow, bytes: usize) -> Result<(), FlowError> {
        let numbers = from.send(bytes);
        to.take(numbers, bytes)
    }

    #[test]
    fn what_is_sent_is_under_way_until_the_other_end_has_said_that_it_was_taken() {
        let (mut a, mut b) = (Flow::new(), Flow::new());
        exchange(&mut a, &mut b, 100).unwrap();
        exchange(&mut a, &mut b, 200).unwrap();
        assert_eq!(a.weight_under_way(), 300 + 2 * BATCH);
        assert!(a.is_under_way() && b.is_under_way());
        a.compare(b.numbers()).unwrap();
        assert_eq!(a.weight_under_way(), 0);
        assert!(!a.is_under_way() && !b.is_under_way());
    }

    #[test]
    fn a_batch_that_was_lost_is_a_gap_at_the_next_batch_and_at_the_next_numbers() {
        let (mut a, mut b) = (Flow::new(), Flow::new());
        exchange(&mut a, &mut b, 1).unwrap();
        let _lost = a.send(1);
        assert_eq!(b.clone().compare(a.numbers()), Err(FlowError::Gap));
        assert_eq!(exchange(&mut a, &mut b, 1), Err(FlowError::Gap));
    }

    #[test]
    fn a_batch_that_comes_twice_or_late_is_a_gap() {
        let (mut a, mut b) = (Flow::new(), Flow::new());
        let (first, second) = (a.send(1), a.send(1));
        assert_eq!(b.clone().take(second, 1), Err(FlowError::Gap));
        b.take(first, 1).unwrap();
        assert_eq!(b.take(first, 1), Err(FlowError::Gap));
    }

    #[test]
    fn an_end_sends_no_more_than_it_was_granted_and_one_batch() {
        let (mut a, mut b) = (Flow::new(), Flow::new());
        let mut sent = 0;
        while a.may_send() {
            exchange(&mut a, &mut b, 1000).unwrap();
            sent += 1000 + BATCH;
        }
        assert!((LEAST..LEAST + 1000 + BATCH).contains(&sent), "{sent}");
        assert_eq!(exchange(&mut a, &mut b, 1), Err(FlowError::Broken));
        assert!(b.grant(BUDGET, 0));
        a.compare(b.numbers()).unwrap();
        assert!(a.may_send());
    }

    #[test]
    fn all_grants_of_a_node_are_its_budget_and_the_least_for_each_link() {
        let mut ends = vec![Flow::new(); 50];
        let share = BUDGET / 50;
        for round in 0..500 {
            for at in 0..ends.len() {
                let total: u64 = ends.iter().map(Flow::outstanding).sum();
                let end = &mut ends[at];
                let others = total - end.outstanding();
                // The first ones were granted when there were no others.
                let share = if round == 0 {
                    BUDGET / (at as u64 + 1)
                } else {
                    share
                };
                end.grant(share, others);
                let total = others + end.outstanding();
                assert!(total <= BUDGET + 50 * LEAST, "{total}");
            }
            for end in &mut ends {
                let mut other = Flow::new();
                other.granted = end.given;
                (other.sent, other.sent_weight) = (end.taken, end.taken_weight);
                if other.may_send() {
                    let numbers = BatchNumbers {
                        taken: 0,
                        ..other.send(50_000)
                    };
                    end.take(numbers, 50_000).unwrap();
                }
            }
        }
        assert!(ends.iter().all(|end| end.outstanding() <= share.max(LEAST)));
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let mut a = Flow::new();
        let _sent = a.send(1);
        let (sent, granted, awaits) = (0, LEAST, false);
        for taken in [2, u64::MAX] {
            let numbers = BatchNumbers {
                sent,
                taken,
                granted,
                awaits: false,
            };
            assert_eq!(a.compare(numbers), Err(FlowError::Broken));
        }
        let taken = 1;
        a.compare(BatchNumbers {
            sent,
            taken,
            granted,
            awaits,
        })
        .unwrap();
        let taken = 0;
        let late = BatchNumbers {
            sent,
            taken,
            granted,
            awaits,
        };
        assert_eq!(a.compare(late), Err(FlowError::Gap));
    }
}
