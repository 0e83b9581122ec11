//! What the sides share: their arguments, and how a figure is printed. Each includes this file, so that
//! none needs the crates of another one.

use std::time::Instant;

/// The bytes of a job or an event.
pub const PAYLOAD: usize = 100;

/// The callers, or the jobs of a batch.
pub const CALLERS: usize = 64;

/// Returns the case, and the number of its jobs or events: as many for each caller.
///
/// # Panics
/// If the arguments are others.
pub fn arguments() -> (String, usize) {
    let mut words = std::env::args().skip(1);
    let (case, count) = (words.next(), words.next());
    let count = count.and_then(|count| count.parse::<usize>().ok());
    match (case, count) {
        (Some(case), Some(count)) => (case, count / CALLERS * CALLERS),
        _ => panic!("usage: PROGRAM CASE COUNT"),
    }
}

/// Prints how many of them there were in a second.
pub fn print(case: &str, count: usize, start: Instant) {
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("{case} {rate:.0} a second");
}
