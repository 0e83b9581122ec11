//! Actors: async tasks with a mailbox, one cell each.
//!
//! An actor is spawned on a home, is run whenever it is woken, and ends when its future does. It is
//! woken by a message only while it waits in `recv`. Whoever has an address can send to it.

mod address;
mod cell;
mod context;
mod handle;
mod id;
mod reply;
mod run;
mod spawn;
mod spawn_macro;
mod stage;

pub use address::{Address, Sending, WeakAddress};
pub use context::{Context, Recv};
pub use handle::{Handle, Join};
pub use reply::{Ask, Reply};
pub use spawn::{ActorBuilder, Current, Lives, actor};
