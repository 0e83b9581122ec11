//! The tests of behaviour, one file a subject, each test a sentence.

mod actor_close;
mod actor_faults;
mod actor_handle;
mod actor_identity;
mod actor_kill;
mod actor_spawn;
mod ask;
mod bounded_send;
mod child;
mod heap;
mod mailbox_messages;
mod mailbox_order;
mod mailbox_recv;
mod origins;
mod runtime_block_on;
mod runtime_builder;
mod runtime_clones;
mod runtime_current;
mod runtime_fairness;
mod runtime_nested;
mod runtime_panics;
mod runtime_spawn;
mod runtime_stealing;
mod spawn_macro;
mod support;
