//! The steps of the items: their time and memory, or marks for a program that counts instructions.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::task::AtomicWaker;
use peers::counting;

use super::instructions::marks;
use crate::figures::{self, Figure};

/// The number of items that all laps of a measurement have together, if one lap has fewer, and the
/// most laps.
const ITEMS: u64 = 100_000;
const LAPS: u64 = 2000;
/// The number of items that all laps have together while instructions are counted, and the most in
/// a lap after one that is not counted.
const ITEMS_COUNTED: u64 = 200;
const ITEMS_REPEATED: u64 = 1000;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Time, and in a first lap memory.
    Time,
    /// Instructions, which another program counts between the marks.
    Instructions,
}

/// Returns the number of laps whose instructions are counted.
pub fn laps_counted(count: u64) -> u64 {
    (ITEMS_COUNTED / count).max(1)
}

/// What a lap is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lap {
    /// Takes the memory from the system, and counts it. Later laps use it again, so that their time
    /// is that of an item alone.
    First,
    Measured,
}

/// The measurements of the steps of some items.
pub struct Meter {
    mode: Mode,
    count: u64,
    laps: Vec<Lap>,
    lap: Lap,
    measured: u64,
    begin: Instant,
    steps: Vec<(&'static str, Duration)>,
    bytes: f64,
}

impl Meter {
    pub fn new(mode: Mode, count: u64) -> Self {
        let measured = match mode {
            Mode::Time => (ITEMS / count).clamp(1, LAPS),
            Mode::Instructions => laps_counted(count),
        };
        let mut laps = vec![Lap::Measured; measured as usize];
        if mode == Mode::Time || count <= ITEMS_REPEATED {
            laps.push(Lap::First);
        }
        Meter {
            mode,
            count,
            laps,
            lap: Lap::First,
            measured,
            begin: Instant::now(),
            steps: Vec::new(),
            bytes: 0.0,
        }
    }

    /// Takes the measurements, for an actor that gives them back.
    pub fn taken(&mut self) -> Self {
        std::mem::replace(self, Meter::new(self.mode, self.count))
    }

    /// Returns the number of items.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the places of all items in random order.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.count()).collect();
        Rng::with_seed(self.count).shuffle(&mut order);
        order
    }

    /// Begins the next lap, if there is one.
    pub fn next_lap(&mut self) -> bool {
        let next = self.laps.pop();
        self.lap = next.unwrap_or(self.lap);
        next.is_some()
    }

    /// Begins the step that creates the items, whose memory is counted in the first lap.
    pub fn start_to_create(&mut self) {
        if self.lap == Lap::First {
            counting::start();
        }
        self.start();
    }

    /// Ends that step.
    pub fn created(&mut self, step: &'static str) {
        self.end(step);
        if self.lap == Lap::First {
            self.bytes = counting::stop().bytes as f64 / self.count as f64;
        }
    }

    /// Begins a step.
    pub fn start(&mut self) {
        if self.mode == Mode::Instructions && self.lap == Lap::Measured {
            marks::begin();
        }
        self.begin = Instant::now();
    }

    /// Ends a step.
    pub fn end(&mut self, step: &'static str) {
        let time = self.begin.elapsed();
        if self.lap != Lap::Measured {
            return;
        }
        if self.mode == Mode::Instructions {
            return marks::end(step);
        }
        match self.steps.iter_mut().find(|(name, _)| *name == step) {
            Some((_, sum)) => *sum += time,
            None => self.steps.push((step, time)),
        }
    }

    /// Returns the nanoseconds of each step for one item, and its bytes.
    pub fn figures(self) -> Vec<Figure> {
        let items = (self.measured * self.count) as f64;
        let steps = self.steps.into_iter();
        let steps = steps.map(|(step, time)| (step, time.as_secs_f64() * 1e9 / items));
        steps.chain([(figures::LIVE, self.bytes)]).collect()
    }
}

static COUNTED: AtomicU64 = AtomicU64::new(0);
static AWAITED: AtomicU64 = AtomicU64::new(u64::MAX);
static DRIVER: AtomicWaker = AtomicWaker::new();

/// Counts an item that has done its step. The last one wakes the driver.
pub fn count_one() {
    if COUNTED.fetch_add(1, Ordering::SeqCst) + 1 == AWAITED.load(Ordering::SeqCst) {
        DRIVER.wake();
    }
}

/// Waits until this many items have been counted since the last call.
pub async fn counted(count: usize) {
    let count = count as u64;
    poll_fn(|cx| {
        DRIVER.register(cx.waker());
        AWAITED.store(count, Ordering::SeqCst);
        if COUNTED.load(Ordering::SeqCst) < count {
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
    AWAITED.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(COUNTED.swap(0, Ordering::SeqCst), count, "counted");
}

/// Returns a waker that counts its calls.
pub fn counting_waker() -> Waker {
    struct Counter;

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            count_one();
        }
    }

    Waker::from(Arc::new(Counter))
}
