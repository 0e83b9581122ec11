//! The outcome of a plain task: its value, or a panic that is reported if the task is not awaited.

use super::executor::Executor;
use crate::contain::{Panic, contain};
use crate::error::{Fault, UnhandledFault};

/// The outcome of a plain task. The panic is boxed, so that it does not enlarge every task.
pub(super) type TaskOutcome<T> = Result<T, Box<UnobservedPanic>>;

/// A panic that is reported to the executor unless the task is awaited.
pub(super) struct UnobservedPanic {
    panic: Option<Panic>,
    report: Box<dyn Fn(&UnhandledFault<'_>) + Send + Sync>,
}

impl UnobservedPanic {
    pub(super) fn new(panic: Panic, executor: &impl Executor) -> Box<Self> {
        let executor = executor.clone();
        Box::new(UnobservedPanic {
            panic: Some(panic),
            report: Box::new(move |unhandled| executor.hooks().report(unhandled)),
        })
    }

    pub(super) fn take_panic(mut self) -> Panic {
        self.panic.take().expect("a panic is taken once")
    }
}

impl Drop for UnobservedPanic {
    fn drop(&mut self) {
        if let Some(panic) = self.panic.take() {
            let fault = Fault::Panicked(panic);
            contain(|| {
                (self.report)(&UnhandledFault {
                    name: None,
                    id: None,
                    fault: &fault,
                    is_source: false,
                    is_on_undelivered: false,
                });
            });
        }
    }
}
