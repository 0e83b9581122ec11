//! Restarts and supervision: actors that begin anew after a fault.
//!
//! Use [`restart`](crate::ActorBuilder::restart) for one actor, and a [`Supervisor`] for actors that
//! begin or end together. Neither is for errors that are expected: return those in a reply.
//!
//! [The guide](crate::docs::guide#restarts) has what becomes of messages and asks.

mod child;
mod error;
mod options;
mod rounds;
mod stop;
mod supervising;
mod supervisor;
mod tree;

pub use child::{ChildState, ChildStatus};
pub use error::{Escalated, NotAChild, StartError};
pub use options::{Strategy, SupervisorBuilder};
pub use supervisor::Supervisor;

pub use crate::actor::{Restartable, Restarts};
