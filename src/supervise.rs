//! Restarts and supervision: actors that begin anew after a fault.
//!
//! [`restart`](crate::ActorBuilder::restart) restarts one actor. A [`Supervisor`] decides
//! about several actors together. [The guide](crate::docs::guide#restarts) tells when to use which.

mod child;
mod error;
mod options;
mod rounds;
mod stop;
mod supervising;
mod supervisor;
mod tree;

pub use child::{ChildState, ChildStatus};
pub use error::{Escalated, NotAChild, StartError, StartProblem};
pub use options::{Strategy, SupervisorBuilder};
pub use supervisor::Supervisor;

pub use crate::actor::{Restartable, Restarting, Restarts};
