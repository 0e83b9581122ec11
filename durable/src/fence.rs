//! `Fence`: whose work a change is.

use crate::records::command::RawFence;

/// A job or a lease in whose name a change is made. The change is refused once that is in other hands.
///
/// A [job](crate::TakenJob::fence) and a [lease](crate::Lease::fence) have one. It fences only within
/// its own store: elsewhere, compare tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence(pub(crate) RawFence);
