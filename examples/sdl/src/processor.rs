//! The processor time of the process, so that an idle machine is not mistaken for a busy one.

use std::fmt;
use std::fs;
use std::time::Duration;

use greenroom::time::Instant;

/// The processor time of the process up to a moment.
pub struct Processor {
    at: Instant,
    /// The time that all threads together ran.
    ran: Duration,
    /// The time that the main thread ran.
    main_ran: Duration,
    /// The time that the main thread was ready but did not run.
    main_waited: Duration,
}

impl Processor {
    /// Reads the current times; all are zero if the system does not report them.
    pub fn now() -> Processor {
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
        let threads = threads.filter_map(|thread| {
            Some(times(
                &fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?,
            ))
        });
        let main = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let (main_ran, main_waited) = times(&main);
        Processor {
            at: Instant::now(),
            ran: threads.map(|(ran, _)| ran).sum(),
            main_ran,
            main_waited,
        }
    }

    /// Describes the times since `self`.
    pub fn since(&self) -> impl fmt::Display + use<> {
        let (now, then) = (Processor::now(), self);
        let all = now.at.duration_since(then.at).as_secs_f64();
        let percent =
            |now: Duration, then: Duration| 100.0 * now.saturating_sub(then).as_secs_f64() / all;
        format!(
            "processors: {:.0} % of {} used; the main thread ran {:.1} %, and {:.1} % it waited to",
            percent(now.ran, then.ran),
            std::thread::available_parallelism().map_or(0, |cores| 100 * cores.get()),
            percent(now.main_ran, then.main_ran),
            percent(now.main_waited, then.main_waited),
        )
    }
}

/// Parses how long a thread ran, and how long it was ready but did not run.
fn times(schedstat: &str) -> (Duration, Duration) {
    let mut numbers = schedstat.split_whitespace();
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    let mut time = || Duration::from_nanos(next().unwrap_or(0));
    (time(), time())
}
