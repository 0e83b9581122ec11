//! A process that the parent has started, over all of its lives.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::clock::{STEP, SteppedClock};
use super::faults::{Injected, Rates};
use super::samples::{Samples, Usage};
use crate::report::{Order, Report, Tallies};
use crate::system::{self, Sent};

/// A process that does not end within this hangs. No promise has this bound.
const PATIENCE: Duration = Duration::from_secs(600);

const LOOK: Duration = Duration::from_millis(10);

/// What a process is started for.
pub struct WardRole {
    pub name: &'static str,
    pub words: Vec<String>,
    pub rates: Rates,
    /// It aborts by itself, and is started again.
    pub aborts: bool,
}

/// A process in its present life.
struct RunningWard {
    child: Child,
    input: ChildStdin,
    reports: Receiver<Report>,
    reader: Option<JoinHandle<()>>,
    /// It goes on then, if it was stopped.
    stopped_until: Option<Instant>,
}

pub struct Ward {
    pub role: WardRole,
    running: Option<RunningWard>,
    pub lives: u64,
    /// The counts of the lives that are over, and of this one.
    past: Tallies,
    present: Tallies,
    is_ready: bool,
    has_ended: bool,
    pub faults: BTreeMap<Injected, u64>,
    pub samples: Samples,
    pub sentences: Vec<String>,
}

impl Ward {
    pub fn new(role: WardRole) -> Ward {
        Ward {
            role,
            running: None,
            lives: 0,
            past: Tallies::new(),
            present: Tallies::new(),
            is_ready: false,
            has_ended: false,
            faults: BTreeMap::new(),
            samples: Samples::default(),
            sentences: Vec::new(),
        }
    }

