//! The tests of behaviour, one file a subject, each test a sentence.

mod actor_close;
mod support;
