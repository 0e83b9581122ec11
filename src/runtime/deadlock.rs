//! Deadlock detection: the asks and other waits of actors, and those that wait for each other
//! forever.

mod asks;
mod edge;
mod waits;
mod walk;

#[cfg(all(test, greenroom_loom))]
pub(crate) use asks::end;
#[cfg(not(all(test, greenroom_loom)))]
pub(super) use asks::end;
pub(crate) use asks::{Asks, Listing};
pub(super) use asks::{Listed, deadlocked};
pub(crate) use edge::{Edge, WaitsFor, Who};
pub(crate) use waits::{ActorWaits, WaitListing, detect_waits, detects_waits};
pub(super) use waits::{ListedWait, WaitCycle, cycles};
pub(crate) use walk::name_all;
