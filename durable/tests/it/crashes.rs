//! Processes that are killed at random moments of put, take, finish, append and snapshot.
//!
//! A process is this test binary again, which runs only `process`. It writes what it knows to its output,
//! line by line: that is read even if it is killed, and makes a ledger outside of the file. Two processes
//! at once write into the same pipe, so the ledger has their lines in the order in which they were
//! written. `GREENROOM_CRASHES` sets how many are killed.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use greenroom::sim;
use greenroom::time::{RetryIntervals, sleep};
use greenroom_durable::{Job, Serve, Store};

use crate::support::{Log, Note, Numbers, Refused, ms, secs};

/// The variable with the number of a process, its journal, and the file.
const PROCESS: &str = "GREENROOM_DURABLE_PROCESS";

/// The numbers of a process at most.
const NUMBERS: u64 = 1_000_000;

/// The lease of a job.
const LEASE: Duration = Duration::from_secs(2);

/// Says something as the process of this number, and before it that the process has stood still for
/// half a lease: by then the lease of a job may be over.
fn say(process: u64, line: &str) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let last = LAST.lock().unwrap().replace(Instant::now());
    if last.is_some_and(|last| last.elapsed() > LEASE / 2) {
        write(process, "stood");
    }
    write(process, line);
}

fn write(process: u64, line: &str) {
    // One write for a line, so that it is whole or missing.
    let _ = std::io::stdout()
        .lock()
        .write_all(format!("{process} {line}\n").as_bytes());
}

/// Opens the file and does everything at once, until it is killed.
async fn work(path: &Path, process: u64, journal: &str) {
    // Another process may be writing all the time.
    let store = Store::sqlite(path).busy_limit(secs(60)).open();
    let store = store.await.unwrap();
    let queue = store.queue::<Note>("notes").open().await.unwrap();
    let retries = RetryIntervals::every(ms(1));
    let serve = Serve::workers(3).retries(retries).lease(LEASE);
    let workers = queue.serve(serve, move |job| async move {
        let key = job.key().unwrap();
        say(process, &format!("begin {} {key} {}", job.0, job.token()));
        if job.0 % 7 == 0 && job.attempt() == 1 {
            return Err(Refused);
        }
        // So that another job of the key could begin meanwhile, if one may.
        greenroom::yield_now().await;
        say(process, &format!("done {} {key}", job.0));
        Ok(())
    });
    let _workers = workers.await.unwrap();
    say(process, "ready");
    let first = process * NUMBERS;
    let puts = (0..3).map(|key| {
        let queue = queue.clone();
        greenroom::spawn(async move {
            for number in (first + key..first + NUMBERS).step_by(3) {
                let job = Job::new(Note(number))
                    .id(number.to_string())
                    .key(format!("k{key}"));
                if queue.put(job).await.is_ok() {
                    say(process, &format!("put {number} k{key}"));
                }
                sleep(ms(sim::random() % 3)).await;
            }
        })
    });
    let _puts: Vec<_> = puts.collect();
    let journal = store.journal::<Numbers>("numbers", journal);
    let mut journal = journal.snapshot_every(5).open().await.unwrap();
    for number in first.. {
        if journal.append([Note(number)]).await.is_ok() {
            say(process, &format!("event {number}"));
        }
    }
}

/// Runs what a test has started this process for. Otherwise there is nothing to do.
#[test]
fn process() {
    let Ok(given) = std::env::var(PROCESS) else {
        return;
    };
    let (process, given) = given.split_once(' ').unwrap();
    let (journal, path) = given.split_once(' ').unwrap();
    // It does not outlive the test: the end of its input ends it.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    let process = process.parse().unwrap();
    greenroom::run(work(Path::new(path), process, journal));
}

/// A process that is killed, or ends with its test.
struct Worker(Child);

