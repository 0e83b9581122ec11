//! Deadlock detection: the asks that wait, and those that wait for each other forever.

mod asks;
mod edge;
mod walk;

#[cfg(all(test, greenroom_loom))]
pub(crate) use asks::end;
#[cfg(not(all(test, greenroom_loom)))]
pub(super) use asks::end;
pub(crate) use asks::{Asks, Listing};
pub(super) use asks::{Listed, deadlocked};
pub(crate) use edge::{Edge, Who};
pub(crate) use walk::name_all;
