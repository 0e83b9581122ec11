//! The table beside a sorted map, and what it keeps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::{CHILDREN, DeadlineKey, DeadlineKind, DeadlineTable, FIRED_AT_ONCE, KEPT_MAX, Timers};
use crate::contain::KeptWaker;
use crate::instant::Instant;

/// A waker that differs from others.
struct Bell;

impl Wake for Bell {
    fn wake(self: Arc<Self>) {}
}

/// A table beside a sorted map of the same deadlines.
#[derive(Default)]
struct Beside {
    table: DeadlineTable,
    /// By time and by the order of insertion.
    sorted: BTreeMap<(u64, usize), (DeadlineKey, DeadlineKind, Waker)>,
    inserted: usize,
}

impl Beside {
    fn insert(&mut self, at: u64, kind: DeadlineKind) {
        let waker = Waker::from(Arc::new(Bell));
        let (key, earliest) =
            self.table
                .insert(Instant::from_nanos(at), kind, KeptWaker::new(&waker));
        self.inserted += 1;
        let order = (at, self.inserted);
        self.sorted.insert(order, (key, kind, waker));
        assert_eq!(earliest, self.sorted.keys().next() == Some(&order));
    }

    fn remove(&mut self, nth: usize) -> Option<DeadlineKey> {
        let order = *self.sorted.keys().nth(nth)?;
        let (key, _, waker) = self.sorted.remove(&order)?;
        let removed = self.table.remove(key).expect("it is in the table");
        assert!(removed.will_wake(&waker), "it is the waker of another");
        Some(key)
    }

    /// Removes what is due, and returns how many that were.
    fn fire(&mut self, now: u64) -> usize {
        let before = self.sorted.len();
        while let Some(fired) = self.table.pop_due(Instant::from_nanos(now)) {
            let (order, (_, _, waker)) = self.sorted.pop_first().expect("one more is left");
            assert!(fired.will_wake(&waker), "it is not the earliest");
            assert!(order.0 <= now, "it is early");
        }
        before - self.sorted.len()
    }

    fn check(&self) {
        let first = self.sorted.keys().next();
        let first = first.map(|&(at, _)| Instant::from_nanos(at));
        assert_eq!(self.table.first(), first);
        assert_eq!(self.table.is_empty(), first.is_none());
        let timeouts = self.sorted.values();
        let timeouts = timeouts.filter(|(_, kind, _)| *kind == DeadlineKind::Timeout);
        assert_eq!(self.table.timeouts(), timeouts.count());
        for (index, entry) in self.table.heap.iter().enumerate() {
            let parent = index.saturating_sub(1) / CHILDREN;
            assert!(self.table.heap[parent] <= *entry, "TABLE-1");
            let slot = &self.table.slots[entry.slot as usize];
            assert_eq!(slot.index as usize, index, "TABLE-2");
        }
    }
}

#[test]
fn the_table_does_what_a_sorted_map_does() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut beside = Beside::default();
        let mut gone = Vec::new();
        for now in 0..400 {
            for _ in 0..random.usize(0..4) {
                let kind = [DeadlineKind::Event, DeadlineKind::Timeout][random.usize(0..2)];
                beside.insert(now + random.u64(0..50), kind);
            }
            if random.bool() {
                gone.extend(beside.remove(random.usize(0..40)));
            }
            if random.u32(0..8) == 0 {
                beside.fire(now);
            }
            for &key in &gone {
                assert!(beside.table.remove(key).is_none(), "its slot has another");
                assert!(beside.table.waker(key).is_none());
            }
            beside.check();
        }
        beside.fire(u64::MAX);
        beside.check();
    }
}

#[test]
fn deadlines_of_one_time_leave_in_the_order_in_which_they_came() {
    let mut beside = Beside::default();
    for _ in 0..100 {
        beside.insert(7, DeadlineKind::Event);
    }
    assert_eq!((beside.fire(6), beside.fire(7)), (0, 100));
}

#[test]
fn an_empty_table_gives_back_the_memory_of_many_deadlines() {
    let mut beside = Beside::default();
    for at in 0..=KEPT_MAX as u64 {
        beside.insert(at, DeadlineKind::Event);
    }
    assert!(beside.table.spare().is_none(), "it is not empty");
    beside.fire(u64::MAX);
    assert!(beside.table.spare().is_some());
    assert!(beside.table.spare().is_none(), "nothing is left");
    beside.insert(1, DeadlineKind::Event);
    beside.check();
}

#[test]
fn all_that_is_due_is_fired_also_if_it_is_much() {
    let (timers, at) = (Timers::new(), Instant::now());
    let many = 3 * FIRED_AT_ONCE;
    for _ in 0..many {
        let armed = timers.insert(at, DeadlineKind::Event, KeptWaker::noop());
        assert!(armed.is_some(), "the table is open");
    }
    assert_eq!(timers.fire(at), many);
    assert!(timers.is_empty());
}
