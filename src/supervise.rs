//! Restarts and supervision: actors that begin anew after a fault.

pub use crate::actor::{Restartable, Restarting, Restarts};
