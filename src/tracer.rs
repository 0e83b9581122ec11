//! Tracers: what they receive of actors and their messages, and a tracer that writes lines.
//!
//! A tracer gets names and texts, never a message itself. It knows nothing of actors and runtimes,
//! which call it.

mod call;
mod event;
mod kept;
mod lines;
mod note;
mod sent;
#[cfg(feature = "tracing")]
mod spans;
mod subject;

pub use call::Tracer;
pub use call::forwarding;
pub(crate) use call::{
    call, current_span, forwarded_from, passing_on, sender_here, trace, wants, with_spans,
};
pub use event::{Event, EventKind, Level, LevelError, MessageSource};
pub use lines::Lines;
pub use note::{NoteKind, text_of};
pub(crate) use sent::{ForeignContext, MessageSender, SentSpan};
#[cfg(feature = "tracing")]
pub use spans::{Propagation, Tracing};
pub(crate) use subject::Subject;
