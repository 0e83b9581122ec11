//! Random histories, each beside a naive board: a list that is walked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;

use super::*;

const STEPS: usize = 600;

/// A job that waits on the naive board.
struct Waiting {
    key: Option<u64>,
    priority: u32,
    job: u64,
    ticket: JobTicket,
}

/// A job that is served.
struct Serving {
    key: Option<u64>,
    ticket: JobTicket,
}

struct History {
    random: Rng,
    capacity_per_key: usize,
    board: Users,
    /// The keys and hashes to draw from.
    keys: u64,
    hashes: u64,
    waiting: Vec<Waiting>,
    serving: Vec<Serving>,
    /// The tickets of all jobs, also of those that are gone.
    tickets: Vec<JobTicket>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let capacity_per_key = [0, 0, 1, 6][random.usize(0..4)];
        History {
            capacity_per_key,
            board: Board::new(capacity_per_key),
            keys: random.u64(1..12),
            hashes: random.u64(1..4),
            waiting: Vec::new(),
            serving: Vec::new(),
            tickets: Vec::new(),
            random,
        }
    }

    fn draw_key(&mut self) -> (Option<u64>, Option<HashedKey<User>>) {
        let key = self.random.u64(0..self.keys + self.keys.div_ceil(4));
        let key = Some(key).filter(|key| *key < self.keys);
        let hash = |key: u64| (key % self.hashes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (key, key.map(|key| HashedKey::new(hash(key), User(key))))
    }

    fn is_served(&self, key: u64) -> bool {
        self.serving.iter().any(|it| it.key == Some(key))
    }

    fn count(&self, key: u64) -> usize {
        let same = self.waiting.iter().filter(|it| it.key == Some(key));
        same.count()
    }

    /// Returns the key if nothing has it any more.
    fn last(&self, key: Option<u64>) -> Option<u64> {
        key.filter(|&key| !self.is_served(key) && self.count(key) == 0)
    }

    fn is_admitted(&self, key: Option<u64>) -> bool {
        let Some(key) = key else { return true };
        let (is_served, count) = (self.is_served(key), self.count(key));
        count < self.capacity_per_key + usize::from(!is_served)
    }

    /// Adds a job, sometimes although it is not admitted, and sometimes after a panic.
    fn add(&mut self) {
        let (key, mut keyed) = self.draw_key();
        let is_known = key.is_some() && self.last(key).is_none();
        if self.random.u8(0..8) == 0 {
            PANICS_AT.set(self.random.usize(1..3));
            let board = &self.board;
            let find = || locked(|| board.is_admitted(board.find(&keyed)));
            // A panic changes nothing, which the next steps show.
            let _ = catch_unwind(AssertUnwindSafe(find));
            PANICS_AT.set(0);
        }
        let is_admitted = locked(|| self.board.is_admitted(self.board.find(&keyed)));
        assert_eq!(is_admitted, self.is_admitted(key));
        if !is_admitted && self.random.u8(0..4) > 0 {
            return;
        }
        let priority = [0, 1, 2, u32::MAX][self.random.usize(0..4)];
        let job = self.tickets.len() as u64;
        let number = self.board.number();
        let board = &mut self.board;
        let ticket = locked(|| {
            let found = board.find(&keyed);
            board.add(found, &mut keyed, number, priority, User(job))
        });
        assert_eq!(name(keyed), key.filter(|_| is_known));
        assert!(self.tickets.iter().all(|it| it.number != ticket.number));
        self.tickets.push(ticket);
        self.waiting.push(Waiting {
            key,
            priority,
            job,
            ticket,
        });
    }

    /// Returns where the next job is: the first that no other one precedes.
    fn next(&self) -> Option<usize> {
        let mut next: Option<usize> = None;
        for (at, it) in self.waiting.iter().enumerate() {
            let is_free = it.key.is_none_or(|key| !self.is_served(key));
            if is_free && next.is_none_or(|next| it.priority > self.waiting[next].priority) {
                next = Some(at);
            }
        }
        next
    }

    fn take(&mut self) {
        let taken = locked(|| self.board.take());
        let expected = self.next().map(|at| self.waiting.remove(at));
        assert_eq!(taken.is_some(), expected.is_some());
        if let Some(((ticket, job), expected)) = taken.zip(expected) {
            assert_eq!(job.0, expected.job);
            assert_eq!(ticket, expected.ticket);
            assert_eq!(ticket.slot.is_some(), expected.key.is_some());
            let key = expected.key;
            self.serving.push(Serving { key, ticket });
        }
    }

    fn done(&mut self) {
        if !self.serving.is_empty() {
            let at = self.random.usize(..self.serving.len());
            let Serving { key, ticket } = self.serving.swap_remove(at);
            assert_eq!(done(&mut self.board, ticket), self.last(key));
        }
    }

    /// Removes a job by a ticket of the last 50, or of a job that waits.
    fn remove(&mut self) {
        let recent = self.tickets.len().saturating_sub(50);
        let ticket = match self.random.choice(&self.waiting) {
            Some(it) if self.random.bool() => it.ticket,
            _ => match self.random.choice(&self.tickets[recent..]) {
                Some(ticket) => *ticket,
                None => return,
            },
        };
        let at = self.waiting.iter().position(|it| it.ticket == ticket);
        let removed = at.map(|at| self.waiting.remove(at));
        let expected = removed.map(|it| (it.job, self.last(it.key)));
        assert_eq!(remove(&mut self.board, ticket), expected);
    }

    fn clear(&mut self) {
        let (jobs, keys) = locked(|| self.board.clear());
        let mut jobs: Vec<_> = jobs.iter().map(|job| job.0).collect();
        jobs.sort_unstable();
        let expected: Vec<_> = self.waiting.iter().map(|it| it.job).collect();
        assert_eq!(jobs, expected);
        let mut keys: Vec<_> = keys.into_iter().map(|keyed| keyed.into_inner().0).collect();
        keys.sort_unstable();
        let waiting = std::mem::take(&mut self.waiting);
        let expected = waiting.into_iter().filter_map(|it| self.last(it.key));
        let mut expected: Vec<_> = expected.collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(keys, expected);
    }

    /// Returns how many jobs could be served now.
    fn runnable(&self) -> usize {
        let keyless = self.waiting.iter().filter(|it| it.key.is_none());
        let keys = (0..self.keys).filter(|key| !self.is_served(*key) && self.count(*key) > 0);
        keyless.count() + keys.count()
    }

    fn step(&mut self, is_rising: bool) {
        let (takes, ends) = if is_rising { (60, 90) } else { (180, 280) };
        match self.random.u32(0..400) {
            0 => self.clear(),
            1..30 => self.remove(),
            draw if draw < takes => self.take(),
            draw if draw < ends => self.done(),
            _ => self.add(),
        }
        assert_sound(&self.board);
        assert_eq!(self.board.len(), self.waiting.len());
        assert_eq!(self.board.runnable(), self.runnable());
    }

    /// Serves and ends all that is left.
    fn end(&mut self) {
        while !self.waiting.is_empty() || !self.serving.is_empty() {
            self.take();
            self.done();
        }
        assert!(self.board.keys.walk().is_empty());
    }
}

#[test]
fn random_histories_agree_with_a_naive_board() {
    let mut most = 0;
    for seed in 0..200 {
        let run = || {
            let mut history = History::new(seed);
            for step in 0..STEPS {
                history.step(step / 150 % 2 == 0);
                most = most.max(history.waiting.len());
            }
            history.end();
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            eprintln!("failed: seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
    assert!(most > 30, "the boards were small: {most}");
}
