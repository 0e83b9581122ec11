//! Random histories, each beside a naive board: a list that is walked.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;

use super::*;

const ROUNDS: usize = 600;

/// A job that waits on the naive board, or is served.
struct Known {
    key: Option<u64>,
    priority: u32,
    job: u64,
    /// When it was due first.
    due: Instant,
    /// When it may begin.
    from: Instant,
    ticket: JobTicket,
}

struct History {
    random: Rng,
    rules: BoardRules,
    board: Users,
    now: Instant,
    /// The keys and hashes to draw from.
    keys: u64,
    hashes: u64,
    waiting: Vec<Known>,
    serving: Vec<Known>,
    /// All starts of keys.
    starts: Vec<(u64, Instant)>,
    /// The keys that the board knows.
    known: BTreeSet<u64>,
    /// The tickets of all jobs, also of those that are gone.
    tickets: Vec<JobTicket>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut rules = BoardRules::plain([0, 0, 1, 6][random.usize(0..4)]);
        // One history in three has none of the options.
        if !seed.is_multiple_of(3) {
            let millis = |random: &mut Rng| Duration::from_millis(random.u64(1..30));
            rules.aging = random.bool().then(|| millis(&mut random));
            rules.rate = random
                .bool()
                .then(|| (random.usize(1..4), millis(&mut random)));
            rules.reserved = random
                .bool()
                .then(|| (random.u32(0..4), random.usize(1..3)));
        }
        History {
            rules,
            board: Board::new(rules),
            now: START,
            keys: random.u64(1..12),
            hashes: random.u64(1..4),
            waiting: Vec::new(),
            serving: Vec::new(),
            starts: Vec::new(),
            known: BTreeSet::new(),
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

    /// Returns how many starts of a key count.
    fn counted(&self, key: u64) -> usize {
        let Some((_, per)) = self.rules.rate else {
            return 0;
        };
        let counts = |&&(of, start): &&(u64, Instant)| of == key && start + per > self.now;
        self.starts.iter().filter(counts).count()
    }

    /// Checks that the board gave back the keys that nothing has any more, and no others.
    fn check_keys(&mut self, keys: impl IntoIterator<Item = HashedKey<User>>) {
        let keys: BTreeSet<_> = keys.into_iter().map(|it| it.into_inner().0).collect();
        let has = |key: &u64| self.is_served(*key) || self.count(*key) + self.counted(*key) > 0;
        let known: BTreeSet<_> = (0..self.keys).filter(has).collect();
        let gone: BTreeSet<_> = self.known.difference(&known).copied().collect();
        assert_eq!(keys, gone);
        self.known = known;
    }

    fn is_admitted(&self, key: Option<u64>) -> bool {
        let Some(key) = key else { return true };
        let jobs = self.count(key) + usize::from(self.is_served(key));
        jobs <= self.rules.capacity_per_key
    }

    /// Draws when a job is due.
    fn draw_due(&mut self) -> Instant {
        let delay = match self.rules.aging.is_some() || self.random.bool() {
            true => self.random.u64(0..20).saturating_sub(9),
            false => 0,
        };
        self.now + Duration::from_millis(delay)
    }

    /// Adds a job, sometimes although it is not admitted, and sometimes after a panic.
    fn add(&mut self) {
        let (key, mut keyed) = self.draw_key();
        let is_known = key.is_some_and(|key| self.known.contains(&key));
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
        let due = self.draw_due();
        let (board, now) = (&mut self.board, self.now);
        let ticket = locked(|| {
            let found = board.find(&keyed);
            board.add(
                found,
                &mut keyed,
                place(number, priority, due),
                now,
                User(job),
            )
        });
        assert_eq!(name(keyed), key.filter(|_| is_known));
        assert!(self.tickets.iter().all(|it| it.number != ticket.number));
        self.tickets.push(ticket);
        self.waiting.push(Known {
            key,
            priority,
            job,
            due,
            from: due,
            ticket,
        });
        self.check_keys([]);
    }

    /// Returns whether one job goes before another: by its priority and what it has gained, then by
    /// its priority, then by its number.
    fn is_before(&self, one: &Known, other: &Known) -> bool {
        let urgency = |it: &Known| {
            let gained = self.rules.aging.map_or(0, |step| {
                let waited = self.now.nanos().cast_signed() - it.due.nanos().cast_signed();
                i128::from(waited) + i128::from(it.priority) * step.as_nanos() as i128
            });
            (gained, it.priority, u64::MAX - it.ticket.number)
        };
        urgency(one) > urgency(other)
    }

    /// Returns whether no worker is reserved for a job.
    fn is_other(&self, job: &Known) -> bool {
        let least = self.rules.reserved.map_or(0, |(priority, _)| priority);
        job.priority < least
    }

    /// Returns how many more jobs may be served for which no worker is reserved.
    fn others_left(&self) -> usize {
        let others = self.serving.iter().filter(|it| self.is_other(it)).count();
        self.rules.reserved.map_or(0, |(_, most)| most) - others
    }

    /// Returns where the jobs are that could be served, but for the workers: those that are due, of
    /// each key the first.
    fn ready(&self) -> Vec<usize> {
        let is_ready = |it: &Known| {
            let Some(key) = it.key else {
                return it.from <= self.now;
            };
            let is_first = |other: &Known| {
                other.key != it.key || other.from > self.now || !self.is_before(other, it)
            };
            let most = self.rules.rate.map_or(usize::MAX, |(starts, _)| starts);
            let is_free = !self.is_served(key) && self.counted(key) < most;
            it.from <= self.now && is_free && self.waiting.iter().all(is_first)
        };
        (0..self.waiting.len())
            .filter(|&at| is_ready(&self.waiting[at]))
            .collect()
    }

    /// Returns where the next job is: the first that no other one precedes.
    fn next(&self) -> Option<usize> {
        let has_others_left = self.others_left() > 0;
        let ready = self.ready().into_iter();
        let ready = ready.filter(|&at| has_others_left || !self.is_other(&self.waiting[at]));
        ready.reduce(
            |first, at| match self.is_before(&self.waiting[at], &self.waiting[first]) {
                true => at,
                false => first,
            },
        )
    }

    fn take(&mut self) {
        let taken = locked(|| self.board.take(self.now));
        let expected = self.next().map(|at| self.waiting.remove(at));
        assert_eq!(taken.is_some(), expected.is_some());
        if let Some(((ticket, job), expected)) = taken.zip(expected) {
            assert_eq!(job.0, expected.job);
            assert_eq!(ticket, expected.ticket);
            assert_eq!(ticket.slot.is_some(), expected.key.is_some());
            self.starts.extend(expected.key.map(|key| (key, self.now)));
            self.serving.push(expected);
        }
        self.check_keys([]);
    }

    /// Ends a job, or puts it back.
    fn done(&mut self, may_put_back: bool) {
        if self.serving.is_empty() {
            return;
        }
        let at = self.random.usize(..self.serving.len());
        let mut served = self.serving.swap_remove(at);
        let (ticket, now) = (served.ticket, self.now);
        if may_put_back && self.random.u8(0..4) == 0 {
            // The board sorts a job by when it was due first.
            let due = self.draw_due();
            let again = User(served.job);
            locked(|| self.board.again(ticket, due, now, again));
            served.from = due;
            self.waiting.push(served);
            return self.check_keys([]);
        }
        let key = locked(|| self.board.done(ticket, now));
        self.check_keys(key);
    }

    /// Lets some time pass.
    fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        let mut keys = Vec::new();
        while self.board.next_moment().is_some_and(|at| at <= self.now) {
            locked(|| self.board.release(self.now, &mut keys));
        }
        self.check_keys(keys);
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
        let expected = at.map(|at| self.waiting.remove(at).job);
        let removed = locked(|| self.board.remove(ticket, self.now));
        assert_eq!(removed.as_ref().map(|it| it.0.0), expected);
        self.check_keys(removed.and_then(|it| it.1));
    }

