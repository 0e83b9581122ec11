//! What the programs about panics, full mailboxes and ends have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::gate::Gate;

/// How many messages wait in a mailbox when its actor panics, stops or is overloaded.
pub const WAITING: usize = 2;

/// The work of an actor: each message waits at the gate, and then is counted or divides a hundred.
/// A clone is the same work.
#[derive(Clone, Default)]
pub struct Work {
    /// Where the actor waits with each message.
    pub gate: Gate,
    notes: Arc<AtomicUsize>,
}

impl Work {
    /// Counts one message.
    pub async fn note(&self) {
        self.gate.pass().await;
        self.notes.fetch_add(1, Ordering::Relaxed); // read after the end of the actor, or an answer
    }

    /// Divides a hundred, and panics if that is impossible.
    pub async fn divide(&self, n: u64) -> u64 {
        self.gate.pass().await;
        100 / n
    }

    /// Returns how many messages were counted, of those that waited.
    pub fn notes(&self) -> String {
        format!("{} of {WAITING}", self.notes.load(Ordering::Relaxed))
    }
}

/// What each program finds out, in this order.
const ROWS: [&str; 9] = [
    "a panic: the asker gets",
    "a panic: the owner gets",
    "a panic: messages that wait",
    "a panic: a later message",
    "a restart: messages that wait",
    "a full mailbox: a message that does not wait for room",
    "a full mailbox: a message that waits for room",
    "a stop: messages that wait",
    "the end of `main`: messages that wait",
];

/// Prints what a program has found out.
pub fn print(facts: [String; ROWS.len()]) {
    for (row, fact) in ROWS.iter().zip(facts) {
        println!("{row}|{fact}");
    }
}
