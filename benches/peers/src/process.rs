//! What Linux reports about this process: memory, and the activity of its threads.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::{
    CORES, Figure, HOPS, IDLE_CPU, LIVE, PEAK, PEAK_MIB, RESIDENT, SWITCHES, TASK,
};
use crate::sizes::{SETTLE, WATCH};
use peers::counting;
use peers::linux::{self, field};

/// The peak resident size up to a moment.
pub struct Peak {
    bytes: f64,
}

impl Peak {
    /// Reads the size; called just before the first spawn.
    pub fn now() -> Self {
        Self {
            bytes: linux::peak(),
        }
    }

    /// Returns the growth of the peak since then, for each actor.
    pub fn growth(&self, actors: u64) -> Figure {
        Figure {
            what: PEAK,
            value: self.grown() / actors as f64,
        }
    }

    /// Returns the growth of the peak since then.
    pub fn mebibytes(&self) -> Figure {
        Figure {
            what: PEAK_MIB,
            value: self.grown() / f64::from(1 << 20),
        }
    }

    fn grown(&self) -> f64 {
        linux::peak() - self.bytes
    }
}

/// The resident and allocated memory at a moment.
pub struct Memory {
    bytes: f64,
}

impl Memory {
    /// Reads both; called just before the first spawn.
    pub fn now() -> Self {
        let bytes = linux::resident();
        counting::start();
        Self { bytes }
    }

    /// Returns the growth of both since then for each actor, after all actors are dormant.
    pub fn growth(&self, actors: u64) -> Vec<Figure> {
        thread::sleep(SETTLE);
        let live = counting::stop();
        let grown = linux::resident() - self.bytes;
        vec![
            Figure {
                what: RESIDENT,
                value: grown / actors as f64,
            },
            Figure {
                what: LIVE,
                value: live.bytes as f64 / actors as f64,
            },
        ]
    }
}

/// A count of allocated memory.
pub struct LiveTasks;

impl LiveTasks {
    /// Starts to count; called just before the first spawn.
    pub fn now() -> Self {
        counting::start();
        Self
    }

    /// Returns the growth for each task.
    pub fn growth(self, tasks: u64) -> Figure {
        Figure {
            what: TASK,
            value: counting::stop().bytes as f64 / tasks as f64,
        }
    }
}

/// The time and the processor time of all threads, from a moment on.
pub struct Stopwatch {
    cpu: Duration,
    begin: Instant,
}

/// The times that a stopwatch has measured.
pub struct Lap {
    cpu: Duration,
    time: Duration,
}

impl Stopwatch {
    /// Starts; called just before the measured code.
    pub fn start() -> Self {
        let cpu = linux::process_clock();
        Self {
            cpu,
            begin: Instant::now(),
        }
    }

    /// Stops; called just after the measured code.
    pub fn stop(&self) -> Lap {
        let time = self.begin.elapsed();
        Lap {
            cpu: linux::process_clock() - self.cpu,
            time,
        }
    }
}

impl Lap {
    /// Returns `count` divided by the time in seconds.
    pub fn rate(&self, what: &'static str, count: u64) -> Figure {
        Figure {
            what,
            value: count as f64 / self.time.as_secs_f64(),
        }
    }

    /// Returns the processor time in nanoseconds, divided by `count`.
    pub fn cpu_of_each(&self, what: &'static str, count: u64) -> Figure {
        Figure {
            what,
            value: self.cpu.as_secs_f64() * 1e9 / count as f64,
        }
    }

    /// Returns the figures of `ring_tokens`; the second one is how many cores were busy on average.
    pub fn hops_and_cores(&self, hops: u64) -> Vec<Figure> {
        let cores = Figure {
            what: CORES,
            value: self.cpu.as_secs_f64() / self.time.as_secs_f64(),
        };
        vec![self.rate(HOPS, hops), cores]
    }
}

/// Returns how often all threads but the calling one have gone to sleep so far.
pub fn voluntary_switches() -> u64 {
    let of = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        field(&status, "voluntary_ctxt_switches")
    };
    others().iter().map(|folder| of(folder)).sum()
}

/// Returns the folders under `/proc` of all threads but the calling one.
fn others() -> Vec<PathBuf> {
    let own = fs::read_link("/proc/thread-self").unwrap_or_default();
    let own = own.file_name().map(ToOwned::to_owned);
    let entries = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter(|entry| Some(entry.file_name()) != own)
        .map(|entry| entry.path())
        .collect()
}

/// Context switches and nanoseconds of CPU so far.
type Done = (u64, u64);

/// Returns the activity so far of every thread but the calling one.
fn threads() -> HashMap<PathBuf, Done> {
    let done = |folder: PathBuf| {
        let read = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let (status, schedule) = (read("status"), read("schedstat"));
        let switches = field(&status, "voluntary_ctxt_switches")
            + field(&status, "nonvoluntary_ctxt_switches");
        let cpu = schedule
            .split_whitespace()
            .next()
            .and_then(|ns| ns.parse().ok())
            .unwrap_or(0);
        (folder, (switches, cpu))
    };
    others().into_iter().map(done).collect()
}

/// Watches the other threads while there is no work. A thread that ends meanwhile counts as one
/// switch, a thread that starts with all its switches.
pub fn watch_idle() -> Vec<Figure> {
    watch_for(WATCH)
}

fn watch_for(time: Duration) -> Vec<Figure> {
    thread::sleep(SETTLE);
    let before = threads();
    assert!(!before.is_empty(), "a runtime with workers has threads");
    thread::sleep(time);
    let after = threads();
    let ended = before
        .keys()
        .filter(|thread| !after.contains_key(*thread))
        .count();
    let (mut switches, mut cpu) = (ended as u64, 0);
    for (thread, (switches_after, cpu_after)) in after {
        let (switches_before, cpu_before) = before.get(&thread).copied().unwrap_or_default();
        switches += switches_after - switches_before;
        cpu += cpu_after - cpu_before;
    }
    vec![
        Figure {
            what: SWITCHES,
            value: switches as f64,
        },
        Figure {
            what: IDLE_CPU,
            value: cpu as f64 / 1e3,
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Returns the switches in 50 ms of a thread that waits, for `pause` at a time or without an
    /// end.
    fn switches(pause: Option<Duration>) -> f64 {
        let (stop, stopped) = mpsc::channel::<()>();
        let waiting = thread::spawn(move || match pause {
            None => stopped.recv().is_err(),
            Some(pause) => loop {
                if stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Disconnected) {
                    break true;
                }
            },
        });
        let figures = watch_for(Duration::from_millis(50));
        drop(stop);
        assert!(waiting.join().expect("no panic"));
        figures[0].value
    }

    #[test]
    fn switches_of_a_polling_thread_are_counted() {
        assert_eq!(switches(None), 0.0);
        assert!(switches(Some(Duration::from_millis(1))) >= 10.0);
    }
}
