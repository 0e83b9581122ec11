//! The options that a runtime was built with.

use std::sync::Arc;
use std::time::Duration;

use super::blocking_pool::BlockingLimits;
use super::driver::Driver;
use super::observer::Observer;
use super::thread_set::Around;
use super::warning::OnWarning;
use crate::error::{Fault, UnhandledFault};
use crate::stderr::print_line;
use crate::sync::Process;
use crate::tracer::Tracer;

/// The options that a runtime was built with.
pub(crate) struct RuntimeOptions {
    pub(crate) workers: usize,
    pub(crate) batch: u32,
    /// The batch was set by the user, so it is exact.
    pub(crate) is_batch_chosen: bool,
    pub(crate) priorities: u8,
    pub(crate) thread_name: String,
    /// In bytes; `None` for that of `std`.
    pub(super) stack_size: Option<usize>,
    pub(super) around: Option<Around>,
    pub(crate) blocking: BlockingLimits,
    pub(crate) grace: Duration,
    pub(crate) on_fault: Arc<dyn Fn(&UnhandledFault<'_>) + Send + Sync>,
    pub(super) on_warning: Option<OnWarning>,
    /// How long a turn may be without a warning. A simulation has no limit.
    pub(super) long_turns: Option<Duration>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// There is an observer or a tracer, or turns are timed for warnings.
    pub(super) is_watched: bool,
    pub(super) tracer: Option<Arc<dyn Tracer>>,
    /// The messages of actors are traced, by the tracer or by a simulation.
    pub(super) is_traced: bool,
    pub(super) driver: Option<Arc<dyn Driver>>,
    pub(crate) detect_deadlocks: bool,
    /// Waits are noted. Those that never end are reported, but for a driver or a simulation.
    pub(super) endless_waits: bool,
    /// Turns and messages of actors are counted.
    pub(super) counting: bool,
    /// Deadlocks are detected, messages are traced, or the runtime is simulated.
    pub(super) lists_asks: bool,
    /// The runtime is never the current one: it was made for a stage without a runtime, and no worker
    /// of it runs.
    pub(crate) hidden: bool,
    /// The process that has the runtime's threads.
    pub(crate) process: Process,
}

/// Prints a fault to stderr, the default of [`Builder::on_fault`](super::Builder::on_fault).
pub(crate) fn print_fault(unhandled: &UnhandledFault<'_>) {
    match (unhandled.part(), unhandled.fault) {
        ("", Fault::Panicked(panic)) => {
            let subject = unhandled.subject();
            print_line(format_args!(
                "{subject} panicked and was not joined: {panic}"
            ));
        }
        // All others are panics of a part of an actor, which no join receives.
        _ => print_line(format_args!("{unhandled}")),
    }
}
