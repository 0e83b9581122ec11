//! What a runtime was built with.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Driver;
use super::observer::Observer;
use crate::error::UnhandledFault;
use crate::sync::Process;

pub(super) type OnFault = Arc<dyn Fn(&UnhandledFault<'_>) + Send + Sync>;

/// What a runtime was built with.
pub(crate) struct Options {
    pub(crate) workers: usize,
    pub(crate) batch: u32,
    /// The user has chosen that.
    pub(crate) is_batch_chosen: bool,
    pub(crate) priorities: u8,
    pub(crate) thread_name: String,
    pub(crate) grace: Duration,
    pub(crate) on_fault: OnFault,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) driver: Option<Arc<dyn Driver>>,
    pub(crate) detect_deadlocks: bool,
    /// It is never the current one.
    pub(crate) hidden: bool,
    /// The one that has its threads.
    pub(crate) process: Process,
}

/// The default of [`Builder::on_fault`](super::Builder::on_fault).
pub(crate) fn print_fault(unhandled: &UnhandledFault<'_>) {
    let end = if unhandled.is_source {
        ""
    } else {
        ", and nobody joined it"
    };
    // Not `eprintln!`, which panics where stderr is closed.
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("greenroom: {unhandled}{end}\n"),
    );
}
