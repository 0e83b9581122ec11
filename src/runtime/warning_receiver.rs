//! Who receives the warnings of a runtime: the function of `on_warning`, or else the tracer, or else
//! stderr.
//!
//! A warning is reported by the thread that notices it, while it holds no lock.

use std::sync::Arc;

use super::options::{OnWarning, Options};
use super::warning::{Continues, Warning, WorkerPanic};
use crate::contain::{Panic, contain};
use crate::stderr::print_line;
use crate::sync::Process;
use crate::tracer::{self, EventKind, Level, Subject, Tracer};

#[derive(Clone)]
pub(super) struct WarningReceiver {
    on_warning: Option<OnWarning>,
    tracer: Option<Arc<dyn Tracer>>,
    /// The name of the runtime, in its trace.
    called: String,
    is_simulated: bool,
    process: Process,
}

impl WarningReceiver {
    pub(super) fn new(options: &Options, is_simulated: bool) -> Self {
        WarningReceiver {
            on_warning: options.on_warning.clone(),
            tracer: options.tracer.clone(),
            called: options.thread_name.clone(),
            is_simulated,
            process: options.process,
        }
    }

    /// Warns that a worker has panicked outside any turn.
    pub(super) fn worker_panicked(&self, worker: usize, panic: &Panic, continues: Continues) {
        self.warn(&Warning::WorkerPanicked(WorkerPanic {
            worker,
            panic: panic.to_string(),
            continues,
        }));
    }

    /// Gives the receiver a warning. A panic of the receiver is contained.
    pub(super) fn warn(&self, warning: &Warning) {
        if !self.process.is_current() {
            return;
        }
        if let Some(on_warning) = &self.on_warning {
            contain(|| on_warning(warning));
        } else if let Some(tracer) = &self.tracer {
            let text = warning.to_string();
            let kind = EventKind::Note {
                level: Level::Warning,
                text: &text,
            };
            let subject = || Subject {
                called: self.called.clone().into(),
                ..Subject::default()
            };
            tracer::tell(&**tracer, subject, kind);
        } else if !self.is_simulated {
            print_line(format_args!("{warning}"));
        }
    }
}
