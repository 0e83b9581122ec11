//! The task that runs on this thread, if it is one of a looper or of the world.
//!
//! It counts only in the turn of the lane that runs it: a task that waits in `block_on` may lend
//! its thread to other tasks.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

use super::job::Job;
use crate::task::run;

struct CurrentJob {
    job: Arc<Job>,
    turn: Option<NonNull<()>>,
}

crate::sync::thread_local! {
    static CURRENT: RefCell<Option<CurrentJob>> = const { RefCell::new(None) };
}

/// Calls `run` as the turn of this job.
pub(super) fn during<R>(job: &Arc<Job>, run: impl FnOnce() -> R) -> R {
    struct Outer(Option<CurrentJob>);
    impl Drop for Outer {
        fn drop(&mut self) {
            let outer = self.0.take();
            drop(CURRENT.try_with(|it| it.replace(outer)));
        }
    }
    let own = CurrentJob {
        job: job.clone(),
        turn: run::innermost_turn(),
    };
    let outer = CURRENT.try_with(|it| it.replace(Some(own)));
    let _outer = Outer(outer.ok().flatten());
    run()
}

/// Calls `look` with the job that runs on this thread.
pub(super) fn with<R>(look: impl FnOnce(&Job) -> R) -> Option<R> {
    let job = CURRENT.try_with(|it| {
        let current = it.borrow();
        let own = current
            .as_ref()
            .filter(|it| it.turn == run::innermost_turn());
        own.map(|it| it.job.clone())
    });
    job.ok().flatten().map(|job| look(&job))
}
