//! Actors: async tasks with a mailbox, one cell each.
//!
//! An actor is spawned on an executor, is run whenever it is woken, and ends when its future does.
//! A message wakes it only while it waits in `recv`. Every holder of an address can send to it.

mod address;
mod ask;
mod cell;
mod children;
mod conflated;
mod context;
mod core;
mod deferred;
mod displaced;
mod ending;
mod family;
mod flat;
mod guarded;
mod handle;
mod handlers_macro;
mod handlers_steps;
mod in_flight;
mod incarnation;
mod lifecycle;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod map;
#[doc(hidden)]
pub mod mistakes;
mod own_sources;
mod permit;
mod reader;
mod recipient;
mod reply;
mod request;
mod restart;
mod sending;
mod source;
mod sources;
mod spawn;
mod spawn_macro;
mod split;
mod traced;
mod undelivered;
mod unsent;
mod urgent;
mod values;
mod weak_address;

pub use address::Address;
pub use ask::{Answer, Ask};
pub use context::Context;
pub(crate) use family::Supervised;
pub use handle::{Handle, Join};
pub use permit::Permit;
pub(crate) use reply::Relay;
pub use reply::Reply;
pub use request::{OwnedRequest, Request};
pub(crate) use restart::{Bond, BondOrder, BondReport, History};
pub use restart::{Restartable, Restarts};
pub use source::SourceGuard;
pub use sources::AdoptError;
pub use spawn::{ActorBuilder, Current, Detached, SpawnFrom, SpawnTarget, actor};
pub use unsent::Unsent;
pub use urgent::UrgentError;
pub use values::{Actor, into_actor, without_context};
pub use weak_address::WeakAddress;
