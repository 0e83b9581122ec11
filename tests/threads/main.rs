//! Pinned threads, stages, drivers, loopers and timers.

#[cfg(target_os = "linux")]
#[path = "../support/child.rs"]
mod child;
#[path = "../support/support.rs"]
mod support;

mod around_threads;
#[cfg(target_os = "linux")]
mod bad_input_threads;
mod bugs_looper;
mod detached;
mod driver;
#[cfg(target_os = "linux")]
mod fork;
mod hosted;
mod looper;
mod looper_model;
mod looper_soak;
mod net;
mod pinned_threads;
mod stage;
mod stage_ends;
#[cfg(target_os = "linux")]
mod stage_eventfd;
mod stage_local;
mod stage_panics;
mod stage_wakes;
mod time;
mod time_blocked;
mod time_interval;
mod unblock;
#[cfg(target_os = "linux")]
mod unblock_starts;
