//! Watches for a turn that blocks the thread of its simulation, and prints which one it is.
//!
//! One thread looks now and then at all simulations that run. It starts with the first one, and
//! ends when it finds none. A step does nothing for it, and it never drops a runtime: each is
//! listed only as long as its own thread holds it, and looked at under the lock of the list.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use super::simulation::Simulation;
use crate::runtime::Inner;
use crate::stderr::print_line_at_once;
use crate::sync::{Mutex, PerProcess};

/// The time from look to look: far longer than a turn takes, and shorter than people wait before
/// they stop a test that hangs. A step that two looks find is reported.
const LOOKS_EVERY: Duration = Duration::from_secs(5);

static WATCH: PerProcess<Mutex<WatchList>> = PerProcess::new();

/// The simulations that run now.
#[derive(Default)]
struct WatchList {
    running: Vec<Watched>,
    /// How many were ever listed.
    listed: u64,
    has_thread: bool,
}

struct Watched {
    number: u64,
    runtime: Arc<Inner>,
    /// The step that the last look found, and whether that was reported.
    step: Option<u64>,
    is_reported: bool,
}

/// A guard: while it lives, the simulation of this thread is watched.
pub(super) struct Watching(u64);

impl Watching {
    pub(super) fn begin(runtime: &Arc<Inner>) -> Self {
        let mut watch = watch().lock();
        watch.listed += 1;
        let number = watch.listed;
        watch.running.push(Watched {
            number,
            runtime: runtime.clone(),
            step: None,
            is_reported: false,
        });
        if !watch.has_thread {
            let thread = std::thread::Builder::new().name("greenroom-watch".into());
            // Without a thread, a turn that blocks is not reported.
            watch.has_thread = thread.spawn(look_at_all).is_ok();
        }
        Watching(number)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watch = watch().lock();
        // In a child of `fork` the list is another one.
        let at = watch.running.iter().position(|it| it.number == self.0);
        let over = at.map(|at| watch.running.swap_remove(at));
        drop(watch);
        drop(over);
    }
}

fn watch() -> &'static Mutex<WatchList> {
    WATCH.get_or_init(|| Mutex::new(WatchList::default()))
}

/// Looks at the simulations that run until there are none.
fn look_at_all() {
    loop {
        std::thread::sleep(LOOKS_EVERY);
        let mut watch = watch().lock();
        if watch.running.is_empty() {
            watch.has_thread = false;
            return;
        }
        watch.running.iter_mut().for_each(Watched::look);
    }
}

impl Watched {
    fn look(&mut self) {
        let simulation = Simulation::of(&self.runtime);
        // If its state is in use, it is not in a turn.
        let Some((simulation, state)) = simulation.and_then(|it| Some((it, it.state.try_lock()?)))
        else {
            return;
        };
        let (seed, step, who) = (simulation.plan.seed, state.step, state.running.clone());
        drop(state);
        if self.stands_still(step) {
            let seconds = LOOKS_EVERY.as_secs();
            // The thread may have the capture of another test, and a test that hangs shows none.
            print_line_at_once(format_args!(
                "seed {seed}: no step of the simulation for {seconds} s: step {step} is the turn of \
                 {who}, which may block the thread, as with a lock that another task holds"
            ));
        }
    }

    /// Returns whether the step is that of the last look, once for each step.
    fn stands_still(&mut self, step: u64) -> bool {
        if self.step.replace(step) != Some(step) {
            self.is_reported = false;
            return false;
        }
        !std::mem::replace(&mut self.is_reported, true)
    }
}
