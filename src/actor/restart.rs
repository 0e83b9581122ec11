//! Restarts in place: an actor that begins anew, with the same address and messages.
//!
//! Such an actor runs a future of incarnations, to each of which it lends its context.

mod bond;
mod restarting;
mod restarts;

pub(crate) use bond::{Bond, BondOrder, BondReport};
pub use restarting::Restartable;
pub(crate) use restarts::History;
pub use restarts::Restarts;
