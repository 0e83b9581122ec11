//! The code that the programs of this package share.

pub mod child;
pub mod counting;
pub mod linux;
pub mod machine;
pub mod results;
