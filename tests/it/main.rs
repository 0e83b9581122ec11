//! The tests of behaviour, one file a subject, each test a sentence.

mod actor_close;
mod actor_identity;
mod actor_kill;
mod support;
