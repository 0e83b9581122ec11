//! Runtimes: their workers, their policies, their shutdown; and the promises of docs/origins.md.

#[cfg(target_os = "linux")]
#[path = "../support/child.rs"]
mod child;
#[path = "../support/heap.rs"]
mod heap;
#[path = "../support/support.rs"]
mod support;

mod actor_counts;
mod actor_facts;
mod bugs_runtime;
#[cfg(target_os = "linux")]
mod ctrl_c;
mod futures_spawn;
mod nested_block_on;
mod nested_shutdown;
mod origins;
mod panic_hooks;
mod policies;
mod quiescence;
mod runtime_block_on;
mod runtime_builder;
mod runtime_clones;
mod runtime_current;
mod runtime_fairness;
mod runtime_nested;
mod runtime_overflow;
mod runtime_panics;
mod runtime_spawn;
mod runtime_stealing;
mod shutdown_deadlines;
mod shutdown_drops;
mod shutdown_grace;
mod shutdown_load;
mod shutdown_report;
mod shutdown_within;
mod silence;
mod stats;
#[cfg(target_os = "linux")]
mod stderr;
mod task_locals;
mod task_names;
mod task_sets;
mod task_wakers;
mod thread_locals;
mod waker_panics;
mod watch;
