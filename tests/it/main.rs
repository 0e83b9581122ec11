//! Behaviour tests, one file per subject. The name of a test says the behaviour that it checks.

mod actor_close;
mod actor_faults;
mod actor_handle;
mod actor_identity;
mod actor_kill;
mod actor_senders;
mod actor_source_panics;
mod actor_sources;
mod actor_spawn;
mod actor_split;
mod actor_stream;
mod actor_turns;
mod actor_values;
mod actor_values_panics;
mod address_map;
mod around_threads;
mod ask;
mod auto_traits;
mod bad_input;
mod bad_input_calls;
#[cfg(target_os = "linux")]
mod bad_input_threads;
#[cfg(target_os = "linux")]
mod bank;
mod bounded_send;
mod bugs_lifetimes;
mod bugs_looper;
mod bugs_mailbox;
mod bugs_panics;
mod bugs_runtime;
#[cfg(target_os = "linux")]
mod chat;
#[cfg(target_os = "linux")]
mod child;
mod children;
#[cfg(target_os = "linux")]
mod ctrl_c;
mod deadlock;
mod detached;
mod driver;
mod dropped_waits;
#[cfg(target_os = "linux")]
mod examples;
mod figures;
#[cfg(target_os = "linux")]
mod five_messages;
mod flood;
#[cfg(target_os = "linux")]
mod fork;
mod futures_spawn;
mod handlers;
mod heap;
mod hosted;
#[cfg(target_os = "linux")]
mod ledger;
mod looper;
mod looper_model;
mod looper_soak;
mod machine;
mod mailbox_messages;
mod mailbox_order;
mod mailbox_recv;
mod market;
mod nested_block_on;
mod nested_shutdown;
mod net;
mod origins;
mod panics_unwind;
mod pinned_threads;
mod policies;
mod quiescence;
mod registry;
mod requests;
mod restarts;
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
mod simulation;
mod spawn_macro;
mod spool;
mod stage;
mod stage_ends;
#[cfg(target_os = "linux")]
mod stage_eventfd;
mod stage_local;
mod stage_panics;
mod stage_wakes;
mod stats;
mod strange_wakers;
mod supervision;
mod support;
mod task_wakers;
mod thread_locals;
mod thumbnails;
mod tidy;
mod time;
mod time_blocked;
mod time_interval;
mod timeline;
mod trace;
mod unblock;
mod undelivered;
mod waker_panics;
mod warnings;
mod watching;
