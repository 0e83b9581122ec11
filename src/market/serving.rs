//! The work of a worker: a call on a thread of the blocking pool, which runs job after job.
//!
//! It asks for a job when it comes and after each job, lingers if it may, and gives its thread
//! back. A stop dismisses a worker that has not come yet, which then finds nothing to do.

use std::sync::Arc;

use super::again;
use super::core::{Begun, Core, Employ, Phase};
use super::worker::Worker;
use crate::runtime::{Borrower, borrow_thread, bring_thread, is_lent};

/// Gets a thread for the worker that is on its way.
pub(super) fn start<K: Send + 'static>(core: &Arc<Core<K>>, employ: Employ) {
    let runtime = core.runtime.as_ref();
    match employ {
        Employ::New => {
            let coming = Coming(Some(core.clone()));
            borrow_thread(runtime, move || coming.arrive())
        }
        Employ::Again => bring_thread(runtime),
    }
}

impl<K: Send + 'static> Borrower for Core<K> {
    fn is_kept_waiting(self: Arc<Self>) {
        if let Some(delay) = self.start_delayed() {
            again::after(&self, delay);
        }
    }
}

/// A worker that was created and has not begun.
struct Coming<K: Send + 'static>(Option<Arc<Core<K>>>);

impl<K: Send + 'static> Coming<K> {
    fn arrive(mut self) {
        let Some(core) = self.0.take() else { return };
        if is_lent() {
            serve(&core);
        } else {
            let delay = core.start_failed();
            if let Some(delay) = delay {
                again::after(&core, delay);
            }
        }
    }
}

impl<K: Send + 'static> Drop for Coming<K> {
    fn drop(&mut self) {
        if let Some(core) = self.0.take() {
            // The pool is closed.
            core.close(Phase::Stopped);
        }
    }
}

/// What a worker does next.
enum Next {
    Run(Begun),
    /// Its number.
    Linger(u64),
    /// Code of the user runs before, which may wait for the job that would be the next one.
    AskAgain,
    End,
}

pub(super) fn serve<K: Send + 'static>(core: &Arc<Core<K>>) {
    let own = Worker::new(core.address());
    own.inside(|| serve_as(core, &own));
}

fn serve_as<K: Send + 'static>(core: &Arc<Core<K>>, own: &Arc<Worker>) {
    let is_simulated = core.runtime.as_ref().is_some_and(|it| it.is_simulated());
    let may_ever_linger = !is_simulated && !core.limits.idle.is_zero();
    let (mut is_new, mut returns) = (true, false);
    let (mut may_linger, mut done) = (may_ever_linger, None);
    loop {
        let next = core.change(|state, after| {
            if std::mem::take(&mut is_new) {
                state.retry.has_succeeded();
                if !state.comes() {
                    return Next::End;
                }
            }
            if std::mem::take(&mut returns) {
                state.arrive();
            }
            if done.take().is_some_and(|job| state.end(job, after)) {
                return Next::AskAgain;
            }
            if let Some(job) = state.begin(own) {
                return Next::Run(job);
            }
            if let Some(wait) = may_linger.then(|| state.linger(own)).flatten() {
                return Next::Linger(wait);
            }
            state.leave();
            Next::End
        });
        match next {
            Next::Run(job) => {
                job.work.run();
                if is_simulated {
                    return go_on(core, job);
                }
                may_linger = may_ever_linger;
                done = Some(job);
            }
            Next::Linger(wait) => {
                returns = linger(core, own, wait);
                may_linger = returns;
            }
            Next::AskAgain => {}
            Next::End => return,
        }
    }
}

/// Makes the next job of a worker another step of the simulation.
fn go_on<K: Send + 'static>(core: &Arc<Core<K>>, job: Begun) {
    core.change(|state, after| {
        state.end(job, after);
        (state.is_coming, state.absent) = (true, state.absent + 1);
    });
    start(core, Employ::New);
}

/// Waits until the worker is woken or its time is over. Returns whether it was woken.
fn linger<K: Send + 'static>(core: &Arc<Core<K>>, own: &Arc<Worker>, wait: u64) -> bool {
    if own.wait(Some(core.limits.idle)) {
        return true;
    }
    if core.change(|state, _| state.is_late(wait)) {
        return false;
    }
    // It was taken from the idle ones, so it is woken.
    while !own.wait(None) {}
    true
}
