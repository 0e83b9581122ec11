//! Loopers, their locks and their world, on greenroom.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::looper::{Controller, ControllerBuilder, Guarded, Looper, Posted, TaskError};
use peers::machine::median;

use crate::executors::Executor;
use crate::executors::greenroom::Greenroom;
use crate::figures::{self, Figure, percentiles, work};
use crate::loopers::{Counters, Job, Jobs, Loopers, count, rounds};
use crate::sizes::{
    BUSY_LOOPERS, BUSY_LOOPERS_FOR, INJECT_EVERY, LANES, LAPS, LOOPER_LAP_ROUNDS, LOOPER_LOCKS,
    LOOPER_ROUNDS, LOOPERS, PRIORITIES, WAKE_EVERY, WAKES, WORKERS, WORLDS,
};

/// The loopers of a controller, with a priority each.
struct Table {
    loopers: Vec<(Looper, u8)>,
    counters: Counters,
    locks: Vec<Guarded<u64>>,
}

impl Table {
    /// Creates loopers that take these priorities in turns.
    fn new(builder: ControllerBuilder, priorities: u8) -> Self {
        let controller = builder.priorities(priorities - 1).build();
        let controller = controller.expect("a runtime is current");
        let priorities = (0..priorities).cycle().take(LOOPERS);
        Self {
            loopers: priorities.map(|own| (controller.looper(), own)).collect(),
            counters: Counters::new(),
            locks: (0..LOOPER_LOCKS).map(|_| controller.guarded(0)).collect(),
        }
    }
}

impl Loopers for Table {
    type Lost = TaskError;
    type Posted = Posted<u64>;

    fn post(&self, looper: usize, job: Job) -> Self::Posted {
        let (handle, priority) = &self.loopers[looper];
        let posting = handle.priority(*priority);
        let posted = match job {
            Job::Free => posting.post(self.counters.job(looper)).ok(),
            Job::Shared(lock) => posting.with(self.locks[lock].shared()).post(|n| *n).ok(),
            Job::Exclusive(lock) => posting.with(self.locks[lock].exclusive()).post(count).ok(),
        };
        posted.expect("the looper is open")
    }
}

/// Runs a case with one priority.
pub async fn loopers(jobs: Jobs) -> Vec<Figure> {
    let loopers = Table::new(Controller::builder(), 1);
    vec![rounds::<Greenroom>(figures::LOOPED, loopers, jobs, LOOPER_ROUNDS).await]
}

/// Lets two kinds of loopers take turns; returns the times of a job.
async fn beside(jobs: Jobs, kinds: [fn() -> Table; 2]) -> [f64; 2] {
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..LAPS {
        for (kind, times) in kinds.iter().zip(&mut times) {
            let lap = rounds::<Greenroom>(figures::LOOPED, kind(), jobs, LOOPER_LAP_ROUNDS);
            times.push(lap.await.value);
        }
    }
    times.map(|times| median(&times).expect("there are several").middle)
}

/// Runs the case `looper_priorities`.
pub async fn priorities() -> Vec<Figure> {
    let kinds: [fn() -> Table; 2] = [
        || Table::new(Controller::builder(), 1),
        || Table::new(Controller::builder(), PRIORITIES),
    ];
    let mut figures = Vec::new();
    for (jobs, what) in [
        (Jobs::Free, figures::BESIDE_ONE),
        (Jobs::MostlyShared, figures::SHARED_BESIDE_ONE),
        (Jobs::Exclusive, figures::EXCLUSIVE_BESIDE_ONE),
    ] {
        let [one, many] = beside(jobs, kinds).await;
        let value = one / many;
        figures.push(Figure { what, value });
    }
    figures
}

/// Runs the case `looper_lanes`.
pub async fn lanes() -> Vec<Figure> {
    let kinds: [fn() -> Table; 2] = [
        || Table::new(Controller::builder().lanes(WORKERS), 1),
        || Table::new(Controller::builder().lanes(LANES), 1),
    ];
    let [few, many] = beside(Jobs::Free, kinds).await;
    [(figures::LOOPED, many), (figures::BESIDE_FEW, many / few)]
        .map(|(what, value)| Figure { what, value })
        .into()
}

/// What the tasks of `looper_world` tell, and are told.
#[derive(Default)]
struct Load {
    /// Nanoseconds of the longest task that has ended since the last request.
    longest: AtomicU64,
    is_over: AtomicBool,
}

impl Load {
    /// Posts a task that works for a while and then posts the next one.
    fn post(self: Arc<Self>, looper: Looper) {
        let own = looper.clone();
        let posted = looper.post(move || {
            let begin = Instant::now();
            work(BUSY_LOOPERS_FOR);
            let taken = begin.elapsed().as_nanos() as u64;
            self.longest.fetch_max(taken, Ordering::Relaxed);
            if !self.is_over.load(Ordering::Relaxed) {
                self.post(own);
            }
        });
        drop(posted.expect("it is open"));
    }
}

/// Runs the case `looper_world`.
pub fn world() -> Vec<Figure> {
    let runtime = Greenroom::start().0;
    let controller = Controller::builder().on(&runtime).build();
    let controller = controller.expect("it has all options");
    let looper = controller.looper();
    let wakes = (0..WAKES).map(|_| {
        thread::sleep(WAKE_EVERY);
        let begin = Instant::now();
        let posted = looper.post(move || begin.elapsed().as_secs_f64() * 1e6);
        runtime
            .block_on(posted.expect("it is open"))
            .expect("no panic")
    });
    let wake = median(&wakes.collect::<Vec<_>>())
        .expect("there are several")
        .middle;
    let load = Arc::new(Load::default());
    (0..BUSY_LOOPERS).for_each(|_| load.clone().post(controller.looper()));
    let starts = (0..WORLDS).map(|_| {
        thread::sleep(INJECT_EVERY);
        let seen = load.clone();
        seen.longest.store(0, Ordering::Relaxed);
        let begin = Instant::now();
        let posted = controller
            .stop_the_world(move |_| (begin.elapsed(), seen.longest.load(Ordering::Relaxed)));
        runtime
            .block_on(posted.expect("it is open"))
            .expect("no panic")
    });
    let (starts, longest): (Vec<Duration>, Vec<u64>) = starts.unzip();
    load.is_over.store(true, Ordering::Relaxed);
    let mut shares: Vec<_> = starts
        .iter()
        .zip(&longest)
        .map(|(start, &longest)| start.as_secs_f64() * 1e6 / (2.0 * longest as f64 / 1e3 + wake))
        .collect();
    shares.sort_by(f64::total_cmp);
    let share = shares[shares.len() * 99 / 100];
    let mut figures = percentiles(starts);
    figures.extend(
        [(figures::WAKE, wake), (figures::OF_BOUND, share)]
            .map(|(what, value)| Figure { what, value }),
    );
    figures
}
