//! Homes: where a scenario's actors live, on each kind of thread and in simulations.
//!
//! A scenario is a function of a [`Home`] and does not know its kind.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::{ActorBuilder, Handle, Pinned, Runtime};

use super::{Gate, OpenOnDrop, WATCH, drive_boxed, matrix, simulated, within};

/// Makes a test of each scenario (a function of a [`Home`]) that runs the scenario in its homes.
macro_rules! in_every_home {
    ($($scenario:ident),+ $(,)?) => {
        $(mod $scenario {
            #[test]
            fn in_its_homes() {
                use crate::support::Homes;
                Homes::plain().watch(module_path!(), super::$scenario);
            }
        })+
    };
}
pub(crate) use in_every_home;

/// Like [`in_every_home`], for scenarios that a simulation can't run. Each use gives the reason.
macro_rules! on_threads {
    ($($scenario:ident),+ $(,)?) => {
        $(mod $scenario {
            #[test]
            fn in_its_homes() {
                use crate::support::Homes;
                Homes::plain().without_simulations().watch(module_path!(), super::$scenario);
            }
        })+
    };
}
pub(crate) use on_threads;

/// Where a scenario's actors live: the workers of a runtime, or one of its pinned threads.
pub struct Home {
    // Dropped first, as in a user's program.
    pinned: Option<Pinned>,
    pub runtime: Runtime,
    threads: usize,
}

impl Home {
    /// Creates a home on this many workers. Faults that are not joined are not printed.
    pub fn workers(workers: usize) -> Home {
        Home::built(workers, Runtime::builder().on_fault(|_| {}))
    }

    pub fn pinned() -> Home {
        Home::pinned_built(Runtime::builder().on_fault(|_| {}))
    }

    /// Creates a home on this many workers and with these other options.
    pub fn built(workers: usize, builder: greenroom::Builder) -> Home {
        Home {
            pinned: None,
            runtime: builder.workers(workers).build().unwrap(),
            threads: workers,
        }
    }

    /// Creates a home on a pinned thread of a runtime with these options.
    pub fn pinned_built(builder: greenroom::Builder) -> Home {
        let Home { runtime, .. } = Home::built(1, builder);
        let pinned = Some(runtime.spawn_pinned("pinned").unwrap());
        Home {
            pinned,
            runtime,
            threads: 1,
        }
    }

    /// Creates a simulated home. Nothing runs except while the scenario waits, in an order drawn
    /// from the seed.
    pub fn simulated(seed: u64) -> Home {
        let builder = Runtime::builder().policy(Simulated::new(seed));
        // A task that is always ready makes a million steps per second of grace.
        let builder = builder.grace(Duration::from_millis(10));
        let home = Home::built(1, builder.on_fault(|_| {}));
        simulated::adopt(&home.runtime);
        home
    }

    /// Creates a home on a pinned thread of a simulated runtime.
    pub fn simulated_pinned(seed: u64) -> Home {
        let mut home = Home::simulated(seed);
        home.pinned = Some(home.runtime.spawn_pinned("pinned").unwrap());
        home
    }

    /// Runs a scenario in a simulation of each seed, like [`Home::watch`].
    pub fn watch_seeds(make: fn(u64) -> Home, scenario: fn(&Home)) {
        within(WATCH, move || {
            for &seed in matrix::seeds() {
                let _named = matrix::Named(format!("seed {seed}"));
                let home = make(seed);
                scenario(&home);
                drop(home);
                simulated::forget();
            }
        });
    }

    /// Runs a test of a simulated runtime with each of the seeds, like [`Home::watch_seeds`].
    pub fn simulate(test: impl Fn(&Runtime) + Send + 'static) {
        within(WATCH, move || {
            for &seed in matrix::seeds() {
                let _named = matrix::Named(format!("seed {seed}"));
                let home = Home::simulated(seed);
                test(&home.runtime);
                drop(home);
                simulated::forget();
            }
        });
    }

    /// Runs a scenario under the watchdog, including the drop of its runtime.
    pub fn watch(make: impl FnOnce() -> Home + Send + 'static, scenario: fn(&Home)) {
        within(WATCH, move || {
            let home = make();
            scenario(&home);
        });
    }

    pub fn is_simulated(&self) -> bool {
        simulated::is_here()
    }

    /// Returns `on_threads`, or a fiftieth of it in a simulation, where tasks never run in
    /// parallel.
    pub fn many(&self, on_threads: usize) -> usize {
        match simulated::is_here() {
            true => on_threads.div_ceil(50),
            false => on_threads,
        }
    }

    // Boxed, like the futures below: otherwise hundreds of futures would each instantiate the
    // waiting code.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let future: Pin<Box<dyn Future<Output = F::Output> + '_>> = Box::pin(future);
        match simulated::is_held() {
            true => drive_boxed(future),
            false => self.runtime.block_on(future),
        }
    }

    /// Spawns the actor here.
    #[track_caller]
    pub fn spawn<M, A, Fut>(&self, actor: ActorBuilder<M, A, Fut>) -> Handle<M, Fut::Output>
    where
        M: Send + 'static,
        A: Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        match &self.pinned {
            None => actor.on(&self.runtime).spawn(),
            Some(pinned) => actor.on(pinned).spawn(),
        }
    }

    /// Spawns a plain task here.
    pub fn spawn_task<F>(&self, future: F) -> greenroom::Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.pinned {
            None => self.runtime.spawn(future),
            Some(pinned) => {
                let future: Pin<Box<dyn Future<Output = F::Output> + Send>> = Box::pin(future);
                spawn_boxed(pinned, future)
            }
        }
    }

    /// Blocks every thread that runs tasks here until the guard is dropped: nothing is polled.
    pub fn hold(&self) -> Held {
        if simulated::is_here() {
            return Held {
                _threads: None,
                _simulation: Some(simulated::Held::new()),
            };
        }
        let gate = Gate::default();
        for _ in 0..self.threads {
            let (begun, held) = (Gate::default(), gate.clone());
            let here = begun.clone();
            self.spawn_task(async move {
                here.open();
                held.pass();
            })
            .detach();
            // One after another: a thread that takes two waits in the first, and others may be too busy
            // to steal the second.
            begun.pass();
        }
        Held {
            _threads: Some(OpenOnDrop(gate)),
            _simulation: None,
        }
    }

    /// Waits until each task scheduled before has had a turn. Requires a home with one thread.
    pub fn turn(&self) {
        assert_eq!(
            self.threads, 1,
            "with several threads a turn of one says nothing about the others"
        );
        if simulated::is_here() {
            return simulated::turn();
        }
        self.block_on(self.spawn_task(greenroom::yield_now()));
    }
}

fn spawn_boxed<T: Send + 'static>(
    pinned: &Pinned,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
) -> greenroom::Task<T> {
    pinned.spawn(move || future)
}

/// A guard that blocks the threads of a home while it lives.
pub struct Held {
    _threads: Option<OpenOnDrop>,
    _simulation: Option<simulated::Held>,
}
