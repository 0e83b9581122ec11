//! Guides: how to use greenroom, what it guarantees, what it costs and where its limits are.
//!
//! The programs in these pages are compiled and run with the other documentation tests.

#[doc = include_str!("docs/guide.md")]
#[doc = include_str!("../docs/timeline.svg")]
#[doc = ""]
#[doc = include_str!("docs/timeline.md")]
pub mod guide {}

#[doc = include_str!("docs/with_tokio.md")]
pub mod with_tokio {}

#[doc = include_str!("docs/from_tokio.md")]
pub mod from_tokio {}

#[doc = include_str!("docs/from_actors.md")]
pub mod from_actors {}

#[doc = include_str!("docs/guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("docs/limits.md")]
pub mod limits {}

#[doc = include_str!("docs/performance.md")]
pub mod performance {}
