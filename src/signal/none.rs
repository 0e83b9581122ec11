//! A system without signals.

use std::io;
use std::sync::Arc;

use super::{Arrivals, Signal};

/// Returns an error.
pub(super) fn listen(_signal: Signal, _arrivals: Arc<Arrivals>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
