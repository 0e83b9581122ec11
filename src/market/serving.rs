//! The work of a worker: a call on a thread of the blocking pool, which runs one job after another.
//!
//! It asks for a job when it comes and after each job, lingers if it may, and gives its thread back.

use std::sync::Arc;

use super::again;
use super::core::{Begun, Core};
use super::worker::Worker;
use crate::runtime::{borrow_thread, is_lent};

/// Gets a thread for a worker that was created.
pub(super) fn start<K: Send + 'static>(core: &Arc<Core<K>>) {
    let coming = Coming(Some(core.clone()));
    borrow_thread(core.runtime.as_ref(), move || coming.arrive());
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
            core.lost_worker();
        }
    }
}

/// What a worker does next.
enum Next {
    Run(Begun),
    Linger,
    End,
}

fn serve<K: Send + 'static>(core: &Arc<Core<K>>) {
    let own = Worker::new(core.address());
    let is_simulated = core.runtime.as_ref().is_some_and(|it| it.is_simulated());
    let may_ever_linger = !is_simulated && !core.limits.idle.is_zero();
    let (mut comes, mut may_linger, mut done) = (true, may_ever_linger, None);
    loop {
        let next = core.change(|state, after| {
            if std::mem::take(&mut comes) {
                state.is_coming = false;
                state.retry.has_succeeded();
            }
            if let Some(job) = done.take() {
                state.end(job, after);
            }
            match state.begin(&own) {
                Some(job) => Next::Run(job),
                None if may_linger && state.may_linger() => {
                    state.idle.push(own.clone());
                    Next::Linger
                }
                None => {
                    state.leave();
                    Next::End
                }
            }
        });
        match next {
            Next::Run(job) => {
                own.run(&*job.work);
                if is_simulated {
                    return go_on(core, job);
                }
                may_linger = may_ever_linger;
                done = Some(job);
            }
            Next::Linger => {
                comes = linger(core, &own);
                may_linger = comes;
            }
            Next::End => return,
        }
    }
}

/// Makes the next job of a worker another step of the simulation.
fn go_on<K: Send + 'static>(core: &Arc<Core<K>>, job: Begun) {
    core.change(|state, after| {
        state.end(job, after);
        state.is_coming = true;
    });
    start(core);
}

/// Waits until the worker is woken or its time is over. Returns whether it was woken.
fn linger<K: Send + 'static>(core: &Arc<Core<K>>, own: &Arc<Worker>) -> bool {
    if own.wait(Some(core.limits.idle)) {
        return true;
    }
    if core.change(|state, _| state.is_late(own)) {
        return false;
    }
    // It was taken from the idle ones, so it is woken.
    while !own.wait(None) {}
    true
}