    /// Starts a life, with more words for this one.
    pub fn start(&mut self, clock: Option<&SteppedClock>, more: &[String]) -> std::io::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&self.role.words).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Otherwise the heap of glibc keeps more, the larger the blocks are that it has seen, and a life
        // that has seen some seems to grow beside one that has not yet.
        command.env("MALLOC_MMAP_THRESHOLD_", "131072");
        if self.role.aborts {
            // What it says when it aborts is known.
            command.stderr(Stdio::null());
        }
        if let Some(clock) = clock {
            command.env("LD_PRELOAD", &clock.library);
            command.env(STEP, &clock.file);
        }
        let mut child = system::ends_with_this_thread(&mut command).spawn()?;
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (to, reports) = channel();
        let reader = thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let report = Report::read(&line);
                let report = report.unwrap_or_else(|| Report::Wrong(format!("it says {line:?}")));
                let _ = to.send(report);
            }
        });
        self.running = Some(RunningWard {
            child,
            input,
            reports,
            reader: Some(reader),
            stopped_until: None,
        });
        self.lives += 1;
        Ok(())
    }

    /// Takes what the process has reported.
    pub fn hear(&mut self) {
        let Some(running) = &self.running else { return };
        let reports: Vec<Report> = running.reports.try_iter().collect();
        for report in reports {
            match report {
                Report::Ready => self.is_ready = true,
                Report::Counts(counts) => self.present = counts,
                Report::Wrong(sentence) => self.blame(&sentence),
                Report::Ended => self.has_ended = true,
            }
        }
    }

    fn blame(&mut self, sentence: &str) {
        let sentence = format!("{}, life {}: {sentence}", self.role.name, self.lives);
        eprintln!("soak: {sentence}");
        self.sentences.push(sentence);
    }

    /// Returns whether the life is over by itself. A process that aborts is to do so, and any other one
    /// is not.
    pub fn is_over(&mut self) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let Ok(Some(status)) = running.child.try_wait() else {
            return false;
        };
        self.bury(status);
        true
    }

    /// Closes a life that is over.
    fn bury(&mut self, status: ExitStatus) {
        self.close_life();
        let is_abort = self.role.aborts && status.signal() == Some(libc::SIGABRT);
        match (is_abort, self.is_ready) {
            (true, true) => *self.faults.entry(Injected::Aborted).or_default() += 1,
            (true, false) => self.blame("it has aborted before it answered"),
            _ => self.blame(&format!("it has ended by itself: {status}")),
        }
        self.is_ready = false;
    }

    /// Takes the last reports of a process that has ended.
    fn close_life(&mut self) {
        let reader = self
            .running
            .as_mut()
            .and_then(|running| running.reader.take());
        let _ = reader.map(JoinHandle::join);
        self.hear();
        self.running = None;
        for (name, count) in std::mem::take(&mut self.present) {
            *self.past.entry(name).or_default() += count;
        }
    }

    /// Returns the counts of all lives.
    pub fn counts(&self) -> Tallies {
        let mut counts = self.past.clone();
        for (name, count) in &self.present {
            *counts.entry(name.clone()).or_default() += count;
        }
        counts
    }

    /// Looks at what the process takes.
    pub fn sample(&mut self, at: f64) {
        let Some(running) = &self.running else { return };
        if self.role.aborts {
            // Its lives are too short to grow.
            return;
        }
        let id = running.child.id().to_string();
        // It may end meanwhile.
        if let (Some(memory), Some(threads), Some(descriptors)) = (
            system::kib(&id, "VmRSS"),
            system::threads(&id),
            system::descriptors(&id),
        ) {
            let taken = Usage {
                memory,
                threads,
                descriptors,
            };
            self.samples.add(at, taken);
        }
    }

    /// Injects a fault. A process that has no life at the moment has none.
    pub fn inject(&mut self, fault: Injected, time: Duration) {
        let Some(running) = &mut self.running else {
            return;
        };
        let done = match fault {
            Injected::Killed => running.child.kill(),
            Injected::Stopped => {
                running.stopped_until = Some(Instant::now() + time);
                system::signal(running.child.id(), Sent::Stop)
            }
            Injected::NoDescriptors => running.order(Order::Descriptors),
            Injected::NoThreads => running.order(Order::Threads),
            Injected::Stepped | Injected::Aborted => return,
        };
        match done {
            Ok(()) => *self.faults.entry(fault).or_default() += 1,
            Err(error) => self.blame(&format!("it cannot be {}: {error}", fault.name())),
        }
        if fault == Injected::Killed
            && let Some(running) = &mut self.running
        {
            let _ = running.child.wait();
            self.close_life();
            self.is_ready = false;
        }
    }

    /// Lets a process go on whose time is over.
    pub fn go_on(&mut self, now: Instant) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.stopped_until.is_some_and(|until| until <= now) {
            running.stopped_until = None;
            if let Err(error) = system::signal(running.child.id(), Sent::Continue) {
                self.blame(&format!("it does not go on: {error}"));
            }
        }
    }

    /// Orders the process to end, and waits for it. A process that aborts is killed.
    pub fn end(&mut self) {
        self.go_on(Instant::now() + PATIENCE);
        let Some(running) = &mut self.running else {
            return;
        };
        if self.role.aborts {
            let _ = running.child.kill();
            let _ = running.child.wait();
            return self.close_life();
        }
        let _ = running.order(Order::End);
        let begin = Instant::now();
        loop {
            let Some(running) = &mut self.running else {
                return;
            };
            match running.child.try_wait() {
                Ok(None) if begin.elapsed() < PATIENCE => {}
                Ok(Some(status)) => {
                    self.close_life();
                    if !status.success() || !self.has_ended {
                        self.blame(&format!("it has not ended well: {status}"));
                    }
                    return;
                }
                _ => {
                    let _ = running.child.kill();
                    let _ = running.child.wait();
                    self.close_life();
                    return self.blame("it hangs: it does not end");
                }
            }
            self.hear();
            thread::sleep(LOOK);
        }
    }
}

impl RunningWard {
    fn order(&mut self, order: Order) -> std::io::Result<()> {
        self.input
            .write_all(format!("{}\n", order.word()).as_bytes())
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}
