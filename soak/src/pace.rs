//! How fast a process works: a bit faster than two hours need.

use std::time::Instant;

/// Messages and asks a second, of 10⁹ in two hours. They come in bursts at full speed, so the
/// workers also fall asleep and are woken.
pub const MESSAGES: u64 = 240_000;

/// Requests a second, of 10⁷ in two hours.
pub const REQUESTS: u64 = 1_700;

/// Durable jobs a second, of 10⁶ in two hours.
pub const JOBS: u64 = 170;

/// Notes a second between two nodes, of no given number.
pub const NOTES: u64 = 1_000;

/// A process that is late, since it was stopped, catches up with at most so many seconds.
const MOST_LATE: f64 = 5.0;

/// Counts what was done, and tells how long to wait before more.
pub struct Pace {
    a_second: f64,
    /// When what was done should have been done, since the beginning.
    due: f64,
    begin: Instant,
}

impl Pace {
    pub fn new(a_second: u64) -> Self {
        Pace {
            a_second: a_second as f64,
            due: 0.0,
            begin: Instant::now(),
        }
    }

    /// Counts this many, and waits until more may be done.
    pub async fn done(&mut self, count: u64) {
        let wait = self.wait_after(count, self.begin.elapsed().as_secs_f64());
        if wait > 0.0 {
            greenroom::time::sleep(std::time::Duration::from_secs_f64(wait)).await;
        }
    }

    /// Returns for how many seconds to wait after this many more, so many seconds since the beginning.
    fn wait_after(&mut self, count: u64, now: f64) -> f64 {
        self.due = self.due.max(now - MOST_LATE) + count as f64 / self.a_second;
        self.due - now
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn a_process_waits_for_what_it_has_done_too_early() {
        let mut pace = Pace::new(10);
        assert_eq!(pace.wait_after(5, 0.0), 0.5);
        assert_eq!(pace.wait_after(5, 0.25), 0.75);
    }

    #[test]
    fn a_process_that_is_late_catches_up_for_a_while() {
        let mut pace = Pace::new(10);
        assert_eq!(pace.wait_after(10, 3.0), -2.0);
        assert_eq!(pace.wait_after(10, 3.0), -1.0);
        // What it has missed while it was stopped for an hour is not made up for.
        assert_eq!(pace.wait_after(10, 3600.0), -4.0);
    }
}
