//! Services above the actors: markets, registries, spools, traces; and examples that use them.

#[cfg(target_os = "linux")]
#[path = "../support/child.rs"]
mod child;
#[path = "../support/support.rs"]
mod support;

#[cfg(target_os = "linux")]
mod bank;
#[cfg(target_os = "linux")]
mod examples;
#[cfg(target_os = "linux")]
mod five_messages;
mod keyed;
mod market;
mod registry;
mod spool;
mod thumbnails;
mod timeline;
mod trace;
