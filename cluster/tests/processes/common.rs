//! What all tests with processes share, over sockets and over NATS.

use std::io::Write;
use std::time::Duration;

/// The time after which a test hangs, and in which a node must be found.
pub const LONG: Duration = Duration::from_secs(60);

/// The lease of the nodes that are to be lost soon. A slow machine stops one of two processes for
/// longer than the shortest one.
pub const SHORT_LEASE: Duration = Duration::from_secs(2);

/// Says that a test is skipped, even if the output of tests is captured.
pub fn skipped(test: &str, why: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "SKIPPED {test}: {why}").unwrap();
}

/// Returns the first value, or the second one if all is to be run.
pub fn scaled<T>(few: T, all: T) -> T {
    match std::env::var("GREENROOM_FAULTS").as_deref() {
        Ok("all") => all,
        _ => few,
    }
}

/// Returns whether the long part is to be run. Says so if not.
pub fn is_long(test: &str) -> bool {
    let is_long = scaled(false, true);
    if !is_long {
        skipped(test, "GREENROOM_FAULTS=all runs it");
    }
    is_long
}

/// Waits until a condition holds.
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        greenroom::time::sleep(Duration::from_millis(1)).await;
    }
}
