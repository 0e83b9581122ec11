//! The names of greenroom that the cases use.
//!
//! No other file names greenroom. A name that the base lacks stands here twice, and
//! `feature = "base"` chooses. It is empty while the base has all of them.

pub use greenroom::time::sleep;
pub use greenroom::{Address, Context, Handle, Reply, Runtime, spawn};
