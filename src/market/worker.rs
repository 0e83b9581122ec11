//! A worker: a call on a thread of the blocking pool, which runs one job after another.
//!
//! It asks for a job when it comes and after each job, lingers if it may, and gives its thread back.

use std::cell::RefCell;
use std::sync::Arc;

use super::core::{Begun, Core};
use crate::park::Parker;
use crate::runtime::{borrow_thread, is_lent};
use crate::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Worker {
    parker: Parker,
    /// Its job was cancelled.
    is_cancelled: AtomicBool,
    /// The address of its market.
    market: usize,
}

impl Worker {
    /// Wakes a worker that was taken from the idle ones.
    pub(super) fn wake(&self) {
        self.parker.unpark();
    }

    /// Notes that it begins another job.
    pub(super) fn begins(&self) {
        // Relaxed: only the flag matters.
        self.is_cancelled.store(false, Ordering::Relaxed);
    }

    /// Tells the job that it was cancelled.
    pub(super) fn cancel(&self) {
        // Relaxed: only the flag matters.
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

crate::sync::thread_local! {
    /// The worker whose job runs on this thread.
    static CURRENT: RefCell<Option<Arc<Worker>>> = const { RefCell::new(None) };
}

/// Returns whether the job that runs on this thread was [cancelled](super::JobHandle::cancel) after
/// its begin. Returns false outside the jobs of markets.
///
/// A long job may look at this now and then, and return early.
///
/// ```
/// use greenroom::market::{self, Job, Market};
///
/// greenroom::run(async {
///     let market = Market::<()>::builder().build().unwrap();
///     let (tell, told) = std::sync::mpsc::channel();
///     let job = Job::new(move || {
///         tell.send(()).unwrap();
///         while !market::is_cancelled() {
///             std::thread::yield_now();
///         }
///         "stopped early"
///     });
///     let job = market.offer(job).await.unwrap();
///     told.recv().unwrap();
///     assert!(!job.cancel(), "it has begun");
///     assert_eq!(job.await.unwrap(), "stopped early");
/// });
/// ```
pub fn is_cancelled() -> bool {
    // Relaxed: only the flag matters.
    with(|worker| worker.is_cancelled.load(Ordering::Relaxed)).unwrap_or(false)
}

fn with<R>(look: impl FnOnce(&Worker) -> R) -> Option<R> {
    let current = CURRENT.try_with(|current| current.borrow().clone());
    current.ok().flatten().map(|worker| look(&worker))
}

/// Returns whether a worker of this market runs the calling code.
pub(super) fn is_inside<K>(core: &Arc<Core<K>>) -> bool {
    with(|worker| worker.market == address(core)).unwrap_or(false)
}

fn address<K>(core: &Arc<Core<K>>) -> usize {
    Arc::as_ptr(core).cast::<()>() as usize
}

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
            core.start_failed();
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
    let own = Arc::new(Worker {
        parker: Parker::new(),
        is_cancelled: AtomicBool::new(false),
        market: address(core),
    });
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
                run(&own, &job);
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

fn run(own: &Arc<Worker>, job: &Begun) {
    let outer = CURRENT.try_with(|current| current.replace(Some(own.clone())));
    job.work.run();
    let outer = outer.ok().flatten();
    drop(CURRENT.try_with(|current| current.replace(outer)));
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
    if own.parker.park_eagerly(Some(core.limits.idle)) {
        return true;
    }
    if core.change(|state, _| state.is_late(own)) {
        return false;
    }
    // It was taken from the idle ones, so it is woken.
    while !own.parker.park(None) {}
    true
}
