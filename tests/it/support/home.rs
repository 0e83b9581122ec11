//! Homes: where a scenario's actors live, on each kind of thread and in simulations.
//!
//! A scenario is a function of a [`Home`], and does not know which kind it has.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::{ActorBuilder, Handle, Pinned, Runtime};

use super::{Gate, OpenOnDrop, WATCH, drive_boxed, matrix, simulated, within};

/// Makes a test of each scenario (a function of a [`Home`]), which runs it in its homes.
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

/// As [`in_every_home`], for scenarios that a simulation can't run, each for the reason that is given.
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

/// Where a scenario's actors live: the workers of a runtime, or a pinned thread of it.
pub struct Home {
    // Dropped first, as a user would.
    pinned: Option<Pinned>,
    pub runtime: Runtime,
    threads: usize,
}

impl Home {
    /// With this many workers; faults that nobody joins are not printed.
    pub fn workers(workers: usize) -> Home {
        Home::built(workers, Runtime::builder().on_fault(|_| {}))
    }

    pub fn pinned() -> Home {
        Home::pinned_built(Runtime::builder().on_fault(|_| {}))
    }

    /// With this many workers and these other options.
    pub fn built(workers: usize, builder: greenroom::Builder) -> Home {
        Home {
            pinned: None,
            runtime: builder.workers(workers).build().unwrap(),
            threads: workers,
        }
    }

    /// A pinned thread, of a runtime with these options.
    pub fn pinned_built(builder: greenroom::Builder) -> Home {
        let Home { runtime, .. } = Home::built(1, builder);
        let pinned = Some(runtime.spawn_pinned("pinned").unwrap());
        Home {
            pinned,
            runtime,
            threads: 1,
        }
    }

    /// Where nothing runs but while the scenario waits, in an order drawn from the seed.
    pub fn simulated(seed: u64) -> Home {
        let builder = Runtime::builder().policy(Simulated::new(seed));
        // Somebody who is always ready makes a second of it a million steps.
        let builder = builder.grace(Duration::from_millis(10));
        let home = Home::built(1, builder.on_fault(|_| {}));
        simulated::adopt(&home.runtime);
        home
    }

    /// A pinned thread of a simulated runtime.
    pub fn simulated_pinned(seed: u64) -> Home {
        let mut home = Home::simulated(seed);
        home.pinned = Some(home.runtime.spawn_pinned("pinned").unwrap());
        home
    }

    /// Runs a scenario in a simulation of each seed, as [`Home::watch`] does.
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

    /// Runs a test of a simulated runtime with each of the seeds, as [`Home::watch_seeds`] does.
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

    /// Runs a scenario under the watchdog, the end of its runtime included.
    pub fn watch(make: impl FnOnce() -> Home + Send + 'static, scenario: fn(&Home)) {
        within(WATCH, move || {
            let home = make();
            scenario(&home);
        });
    }

    pub fn is_simulated(&self) -> bool {
        simulated::is_here()
    }

    /// How many are a lot: as many as that, and fewer in a simulation, where no two run at once.
    pub fn many(&self, on_threads: usize) -> usize {
        match simulated::is_here() {
            true => on_threads.div_ceil(50),
            false => on_threads,
        }
    }

    // Boxed, as below: hundreds of futures would each have all of the waiting compiled.
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

    /// Holds every thread that runs tasks here until the guard is dropped: nothing is polled.
    pub fn hold(&self) -> Held {
        if simulated::is_here() {
            return Held {
                _threads: None,
                _simulation: Some(simulated::Held::new()),
            };
        }
        let gate = Gate::default();
        let begun: Vec<Gate> = (0..self.threads)
            .map(|_| {
                let (begun, held) = (Gate::default(), gate.clone());
                let here = begun.clone();
                self.spawn_task(async move {
                    here.open();
                    held.pass();
                })
                .detach();
                begun
            })
            .collect();
        begun.iter().for_each(Gate::pass);
        Held {
            _threads: Some(OpenOnDrop(gate)),
            _simulation: None,
        }
    }

    /// Waits until all that was scheduled before has had a turn, on a home with one thread.
    pub fn turn(&self) {
        assert_eq!(
            self.threads, 1,
            "with more threads a turn says nothing of the others"
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

/// While it lives the threads of a home are held.
pub struct Held {
    _threads: Option<OpenOnDrop>,
    _simulation: Option<simulated::Held>,
}
