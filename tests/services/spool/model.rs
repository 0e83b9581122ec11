//! Models of spools: requests of any kind, at any time, with any options.
//!
//! [`naive`] predicts each outcome where it is determined: the workers live, and no two events
//! happen at once. [`wild`] draws deaths, hangs, resizes and all else, and checks rules.

mod naive;
mod wild;

use super::*;
use crate::support::Draws;
