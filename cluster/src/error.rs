//! The errors of the distance, one for each operation.

mod ask;
mod lookup;
mod open;
mod send;

pub use ask::RemoteAskError;
pub use lookup::LookupError;
pub use open::{OpenError, PublishError, RenewError};
pub use send::{Distance, NotSent};
