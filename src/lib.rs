//! Actors as async tasks, on a work-stealing executor made for them.

mod contain;
mod error;
mod instant;
mod lock;
mod sync;

mod park;
mod task;
mod timers;

mod pinned;
mod runtime;
mod signal;
pub mod time;

mod mailbox;

mod actor;

pub use actor::{
    ActorBuilder, Address, Ask, Context, Current, Handle, Join, Lives, Recv, Reply, Sending,
    WeakAddress, actor,
};
pub use error::{
    AskError, BuildError, Fault, HostFault, Panic, SendError, SpawnError, SpawnProblem, TellError,
    TryHostError, Unjoined,
};
pub use pinned::{Hosted, Pinned};
pub use runtime::{Builder, Runtime, Shutdown, run, spawn, unblock, yield_now};
pub use signal::ctrl_c;
pub use task::{FallibleTask, Task};
