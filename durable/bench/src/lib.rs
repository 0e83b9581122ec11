//! What the programs share: their arguments, and how a figure is printed.

use std::time::Instant;

/// The bytes of a job or an event.
pub const PAYLOAD: usize = 100;

/// The callers, or the jobs of a batch.
pub const CALLERS: usize = 64;

/// Returns the case, and the number of its jobs or events.
///
/// # Panics
/// If the arguments are others.
pub fn arguments() -> (String, usize) {
    let mut words = std::env::args().skip(1);
    let (case, count) = (words.next(), words.next());
    let count = count.and_then(|count| count.parse().ok());
    match (case, count) {
        (Some(case), Some(count)) => (case, count),
        _ => panic!("usage: PROGRAM put|job|append|replay COUNT"),
    }
}

/// Prints how many of them there were in a second.
pub fn print(case: &str, count: usize, start: Instant) {
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("{case} {rate:.0} a second");
}
