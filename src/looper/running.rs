//! The task that runs here, as programs see it.

use std::fmt;
use std::sync::Arc;

use super::controller::Controller;
use super::current::with;
use super::handle::WeakLooper;
use super::hub::Hub;
use super::monitor::Monitor;

/// The task of a looper or of the world that runs on this thread.
#[derive(Clone)]
pub struct Current {
    hub: Arc<dyn Hub>,
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
        hub: job.origin.hub().clone(),
        looper: job.origin.seat().map(WeakLooper::new),
        priority: job.priority,
    })
}

impl Current {
    /// Returns the controller of the task: the first argument of `mtllRun` in MTLL.
    ///
    /// It is closed if the task runs during its shutdown, or when the last handle of the controller
    /// and all loopers are gone.
    ///
    /// ```
    /// use greenroom::looper::{self, Controller};
    ///
    /// greenroom::run(async {
    ///     let controller = Controller::builder().build().unwrap();
    ///     let looper = controller.looper();
    ///     drop(controller);
    ///     let task = looper.post(|| {
    ///         let controller = looper::current().unwrap().controller();
    ///         controller.looper().post(|| 5).unwrap()
    ///     });
    ///     assert_eq!(task.unwrap().await.unwrap().await.unwrap(), 5);
    /// });
    /// ```
    pub fn controller(&self) -> Controller {
        Controller::of(Monitor::of(&self.hub))
    }

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

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current")
            .field("looper", &self.looper)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
