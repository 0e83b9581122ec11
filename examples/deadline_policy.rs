//! This example shows a custom policy: the runnable with the earliest deadline goes first.
//!
//! Two kinds of actors are under load: many that work off reports, and a few that must handle an
//! alarm within 2 ms. Under the default policy an alarm waits behind all reports that were there
//! before it. Under `Deadlines` it waits for one. The program prints for both policies how many
//! alarms were handled in time, for example:
//!
//! ```text
//! default:   96 of 200 alarms in time
//! deadlines: 200 of 200 alarms in time
//! ```

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use greenroom::policy::{Duties, Policy, Runnable};
use greenroom::{Builder, Context, Handle, Runtime, spawn, time};

/// Earliest deadline first. The deadline of a task is the time at which it becomes ready plus the
/// budget of its priority.
#[derive(Default)]
struct Deadlines(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    heap: BinaryHeap<Reverse<Due>>,
    /// Counts all arrivals: among equal deadlines the first goes first.
    arrivals: u64,
}

struct Due {
    at: Instant,
    arrival: u64,
    runnable: Runnable,
}

impl Due {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.arrival)
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

impl Policy for Deadlines {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        let budget = match runnable.priority() {
            0 => Duration::from_millis(500),
            _ => IN_TIME,
        };
        let at = Instant::now() + budget;
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let arrival = queue.arrivals;
        queue.arrivals += 1;
        queue.heap.push(Reverse(Due {
            at,
            arrival,
            runnable,
        }));
    }

    /// Never waits: the runtime parks workers for which there is nothing.
    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.heap.pop().map(|Reverse(due)| due.runnable)
    }
}

const IN_TIME: Duration = Duration::from_millis(2);
const REPORTS: usize = 200;
const ALARMS: usize = 4;
const ROUNDS: usize = 50;

/// Works off reports; returns how many.
async fn report(mut cx: Context<()>) -> usize {
    let mut done = 0;
    while cx.recv().await.is_some() {
        burn(Duration::from_micros(50));
        done += 1;
    }
    done
}

/// Handles alarms; returns how many, and how many of them in time.
async fn alarm(mut cx: Context<Instant>) -> (usize, usize) {
    let (mut all, mut in_time) = (0, 0);
    while let Some(raised) = cx.recv().await {
        burn(Duration::from_micros(20));
        all += 1;
        in_time += usize::from(raised.elapsed() <= IN_TIME);
    }
    (all, in_time)
}

fn burn(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Runs the load; returns how many alarms there were, and how many were handled in time.
async fn load() -> (usize, usize) {
    let reports: Vec<Handle<(), usize>> = (0..REPORTS).map(|_| spawn!(report(_))).collect();
    let alarms: Vec<Handle<Instant, (usize, usize)>> = (0..ALARMS)
        .map(|_| spawn!(alarm(_), priority = 1))
        .collect();
    let mut ticks = time::Interval::new(Duration::from_millis(10));
    for _ in 0..ROUNDS {
        ticks.tick().await;
        for (at, report) in reports.iter().enumerate() {
            report.tell(()).expect("the actor is open");
            // The alarms are raised in between the reports.
            if at % (REPORTS / ALARMS) == REPORTS / ALARMS / 2 {
                let alarm = &alarms[at * ALARMS / REPORTS];
                alarm.tell(Instant::now()).expect("the actor is open");
            }
        }
    }
    let mut done = 0;
    for report in reports {
        done += report.join().await.expect("it ends by itself");
    }
    assert_eq!(done, ROUNDS * REPORTS);
    let (mut all, mut in_time) = (0, 0);
    for alarm in alarms {
        let (its, its_in_time) = alarm.join().await.expect("it ends by itself");
        all += its;
        in_time += its_in_time;
    }
    (all, in_time)
}

fn under(name: &str, builder: Builder) {
    let runtime = builder.workers(2).build().expect("two threads start");
    let (all, in_time) = runtime.block_on(runtime.spawn(load()));
    // Late or not, every alarm was handled.
    assert_eq!(all, ROUNDS * ALARMS);
    println!("{name:10} {in_time} of {all} alarms in time");
}

fn main() {
    under("default:", Runtime::builder());
    under(
        "deadlines:",
        Runtime::builder().policy(Deadlines::default()),
    );
}
