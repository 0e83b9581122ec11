//! The ways in which greenroom and tokio are joined, and a watchdog.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::time::Duration;

use greenroom::Runtime;
use tokio::runtime::Runtime as Tokio;

/// Longer than any test takes on a busy machine.
const WATCH: Duration = Duration::from_secs(120);

/// A runtime of tokio, and one of greenroom whose threads have entered it.
pub struct Both {
    // Dropped first: its actors use tokio.
    pub runtime: Runtime,
    pub tokio: Tokio,
}

impl Both {
    fn new() -> Both {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let tokio = builder.worker_threads(2).enable_all().build().unwrap();
        let handle = tokio.handle().clone();
        let runtime = Runtime::builder()
            .workers(2)
            .around_threads(move |run| {
                let _guard = handle.enter();
                run()
            })
            .build()
            .unwrap();
        Both { runtime, tokio }
    }
}

/// Returns a runtime of tokio, and one of greenroom to which it is bound.
pub fn bound() -> (Tokio, Runtime) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let tokio = builder.worker_threads(2).enable_all().build().unwrap();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.bind(tokio.handle());
    (tokio, runtime)
}

/// Runs a test with both runtimes, and fails if it does not return.
pub fn with_both(test: impl FnOnce(&Both) + Send + 'static) {
    within(|| test(&Both::new()));
}

/// Runs a test, and fails if it does not return.
pub fn within(test: impl FnOnce() + Send + 'static) {
    let (done, outcome) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(test)));
    });
    match outcome.recv_timeout(WATCH) {
        Ok(outcome) => outcome.unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => panic!("hung: not done within {WATCH:?}"),
    }
}
