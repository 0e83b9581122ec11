//! Pinned threads: threads with a single-thread executor, for values that are bound to one thread.
//!
//! Everything on a pinned thread is created, polled and dropped there. SDL is an example: its
//! events must be handled on the thread that initialised it. An SQLite connection is best used on
//! the thread that opened it.

mod executor;
mod handle;
mod hosted;
mod local;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod serve;
mod stage;
mod thread;

pub use handle::Pinned;
pub use hosted::Hosted;
pub use local::spawn_local;
pub(crate) use local::spawn_made;
pub use stage::Stage;
pub(crate) use thread::PinnedThread;