    fn clear(&mut self) {
        let (jobs, keys) = locked(|| self.board.clear());
        let mut jobs: Vec<_> = jobs.iter().map(|job| job.0).collect();
        jobs.sort_unstable();
        let mut expected: Vec<_> = self.waiting.iter().map(|it| it.job).collect();
        expected.sort_unstable();
        assert_eq!(jobs, expected);
        self.waiting.clear();
        self.rules.rate = None;
        self.check_keys(keys);
    }

    /// Returns how many jobs could be served now.
    fn runnable(&self) -> usize {
        let ready = self.ready();
        let others = ready
            .iter()
            .filter(|&&at| self.is_other(&self.waiting[at]))
            .count();
        ready.len() - others + others.min(self.others_left())
    }

    fn step(&mut self, is_rising: bool) {
        let (takes, ends) = if is_rising { (60, 90) } else { (180, 280) };
        let draw = self.random.u32(0..400);
        match draw {
            0 => self.clear(),
            1..30 => self.remove(),
            draw if draw < takes => self.take(),
            draw if draw < ends => self.done(true),
            330.. => self.pass(u64::from(draw % 5)),
            _ => self.add(),
        }
        assert_sound(&self.board);
        assert_eq!(self.board.len(), self.waiting.len());
        let later = self.waiting.iter().filter(|it| it.from > self.now);
        assert_eq!(self.board.later(), later.count());
        assert_eq!(self.board.runnable(), self.runnable());
    }

    /// Serves and ends all that is left.
    fn end(&mut self) {
        while !self.waiting.is_empty() || !self.serving.is_empty() {
            self.take();
            self.done(false);
            self.pass(1);
        }
        self.pass(30);
        assert!(self.board.keys.walk().is_empty());
    }
}

#[test]
fn random_histories_agree_with_a_naive_board() {
    let mut most = 0;
    for seed in 0..200 {
        let run = || {
            let mut history = History::new(seed);
            for step in 0..ROUNDS {
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
