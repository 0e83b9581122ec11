//! The work of a pool, and its clients.

use std::pin::pin;

use crate::gate::{Gate, is_pending};

/// How many workers compute at the same time.
pub const WORKERS: usize = 4;
/// How many keys may wait for a worker.
pub const QUEUE: usize = 4;
/// The key whose computation panics.
const POISON: u64 = 666;

/// Computes the value of a key, on a worker.
pub async fn compute(key: u64, gate: &Gate) -> u64 {
    gate.pass().await;
    assert_ne!(key, POISON, "the key is poison");
    key * key
}

/// Why a key has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// All workers compute, and the queue is full.
    Busy,
    /// The worker has panicked.
    Crashed,
    /// The pool has ended.
    Ended,
}

/// Asks for values while all workers are busy, again, and for one that cannot be computed. `get`
/// sends its request when it is polled first.
pub async fn use_pool<F: Future<Output = Result<u64, Failure>>>(
    gate: &Gate,
    get: impl Fn(u64) -> F,
) {
    gate.close();
    let mut asked = Vec::new();
    for key in 0..8 {
        asked.push(Box::pin(get(key)));
        assert!(is_pending(asked.last_mut().unwrap()).await);
        gate.reached(WORKERS.min(asked.len())).await;
    }
    println!("a ninth key: {:?}", get(8).await);
    for key in 0..8 {
        asked.push(Box::pin(get(key)));
        assert!(is_pending(asked.last_mut().unwrap()).await);
    }
    gate.open();
    let mut values = Vec::new();
    for value in asked {
        values.push(value.await.expect("the request was accepted"));
    }
    println!(
        "each of eight keys twice: {values:?}, {} computed",
        gate.arrived()
    );
    println!(
        "one of them again: {:?}, {} computed",
        get(7).await,
        gate.arrived()
    );
    println!("poison: {:?}, {:?}", get(POISON).await, get(POISON).await);
    println!(
        "afterwards: {:?}, {} computed",
        get(8).await,
        gate.arrived()
    );
}

/// Asks for a value that is in the cache, of a pool that has ended.
pub async fn use_ended(get: impl Future<Output = Result<u64, Failure>>) {
    println!("after the end: {:?}", pin!(get).await);
}
