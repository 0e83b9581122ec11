//! Processes that are killed at random moments of put, take, finish, append and snapshot.
//!
//! A process is this test binary again, which runs only `process`. It writes what it knows to its output,
//! line by line: that is read even if it is killed, and makes a ledger outside of the file.
//! `GREENROOM_CRASHES` sets how many are killed.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use greenroom::sim;
use greenroom::time::{RetryIntervals, sleep};
use greenroom_durable::{Job, Serve, Store};

use crate::support::{Log, Note, Numbers, Refused, ms, secs};

/// The variable with the file of a process, and the first of its numbers.
const PROCESS: &str = "GREENROOM_DURABLE_PROCESS";

/// The numbers of a process at most.
const NUMBERS: u64 = 1_000_000;

fn say(line: &str) {
    // One write for a line, so that it is whole or missing.
    let _ = std::io::stdout()
        .lock()
        .write_all(format!("{line}\n").as_bytes());
}

/// Opens the file and does everything at once, until it is killed.
async fn work(path: &Path, first: u64) {
    let store = Store::sqlite(path).open().await.unwrap();
    let queue = store.queue::<Note>("notes").open().await.unwrap();
    let retries = RetryIntervals::every(ms(1));
    let serve = Serve::workers(3).retries(retries).lease(secs(2));
    let workers = queue.serve(serve, |job| async move {
        say(&format!(
            "begin {} {} {}",
            job.0,
            job.key().unwrap(),
            job.token()
        ));
        if job.0 % 7 == 0 && job.attempt() == 1 {
            return Err(Refused);
        }
        say(&format!("done {} {}", job.0, job.key().unwrap()));
        Ok(())
    });
    let _workers = workers.await.unwrap();
    say("ready");
    let puts = (0..3).map(|key| {
        let queue = queue.clone();
        greenroom::spawn(async move {
            for number in (first + key..first + NUMBERS).step_by(3) {
                let job = Job::new(Note(number))
                    .id(number.to_string())
                    .key(format!("k{key}"));
                if queue.put(job).await.is_ok() {
                    say(&format!("put {number} k{key}"));
                }
                sleep(ms(sim::random() % 3)).await;
            }
        })
    });
    let _puts: Vec<_> = puts.collect();
    let journal = store.journal::<Numbers>("numbers", "all").snapshot_every(5);
    let mut journal = journal.open().await.unwrap();
    for number in first.. {
        if journal.append([Note(number)]).await.is_ok() {
            say(&format!("event {number}"));
        }
    }
}

/// Runs what a test has started this process for. Otherwise there is nothing to do.
#[test]
fn process() {
    let Ok(given) = std::env::var(PROCESS) else {
        return;
    };
    let (first, path) = given.split_once(' ').unwrap();
    // It does not outlive the test: the end of its input ends it.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    // The harness has begun a line.
    say("");
    greenroom::run(work(Path::new(path), first.parse().unwrap()));
}

fn start(path: &Path, first: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crashes::process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(PROCESS, format!("{first} {}", path.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the processes have said.
#[derive(Default)]
struct Said {
    put: BTreeMap<u64, String>,
    /// By number: how often it was done, and by which processes.
    done: BTreeMap<u64, Vec<usize>>,
    begun: BTreeMap<u64, u64>,
    /// By key, in the order of the file of this ledger.
    order: BTreeMap<String, Vec<u64>>,
    events: Vec<u64>,
}

impl Said {
    fn read(&mut self, process: usize, lines: impl Iterator<Item = String>) {
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                ["put", number, key] => {
                    self.put.insert(number.parse().unwrap(), key.into());
                }
                ["begin", number, _, token] => {
                    let (number, token) = (number.parse().unwrap(), token.parse().unwrap());
                    let last = self.begun.insert(number, token).unwrap_or_default();
                    assert!(token > last, "job {number}: token {token} after {last}");
                }
                ["done", number, key] => {
                    let number = number.parse().unwrap();
                    let done = self.done.entry(number).or_default();
                    if done.is_empty() {
                        self.order.entry(key.into()).or_default().push(number);
                    }
                    done.push(process);
                }
                ["event", number] => self.events.push(number.parse().unwrap()),
                // What the test harness says.
                _ => {}
            }
        }
    }

    /// Checks what has to hold when no job waits any more.
    fn check(&self, events: &[u64], killed: usize) {
        for (number, key) in &self.put {
            assert!(
                self.done.contains_key(number),
                "job {number} of {key} was put and not done"
            );
        }
        for (number, processes) in &self.done {
            let unique: BTreeSet<_> = processes.iter().collect();
            // Only the process that has crashed leaves a job that was done and is not stored so.
            assert_eq!(
                unique.len(),
                processes.len(),
                "job {number} was done twice by {processes:?}"
            );
        }
        let again: usize = self.done.values().map(|done| done.len() - 1).sum();
        assert!(
            again <= 3 * killed,
            "{again} jobs were done again after {killed} crashes"
        );
        for (key, order) in &self.order {
            assert!(order.is_sorted(), "the order of {key}: {order:?}");
        }
        assert!(
            events.is_sorted_by(|a, b| a < b),
            "events are there twice or out of order"
        );
        let stored: BTreeSet<_> = events.iter().collect();
        let missing: Vec<_> = self
            .events
            .iter()
            .filter(|it| !stored.contains(it))
            .collect();
        assert_eq!(
            missing, [&0; 0],
            "events that were acknowledged and are not there"
        );
    }
}

/// Returns the lines of a process, as they come.
fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            // The test may have ended.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Does all that waits. Returns what there was to say, and the events.
async fn finish(path: &Path) -> (Vec<String>, Vec<u64>) {
    let store = Store::sqlite(path).open().await.unwrap();
    let queue = store.queue::<Note>("notes").open().await.unwrap();
    let said = Log::new();
    let own = said.clone();
    let workers = queue.serve(Serve::workers(3), move |job| {
        own.add(format!(
            "begin {} {} {}",
            job.0,
            job.key().unwrap(),
            job.token()
        ));
        own.add(format!("done {} {}", job.0, job.key().unwrap()));
        async { Ok::<(), Refused>(()) }
    });
    let workers = workers.await.unwrap();
    queue.drain().await.unwrap();
    workers.stop().await;
    let journal = store
        .journal::<Numbers>("numbers", "all")
        .open()
        .await
        .unwrap();
    let events = journal.state().0.clone();
    store.close().await;
    assert_eq!(Store::check(path).await.unwrap().damages, [""; 0]);
    (said.all(), events)
}

#[test]
fn nothing_is_lost_or_doubled_by_processes_that_are_killed() {
    let crashes = std::env::var("GREENROOM_CRASHES").ok();
    let crashes = crashes.map_or(8, |crashes| crashes.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let mut said = Said::default();
    for process in 0..crashes {
        let mut child = start(&path, process as u64 * NUMBERS);
        let lines = lines(&mut child);
        let mut early = Vec::new();
        while early.last().is_none_or(|line| line != "ready") {
            early.push(lines.recv().expect("the process has ended"));
        }
        // The moment of the crash, which nothing waits for.
        std::thread::sleep(Duration::from_micros(sim::random() % 200_000));
        child.kill().unwrap();
        child.wait().unwrap();
        said.read(process, early.into_iter().chain(lines));
    }
    let (last, events) = greenroom::run(finish(&path));
    said.read(crashes, last.into_iter());
    said.check(&events, crashes);
    assert!(said.done.len() > crashes, "{} jobs", said.done.len());
}
