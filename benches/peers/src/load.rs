//! Busy actors that send messages to themselves: when they end, how many turns they had, and when
//! the machine took a core away from them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::sizes::{BUSY, BUSY_FOR, GAP};

/// The data that all busy actors share. The actors end soon after this is dropped.
#[derive(Default)]
pub struct Load(Arc<Shared>);

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    counts: [Count; BUSY],
    gaps: Gaps,
}

/// The number of turns of one actor, on its own cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

/// The part of the load for one busy actor.
pub struct Turns {
    shared: Arc<Shared>,
    index: usize,
}

impl Load {
    /// Returns the parts for all busy actors.
    pub fn shares(&self) -> impl Iterator<Item = Turns> {
        (0..BUSY).map(|index| Turns {
            shared: Arc::clone(&self.0),
            index,
        })
    }

    /// Runs `work`; returns its output and the number of turns a second meanwhile.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> (T, f64) {
        let (before, begin) = (self.turns(), Instant::now());
        let given = work.await;
        let time = begin.elapsed().as_secs_f64();
        (given, (self.turns() - before) as f64 / time)
    }

    /// Returns when a turn has taken longer than its work: then the worker had no core.
    pub fn gaps(&self) -> &Gaps {
        &self.0.gaps
    }

    fn turns(&self) -> u64 {
        let counts = self.0.counts.iter();
        counts.map(|count| count.0.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

impl Turns {
    /// Keeps the core busy for one message; returns whether another one should follow.
    pub fn take(&self) -> bool {
        let begin = Instant::now();
        let mut now = begin;
        while now - begin < BUSY_FOR {
            std::hint::spin_loop();
            now = Instant::now();
        }
        self.shared.gaps.note(begin..now);
        // Only this actor writes it, so it needs no read-modify-write.
        let count = &self.shared.counts[self.index].0;
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        !self.shared.over.load(Ordering::Relaxed)
    }
}

/// The times at which a thread that only reads the clock did not do so.
#[derive(Default)]
pub struct Gaps(Mutex<Vec<Range<Instant>>>);

impl Gaps {
    /// Records the time between two readings of the clock, if it is a gap.
    fn note(&self, readings: Range<Instant>) {
        if readings.end - readings.start > GAP {
            self.0.lock().expect("not poisoned").push(readings);
        }
    }

    /// Returns whether a gap overlaps this time.
    pub fn meet(&self, time: &Range<Instant>) -> bool {
        let gaps = self.0.lock().expect("not poisoned");
        let mut gaps = gaps.iter();
        gaps.any(|gap| gap.start < time.end && time.start < gap.end)
    }
}

/// A thread that only reads the clock.
pub struct Control {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Gaps>,
}

impl Control {
    /// Starts the thread.
    pub fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let (gaps, mut last) = (Gaps::default(), Instant::now());
            while !ended.load(Ordering::Relaxed) {
                let now = Instant::now();
                gaps.note(last..now);
                last = now;
            }
            gaps
        });
        Self { over, thread }
    }

    /// Ends the thread, and returns the gaps that it saw.
    pub fn end(self) -> Gaps {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn gap_meets_only_times_that_overlap_it() {
        let (gaps, begin) = (Gaps::default(), Instant::now());
        let at = |micros| begin + Duration::from_micros(micros);
        gaps.note(at(1000)..at(1000) + GAP);
        assert!(!gaps.meet(&(at(900)..at(2000))), "too short for a gap");
        gaps.note(at(1000)..at(2000));
        assert!(gaps.meet(&(at(900)..at(1001))));
        assert!(gaps.meet(&(at(1400)..at(1500))));
        assert!(!gaps.meet(&(at(900)..at(1000))));
        assert!(!gaps.meet(&(at(2000)..at(2100))));
    }

    #[test]
    fn a_busy_actor_ends_with_its_load() {
        let load = Load::default();
        let turns: Vec<_> = load.shares().collect();
        assert!(turns.iter().all(Turns::take));
        assert_eq!(load.turns(), BUSY as u64);
        drop(load);
        assert!(!turns[0].take());
    }
}
