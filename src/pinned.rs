//! Threads for what must not leave its thread: each with a single-thread executor of its own.
//!
//! Everything on a pinned thread is created, polled and dropped there. Document 1: SDL's events and
//! SQLite's queries must happen on the thread that initialised the library or opened the connection.

mod call;
mod context;
mod executor;
mod handle;
mod hosted;
mod local;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod serve;
mod simulated;
mod stage;
mod start;
mod thread;

pub use handle::Pinned;
pub use hosted::Hosted;
pub use stage::Stage;
pub(crate) use thread::PinnedThread;
