//! The rounds of a stress test, and the runtime of each.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use greenroom::policy::{Polling, Prioritized, Sharing, Stealing, TaskInfo};
use greenroom::{Observer, Runtime};

/// Few rounds, for a run beside other tests.
const ROUNDS: usize = 4;

/// Runs the rounds of one test, and fails if they take far longer than usual.
pub fn rounds(round: impl Fn(usize) + Send + 'static) {
    let chosen = std::env::var("GREENROOM_STRESS_ROUNDS");
    let count = chosen.map_or(ROUNDS, |count| count.parse().expect("a number of rounds"));
    let limit = Duration::from_secs(60 + 2 * count as u64);
    let over = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
    let tells = Tells(over.clone());
    let running = thread::spawn(move || {
        let _tells = tells;
        (0..count).for_each(round);
    });
    let lock = over.1.lock().unwrap();
    // Acquire pairs with the Release in the drop of `Tells`.
    let is_running = |_: &mut ()| !over.0.load(Ordering::Acquire);
    let (lock, waited) = over.2.wait_timeout_while(lock, limit, is_running).unwrap();
    drop(lock);
    assert!(
        !waited.timed_out(),
        "hung: the rounds did not end within {limit:?}"
    );
    running.join().unwrap_or_else(|panic| resume_unwind(panic));
}

/// A guard that reports in its drop that the rounds are over.
struct Tells(Arc<(AtomicBool, Mutex<()>, Condvar)>);

impl Drop for Tells {
    fn drop(&mut self) {
        let (is_over, lock, heard) = &*self.0;
        // Release pairs with the Acquire in `rounds`.
        is_over.store(true, Ordering::Release);
        drop(lock.lock());
        heard.notify_all();
    }
}

/// Builds a runtime; the kinds take turns with the seed.
pub fn runtime(seed: usize) -> Runtime {
    let builder = Runtime::builder()
        .workers(1 + seed % 3)
        .grace(Duration::from_millis(20))
        .on_fault(|_| {});
    let builder = match seed % 7 {
        0 => builder.policy(Sharing::default()),
        1 => builder.policy(Prioritized::default()).priorities(3),
        2 => builder.policy(Stealing::polling(Polling::default())),
        3 => builder.observer(Counts::default()),
        4 => builder.detect_deadlocks(true),
        _ => builder,
    };
    builder.build().unwrap()
}

#[derive(Default)]
struct Counts(AtomicU64);

impl Observer for Counts {
    fn before_run(&self, _task: &TaskInfo) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn completed(&self, _task: &TaskInfo) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
