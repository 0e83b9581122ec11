//! The cases without actors: plain tasks on any executor that can await them.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::cases::Case;
use crate::executors::{Executor, inside};
use crate::figures::{self, Figure, check, nanoseconds, percentiles, sum_below};
use crate::process::{LiveTasks, voluntary_switches};
use crate::sizes;

/// Runs one case.
pub fn run<E: Executor>(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::TaskYield => inside::<E, _>(task_yield::<E>()),
        Case::TaskSpawn => inside::<E, _>(task_spawn::<E>()),
        Case::TaskRecursive => inside::<E, _>(task_recursive::<E>()),
        Case::TaskBytes => inside::<E, _>(task_bytes::<E>()),
        Case::OutsideWake => outside_wake::<E>(),
        Case::Steal => inside::<E, _>(steal::<E>(|_| sizes::STOLEN_WORK)),
        Case::Unequal => inside::<E, _>(steal::<E>(sizes::unequal_work)),
        _ => return None,
    })
}

async fn task_yield<E: Executor>() -> Vec<Figure> {
    let begin = Instant::now();
    for _ in 0..sizes::YIELDS {
        E::yield_now().await;
    }
    vec![nanoseconds(figures::YIELD, sizes::YIELDS, begin)]
}

async fn task_spawn<E: Executor>() -> Vec<Figure> {
    let (begin, mut sum) = (Instant::now(), 0);
    for n in 0..sizes::TASKS {
        sum += E::spawn(async move { n }).await;
    }
    let awaited = nanoseconds(figures::AWAITED, sizes::TASKS, begin);
    check("sum", sum, sum_below(sizes::TASKS));

    let mut tasks = Vec::with_capacity(sizes::TASKS as usize);
    let (begin, mut sum) = (Instant::now(), 0);
    tasks.extend((0..sizes::TASKS).map(|n| E::spawn(async move { n })));
    for task in tasks {
        sum += task.await;
    }
    let million = nanoseconds(figures::MILLION, sizes::TASKS, begin);
    check("sum", sum, sum_below(sizes::TASKS));
    vec![awaited, million]
}

/// Returns the number of tasks from this node down.
fn node<E: Executor>(depth: u32) -> E::Task<u64> {
    E::spawn(async move {
        if depth == 0 {
            return 1;
        }
        let (left, right) = (node::<E>(depth - 1), node::<E>(depth - 1));
        1 + left.await + right.await
    })
}

async fn task_recursive<E: Executor>() -> Vec<Figure> {
    let begin = Instant::now();
    let tasks = node::<E>(sizes::DEPTH).await;
    let figure = nanoseconds(figures::TREE, sizes::TREE, begin);
    check("tasks", tasks, sizes::TREE);
    vec![figure]
}

async fn task_bytes<E: Executor>() -> Vec<Figure> {
    static WAITING: AtomicU64 = AtomicU64::new(0);
    let mut tasks = Vec::with_capacity(sizes::PENDING as usize);
    let live = LiveTasks::now();
    tasks.extend((0..sizes::PENDING).map(|_| {
        E::spawn(async {
            WAITING.fetch_add(1, Ordering::Relaxed);
            pending::<()>().await;
        })
    }));
    while WAITING.load(Ordering::Relaxed) < sizes::PENDING {
        E::yield_now().await;
    }
    vec![live.growth(sizes::PENDING)]
}

/// Returns the speed-up over one worker that does nothing but the work of the tasks.
pub fn speed_up(begin: Instant, work: fn(u64) -> Duration) -> Figure {
    let time = begin.elapsed();
    let work: Duration = (0..sizes::STOLEN).map(work).sum();
    Figure {
        what: figures::SPEED_UP,
        value: work.as_secs_f64() / time.as_secs_f64(),
    }
}

/// Runs the case `steal`; `work` returns the length of the task with an index.
async fn steal<E: Executor>(work: fn(u64) -> Duration) -> Vec<Figure> {
    let begin = Instant::now();
    let spawn = |n| {
        let time = work(n);
        E::spawn(async move {
            figures::work(time);
            n
        })
    };
    let tasks: Vec<_> = (0..sizes::STOLEN).map(spawn).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await;
    }
    let figure = speed_up(begin, work);
    check("sum", sum, sum_below(sizes::STOLEN));
    vec![figure]
}

/// The data that the sleeping task of `outside_wake` shares with the thread that wakes it.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    /// Waits until [`ring`](Self::ring) is called.
    async fn rung(&self) {
        poll_fn(|cx| {
            *self.waker.lock().expect("not poisoned") = Some(cx.waker().clone());
            if self.rung.swap(false, Ordering::AcqRel) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn ring(&self) {
        let waker = self.waker.lock().expect("not poisoned").take();
        self.rung.store(true, Ordering::Release);
        waker.expect("the task waits").wake();
    }
}

#[expect(clippy::async_yields_async, reason = "the driver returns the task")]
fn outside_wake<E: Executor>() -> Vec<Figure> {
    let executor = E::start();
    let bell = Arc::new(Bell::default());
    let (polled, polls) = mpsc::channel();
    let sleeper = Arc::clone(&bell);
    let _task = executor.inside(async move {
        E::spawn(async move {
            for _ in 0..sizes::WAKES {
                sleeper.rung().await;
                polled.send(Instant::now()).expect("they are counted");
            }
        })
    });
    let (mut times, mut roused) = (Vec::new(), 0);
    for _ in 0..sizes::WAKES {
        thread::sleep(sizes::WAKE_EVERY);
        let before = voluntary_switches();
        let begin = Instant::now();
        bell.ring();
        let polled: Instant = polls.recv().expect("every wake is followed by a poll");
        times.push(polled.duration_since(begin));
        // By then every woken thread has gone back to sleep.
        thread::sleep(SLEEPY);
        roused += voluntary_switches() - before;
    }
    let roused = Figure {
        what: figures::ROUSED,
        value: roused as f64 / sizes::WAKES as f64,
    };
    vec![percentiles(times)[0], roused]
}

/// The maximum time in which a woken worker falls asleep again.
const SLEEPY: Duration = Duration::from_micros(500);
