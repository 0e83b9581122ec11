//! Which actors are suspects, and what the causes of their waits are. It only reads a model.

mod chain;
mod cycles;
mod says;
mod suspects;

pub use chain::{Chain, ChainLink, LinkKind, chain};
pub use cycles::cycles;
pub use says::{duration, restarts_text, still_text, waits_text};
pub use suspects::{Suspect, Suspects, Trouble, suspects};

/// A turn that takes longer is long: other actors of its worker wait meanwhile.
pub const LONG_TURN_US: u64 = 10_000;

/// An actor that has had no turn for so long stands still.
pub const STILL_MS: u64 = 2_000;
