//! The task that runs here, as programs see it.

use super::current::with;
use super::handle::WeakLooper;

/// The task of a looper or of the world that runs on this thread.
#[derive(Debug, Clone)]
pub struct Current {
    looper: Option<WeakLooper>,
    priority: u8,
}

/// Returns the task that runs on this thread, if it is one of a looper or of the world.
///
/// ```
/// use greenroom::looper::{self, Controller};
///
/// greenroom::run(async {
///     let controller = Controller::builder().priorities(3).build().unwrap();
///     let looper = controller.looper_named("teller");
///     let task = looper.priority(2).post(|| {
///         let current = looper::current().unwrap();
///         (current.priority(), current.looper().unwrap().name().map(str::to_owned))
///     });
///     assert_eq!(task.unwrap().await.unwrap(), (2, Some("teller".to_owned())));
///     assert!(looper::current().is_none());
/// });
/// ```
pub fn current() -> Option<Current> {
    with(|job| Current {
        looper: job.origin.seat().map(WeakLooper::new),
        priority: job.priority,
    })
}

impl Current {
    /// Returns the looper of the task, or `None` for a task of the world.
    pub fn looper(&self) -> Option<WeakLooper> {
        self.looper.clone()
    }

    /// Returns the priority of the task: the `mtllPriority` of MTLL. It is 0 for a task of the
    /// world.
    pub fn priority(&self) -> u8 {
        self.priority
    }
}
