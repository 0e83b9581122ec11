//! Models of loopers: any tasks, locks and worlds, at any time, and what always holds of them.
//!
//! [`wild`] draws everything and checks rules. [`naive`] predicts the exact order in which tasks
//! run, where that is determined.

mod book;
mod naive;
mod wild;

use crate::support::Draws;
