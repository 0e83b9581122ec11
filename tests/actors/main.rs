//! Actors: their messages, their ends, and what they await.

#[cfg(target_os = "linux")]
#[path = "../support/child.rs"]
mod child;
#[path = "../support/heap.rs"]
mod heap;
#[path = "../support/support.rs"]
mod support;

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
mod ask;
mod auto_traits;
mod bad_input;
mod bad_input_calls;
mod bounded_send;
mod bugs_lifetimes;
mod bugs_mailbox;
mod bugs_panics;
#[cfg(target_os = "linux")]
mod chat;
mod flood;
mod handlers;
mod mailbox_messages;
mod mailbox_order;
mod mailbox_recv;
mod overflow;
mod own_asks;
mod panics_unwind;
mod refused;
mod requests;
mod source_guards;
mod spawn_macro;
mod strange_wakers;
mod undelivered;
mod urgent;