impl Worker {
    fn start(path: &Path, process: u64, journal: &str, output: &PipeWriter) -> Worker {
        let mut worker = Command::new(std::env::current_exe().unwrap());
        // Quiet, so that the harness writes whole lines only.
        worker.args(["--exact", "crashes::process"]).args([
            "--nocapture",
            "--test-threads=1",
            "--quiet",
        ]);
        worker.env(PROCESS, format!("{process} {journal} {}", path.display()));
        let output = output.try_clone().unwrap();
        let worker = worker.stdin(Stdio::piped()).stdout(output);
        Worker(worker.spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the processes have said.
struct Said {
    /// How many processes run at once.
    at_once: u64,
    put: BTreeMap<u64, String>,
    /// By number: the processes that have done it.
    done: BTreeMap<u64, Vec<u64>>,
    tokens: BTreeSet<u64>,
    /// By key, the latest token and the number that has begun with it, until that is done.
    running: BTreeMap<String, (u64, Option<u64>)>,
    /// By key, and by those of the processes that run one after another, in the order of this ledger.
    order: BTreeMap<(String, u64), Vec<u64>>,
    events: Vec<u64>,
    /// The processes that have stood still, once for each time.
    stood: Vec<u64>,
}

impl Said {
    fn new(at_once: u64) -> Said {
        Said {
            at_once,
            put: BTreeMap::new(),
            done: BTreeMap::new(),
            tokens: BTreeSet::new(),
            running: BTreeMap::new(),
            order: BTreeMap::new(),
            events: Vec::new(),
            stood: Vec::new(),
        }
    }

    fn read(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            [_, "put", number, key] => {
                self.put.insert(number.parse().unwrap(), key.into());
            }
            [_, "begin", number, key, token] => {
                self.begin(number.parse().unwrap(), key, token.parse().unwrap());
            }
            [process, "done", number, key] => {
                self.done(process.parse().unwrap(), number.parse().unwrap(), key);
            }
            [process, "stood"] => self.stood.push(process.parse().unwrap()),
            [_, "event", number] => self.events.push(number.parse().unwrap()),
            // What the test harness says.
            _ => {}
        }
    }

    /// A job that has failed, or whose process was killed, still holds its key back.
    fn begin(&mut self, number: u64, key: &str, token: u64) {
        assert!(self.tokens.insert(token), "token {token} is there twice");
        let (latest, running) = self.running.entry(key.into()).or_default();
        // Otherwise its worker has said it after the end of its lease.
        if token > *latest {
            let same = running.is_none_or(|running| running == number);
            assert!(same, "job {number} begins beside {running:?} of {key}");
            (*latest, *running) = (token, Some(number));
        }
    }

    fn done(&mut self, process: u64, number: u64, key: &str) {
        if let Some((_, running)) = self.running.get_mut(key) {
            *running = running.filter(|running| *running != number);
        }
        let done = self.done.entry(number).or_default();
        if done.is_empty() {
            let turn = number / NUMBERS % self.at_once;
            self.order
                .entry((key.into(), turn))
                .or_default()
                .push(number);
        }
        done.push(process);
    }

    /// Reads until something is so after a line.
    fn read_until(
        &mut self,
        lines: &Receiver<String>,
        worker: &mut Worker,
        is_so: impl Fn(&Said, &str) -> bool,
    ) {
        loop {
            match lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => {
                    self.read(&line);
                    if is_so(self, &line) {
                        return;
                    }
                }
                Err(_) => assert!(worker.0.try_wait().unwrap().is_none(), "it has ended"),
            }
        }
    }

    /// Checks what has to hold when no job waits any more.
    fn check(&self, journals: &[Vec<u64>]) {
        for (number, key) in &self.put {
            let is_done = self.done.contains_key(number);
            assert!(is_done, "job {number} of {key} was put and not done");
        }
        for (key, order) in &self.order {
            assert!(order.is_sorted(), "the order of {key:?}: {order:?}");
        }
        for events in journals {
            let are_in_order = events.is_sorted_by(|a, b| a < b);
            assert!(are_in_order, "events are there twice or out of order");
        }
        let stored: BTreeSet<_> = journals.iter().flatten().collect();
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

    /// Checks that jobs were done again after crashes only, and after leases that a slow machine has
    /// let pass.
    fn check_repeats(&self, killed: u64) {
        for (number, processes) in &self.done {
            let steady = processes.iter().filter(|it| !self.stood.contains(it));
            let unique: BTreeSet<_> = steady.clone().collect();
            // Only the process that has crashed leaves a job that was done and is not stored so.
            assert_eq!(
                unique.len(),
                steady.count(),
                "job {number} was done twice by {processes:?}"
            );
        }
        let again: usize = self.done.values().map(|done| done.len() - 1).sum();
        assert!(
            again as u64 <= 3 * (killed + self.stood.len() as u64),
            "{again} jobs were done again after {killed} crashes"
        );
    }
}

/// Returns the lines that come out of a pipe, until all who may write into it have ended.
fn lines(output: PipeReader) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // The test may have ended.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Does all that waits, as the process of this number. Returns what there was to say, and the events of
/// these journals.
async fn finish(path: &Path, process: u64, journals: &[&str]) -> (Vec<String>, Vec<Vec<u64>>) {
    let store = Store::sqlite(path).open().await.unwrap();
    let queue = store.queue::<Note>("notes").open().await.unwrap();
    let said = Log::new();
    let own = said.clone();
    let workers = queue.serve(Serve::workers(3), move |job| {
        let (key, token) = (job.key().unwrap(), job.token());
        own.add(format!("{process} begin {} {key} {token}", job.0));
        own.add(format!("{process} done {} {key}", job.0));
        async { Ok::<(), Refused>(()) }
    });
    let workers = workers.await.unwrap();
    queue.drain().await.unwrap();
    workers.stop().await;
    let mut events = Vec::new();
    for journal in journals {
        let journal = store.journal::<Numbers>("numbers", journal);
        events.push(journal.open().await.unwrap().state().0.clone());
    }
    store.close().await;
    assert_eq!(Store::check(path).await.unwrap().damages, [""; 0]);
    (said.all(), events)
}

/// Returns how many processes are killed, of so many by default.
fn crashes(few: u64) -> u64 {
    let many = std::env::var("GREENROOM_CRASHES").ok();
    many.map_or(few, |many| many.parse().unwrap())
}

/// Kills so many processes, of which each has one of the journals. The first that was started is killed when
/// another one runs for which there is no journal. Returns what they have said, with all that was left.
fn killed(crashes: u64, journals: &[&str]) -> (Said, Vec<Vec<u64>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let (reader, output) = pipe().unwrap();
    let lines = lines(reader);
    let mut said = Said::new(journals.len() as u64);
    let mut running = VecDeque::new();
    for process in 0..crashes {
        let journal = journals[process as usize % journals.len()];
        let mut worker = Worker::start(&path, process, journal, &output);
        let ready = format!("{process} ready");
        said.read_until(&lines, &mut worker, |_, line| line == ready);
        if process + 1 == crashes {
            // On a slow machine those of before may have put nothing.
            said.read_until(&lines, &mut worker, |said, _| {
                said.put.len() as u64 > crashes
            });
        }
        // The moment of the crash, which nothing waits for.
        std::thread::sleep(Duration::from_micros(sim::random() % 200_000));
        running.push_back(worker);
        if running.len() == journals.len() {
            running.pop_front();
        }
    }
    drop((running, output));
    lines.iter().for_each(|line| said.read(&line));
    let (last, events) = greenroom::run(finish(&path, crashes, journals));
    last.iter().for_each(|line| said.read(line));
    assert!(said.done.len() as u64 > crashes, "{} jobs", said.done.len());
    (said, events)
}

#[test]
fn nothing_is_lost_or_doubled_by_processes_that_are_killed() {
    let crashes = crashes(8);
    let (said, events) = killed(crashes, &["all"]);
    said.check(&events);
    said.check_repeats(crashes);
}

#[test]
fn two_processes_at_once_of_which_one_is_killed_never_run_two_jobs_of_a_key() {
    // A lease may be over here while its job is stored as done: each process waits for the other one's
    // transactions. So jobs may be done again.
    let (said, events) = killed(crashes(24) / 4, &["even", "odd"]);
    said.check(&events);
}
