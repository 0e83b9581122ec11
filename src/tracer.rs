//! The face of a tracer: what it hears of actors and their messages, and a tracer that writes lines.
//!
//! A tracer gets names and texts, never a message itself. It knows nothing of actors and runtimes,
//! which call it.

mod call;
mod date;
mod event;
mod forwarding;
mod level;
mod lines;
mod name;
mod note;
#[cfg(feature = "tracing")]
mod spans;

pub use call::Tracer;
pub(crate) use call::{call, tell, wants};
pub use event::{Event, EventKind, MessageSource};
pub(crate) use forwarding::forwarded_from;
pub use forwarding::forwarding;
pub use level::{Level, LevelError};
pub use lines::Lines;
pub(crate) use name::{Subject, called, short};
pub use note::{NoteKind, text_of};
#[cfg(feature = "tracing")]
pub use spans::Tracing;
