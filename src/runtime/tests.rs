//! Panics in the loop of a worker, outside any turn. No code of a user gets there, so a test causes
//! them where the loop looks at its runtime.

use std::cell::Cell;

crate::sync::thread_local! {
    /// How many more looks of this thread's worker there are until one panics; 0 for none.
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

/// Makes the look of this thread's worker with this number panic, counted from 1.
pub(crate) fn arm(look: u32) {
    LOOKS.with(|looks| looks.set(look));
}

/// Counts a look of a worker at its runtime, and panics if it is the armed one.
pub(super) fn look() {
    let is_last = |looks: &Cell<u32>| looks.replace(looks.get().saturating_sub(1)) == 1;
    assert!(!LOOKS.with(is_last), "{}", super::worker_thread::IN_A_TEST);
}

#[cfg(not(greenroom_loom))]
mod on_threads {
    use std::collections::VecDeque;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::arm;
    use crate::policy::{Duties, Policy, Runnable, Stealing};
    use crate::runtime::Continues;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::{Builder, Driver, Runtime, Warning};

    /// As many looks as a worker makes from the end of a turn until it sleeps, and more.
    const LOOKS: u32 = 16;

    /// Runs a test that might hang.
    fn within_a_minute(test: impl FnOnce() + Send + 'static) {
        let (done, waits) = channel();
        let thread = std::thread::spawn(move || {
            test();
            drop(done);
        });
        if waits.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            panic!("it hangs");
        }
        waits.recv().unwrap_or(());
        thread.join().unwrap();
    }

    /// A driver that leaves its workers to the loop without a driver.
    struct Absent;

    impl Driver for Absent {
        fn drive(&self, _worker: Pin<&mut dyn Future<Output = ()>>) {}

        fn sleep_until(&self, _at: std::time::Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            unreachable!("the worker runs without its driver")
        }
    }

    /// A policy whose workers the runtime parks.
    #[derive(Default)]
    struct Unparked(Mutex<VecDeque<Runnable>>);

    impl Policy for Unparked {
        type Worker = ();

        fn worker(&self, _index: usize) {}

        fn central_enqueue(&self, runnable: Runnable) {
            self.0.lock().unwrap().push_back(runnable);
        }

        fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
            self.0.lock().unwrap().pop_front()
        }
    }

    /// Returns builders of each kind of worker.
    fn builders() -> Vec<Builder> {
        let both = |workers| {
            let new = move || Runtime::builder().workers(workers);
            let other = move || new().policy(Unparked::default());
            let stealing = move || new().policy(Stealing::default());
            [
                stealing(),
                other(),
                stealing().driver(Absent),
                other().driver(Absent),
            ]
        };
        [1, 2].into_iter().flat_map(both).collect()
    }

    fn telling(builder: Builder) -> (Runtime, Receiver<Warning>) {
        let (warn, warned) = channel();
        let builder = builder.on_warning(move |warning| match warning {
            Warning::WorkerPanicked { .. } => warn.send(warning.clone()).unwrap(),
            other => panic!("{other}"),
        });
        (builder.build().unwrap(), warned)
    }

    /// Makes the loop of a worker panic at a look after a turn that left entries in its queues.
    /// Checks that nothing is lost, and returns the warning.
    fn panics(runtime: &Runtime, warned: &Receiver<Warning>, look: u32) -> Warning {
        let tasks = runtime.spawn(async move {
            let tasks = (0..10).map(|number| crate::spawn(async move { number }));
            let tasks: Vec<_> = tasks.collect();
            arm(look);
            tasks
        });
        for (number, task) in runtime.block_on(tasks).into_iter().enumerate() {
            assert_eq!(runtime.block_on(task), number);
        }
        loop {
            match warned.try_recv() {
                Ok(panic) => return panic,
                Err(_) => runtime.block_on(runtime.spawn(async {})),
            }
        }
    }

    /// Checks that the workers run, sleep and end as if nothing had happened.
    fn is_well(runtime: &Runtime) {
        for number in 0..10 {
            assert_eq!(
                runtime.block_on(runtime.spawn(async move { number })),
                number
            );
        }
        runtime.block_on(runtime.spawn(crate::time::sleep(Duration::from_millis(1))));
        runtime.run_until_quiescent();
        let report = runtime.block_on(runtime.shutdown());
        assert_eq!(report.left_behind, 0);
    }

    #[test]
    fn another_thread_takes_the_place_of_a_worker_whose_loop_panics() {
        within_a_minute(|| {
            for look in 1..=LOOKS {
                for builder in builders() {
                    let (runtime, warned) = telling(builder);
                    let warning = panics(&runtime, &warned, look);
                    let Warning::WorkerPanicked {
                        panic, continues, ..
                    } = warning
                    else {
                        panic!("{warning}")
                    };
                    assert_eq!(panic, super::super::worker_thread::IN_A_TEST);
                    assert!(matches!(continues, Continues::OnAnotherThread));
                    is_well(&runtime);
                }
            }
        });
    }

    #[test]
    fn a_worker_whose_loop_panics_goes_on_if_no_thread_can_be_started() {
        within_a_minute(|| {
            for look in 1..=LOOKS {
                for builder in builders() {
                    let (left, refused) = (
                        Arc::new(AtomicUsize::new(usize::MAX)),
                        Arc::new(AtomicUsize::new(0)),
                    );
                    let (starts, refuses) = (left.clone(), refused.clone());
                    let (runtime, warned) = telling(builder.around_threads(move |run| {
                        if starts.load(Ordering::SeqCst) > 0 {
                            run();
                        } else {
                            refuses.fetch_add(1, Ordering::SeqCst);
                        }
                    }));
                    left.store(0, Ordering::SeqCst);
                    let warning = panics(&runtime, &warned, look);
                    let Warning::WorkerPanicked {
                        continues: Continues::OnThisThread(error),
                        ..
                    } = &warning
                    else {
                        panic!("{warning}")
                    };
                    let text = warning.to_string();
                    assert!(text.contains(&error.to_string()), "{text}");
                    assert_eq!(refused.load(Ordering::SeqCst), 1);
                    is_well(&runtime);
                }
            }
        });
    }
}
