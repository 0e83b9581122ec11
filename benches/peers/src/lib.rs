//! What the programs of this package share.

pub mod counting;
pub mod machine;
