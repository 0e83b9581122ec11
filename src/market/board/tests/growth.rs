//! The steps of a board beside many jobs, counted in comparisons.

use fastrand::Rng;

use super::*;
use crate::market::board::ticket::STEPS;

/// A board with all its rules, on which so many jobs wait.
struct Filled {
    board: Board<u64, ()>,
    random: Rng,
    now: Instant,
    tickets: Vec<JobTicket>,
    serving: Vec<JobTicket>,
}

impl Filled {
    fn new(rules: BoardRules, jobs: usize) -> Self {
        let mut filled = Filled {
            board: Board::new(rules),
            random: Rng::with_seed(jobs as u64),
            now: START,
            tickets: Vec::new(),
            serving: Vec::new(),
        };
        for _ in 0..jobs {
            filled.add();
        }
        filled
    }

    /// Adds a job: one in four without a key, one in four of the same key, one in two later.
    fn add(&mut self) {
        let random = &mut self.random;
        let key = match random.u8(0..4) {
            0 => None,
            1 => Some(0),
            _ => Some(random.u64(1..100_000)),
        };
        let delay = Duration::from_micros(random.u64(0..100_000));
        let delay = if random.bool() { delay } else { Duration::ZERO };
        let priority = random.u32(0..9);
        let mut key = key.map(|key| HashedKey::new(key * 0x9e37_79b9, key));
        let place = place(self.board.number(), priority, self.now + delay);
        let found = self.board.find(&key);
        let ticket = self.board.add(found, &mut key, place, self.now, ());
        self.tickets.push(ticket);
    }

    /// Does one step. Returns how many moments may pass in it.
    fn step(&mut self) -> usize {
        match self.random.u8(0..6) {
            0 => self.add(),
            1 | 2 => self
                .serving
                .extend(self.board.take(self.now).map(|it| it.0)),
            3 if !self.serving.is_empty() => {
                let at = self.random.usize(..self.serving.len());
                let ticket = self.serving.swap_remove(at);
                if self.random.bool() {
                    let due = self.now + Duration::from_micros(self.random.u64(0..1000));
                    self.board.again(ticket, due, self.now, ());
                } else {
                    drop(self.board.done(ticket, self.now));
                }
            }
            4 => {
                let at = self.random.usize(..self.tickets.len());
                let ticket = self.tickets.swap_remove(at);
                let _ = self.board.remove(ticket, self.now);
            }
            _ => {
                self.now = self.now + Duration::from_micros(10);
                self.board.release(self.now, &mut Vec::new());
                return super::super::RELEASES;
            }
        }
        1
    }
}

#[test]
fn no_step_looks_at_more_beside_a_million_jobs_than_its_logarithm() {
    let jobs: usize = if cfg!(miri) { 100 } else { 1_000_000 };
    let rules = BoardRules {
        aging: Some(Duration::from_millis(1)),
        rate: Some((2, Duration::from_millis(20))),
        reserved: Some((5, 50)),
        ..BoardRules::plain(usize::MAX)
    };
    let mut filled = Filled::new(rules, jobs);
    assert_eq!(filled.board.len(), jobs);
    // Each move of a job visits up to five trees, of which a node has up to 11 entries.
    let most = 40 * jobs.ilog2() as usize;
    let mut done = 0;
    for _ in 0..20_000 {
        STEPS.set(0);
        let passed = filled.step();
        let steps = STEPS.get();
        assert!(steps <= most * passed, "{steps} comparisons in a step");
        done += steps;
    }
    assert!(done > 20_000, "the steps are not counted");
}
