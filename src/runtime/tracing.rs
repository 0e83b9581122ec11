//! What a runtime and a program themselves write into a trace.
//!
//! A note of an actor goes to the tracer of the actor's runtime, any other to that of the current
//! runtime. Both go into the trace of a simulation, too.

use super::context;
use super::inner::Inner;
use crate::task::run;
use crate::tracer::{self, EventKind, NoteKind, Subject, Tracer, short};

impl Inner {
    /// Returns the tracer of the user, if there is one and this is the process of the threads.
    pub(crate) fn tracer(&self) -> Option<&dyn Tracer> {
        let tracer = self.options.tracer.as_deref();
        tracer.filter(|_| self.is_here())
    }

    /// Traces that the runtime has shut down.
    pub(crate) fn trace_end(&self) {
        self.trace_own(EventKind::Ended);
        if let Some(tracer) = self.tracer() {
            tracer::call(tracer, Tracer::flush);
        }
    }

    /// Traces an event of the runtime itself.
    pub(super) fn trace_own(&self, kind: EventKind<'_>) {
        if let Some(tracer) = self.tracer() {
            let subject = || Subject {
                called: self.options.thread_name.clone().into(),
                ..Subject::default()
            };
            tracer::tell(tracer, subject, kind);
        }
    }
}

/// Calls `f` with the tracer to which a note of this thread goes, if there is one.
fn with_tracer(f: &mut dyn FnMut(&dyn Tracer)) {
    if !run::with_tracer(f) {
        context::with_runtime(|runtime| {
            if let Some(tracer) = runtime.and_then(|runtime| runtime.tracer()) {
                f(tracer);
            }
        });
    }
}

/// Traces that this thread has sent an answer, given the name of its type and the actor that has
/// asked.
pub(crate) fn trace_answer((name, to): (&'static str, u64)) {
    let message = &*short(name);
    with_tracer(&mut |tracer| {
        tracer::tell(tracer, run::subject, EventKind::Sent { message, to });
    });
}

/// Returns whether a note of this kind goes anywhere.
#[doc(hidden)]
pub fn is_noted(kind: NoteKind) -> bool {
    let mut is_noted = context::simulated(|_, _| ()).is_some();
    let level = kind.event("").level();
    with_tracer(&mut |tracer| is_noted |= tracer::wants(tracer, level));
    is_noted
}

/// Writes a note.
#[doc(hidden)]
pub fn write_note(kind: NoteKind, text: &str) {
    let _ = context::simulated(|engine, _| engine.note(text));
    with_tracer(&mut |tracer| tracer::tell(tracer, run::subject, kind.event(text)));
}
