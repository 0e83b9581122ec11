//! A process that is stopped in the middle of a transaction.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;

use super::{OTHER, open, text, texts, with_file};
use crate::error::{StoreOpenProblem, StoreProblem};
use crate::{FinalOutcome, Serve};

/// A process that is stopped, and does not outlive its test.
struct StoppedWriter(Child);

impl StoppedWriter {
    /// Starts a process that writes into the file, and waits until it is stopped before its commit.
    fn start(path: &Path) -> StoppedWriter {
        const TEST: &str = "engine::sqlite::tests::stopped::writer";
        let mut writer = Command::new(std::env::current_exe().unwrap());
        let writer = writer.args(["--exact", TEST]).env(OTHER, path);
        let writer = writer.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut writer = StoppedWriter(writer.spawn().unwrap());
        let status = format!("/proc/{}/status", writer.0.id());
        while !fs::read_to_string(&status).unwrap().contains("State:\tT") {
            assert!(writer.0.try_wait().unwrap().is_none(), "it has ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        writer
    }

    /// Sends it a signal, lets it commit, and waits for its end.
    fn end(mut self, name: &str) {
        signal(name, self.0.id());
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Drop for StoppedWriter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(name: &str, process: u32) {
    let mut kill = Command::new("kill");
    let kill = kill.args(["-s", name, &process.to_string()]);
    assert!(kill.status().unwrap().success());
}

/// Writes into the file of a test that has started this process, and stops itself. It commits when its
/// input ends. Without such a test there is nothing to do.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(OTHER) else {
        return;
    };
    let connection = Connection::open(path).unwrap();
    let write = "BEGIN IMMEDIATE; INSERT INTO queue(name) VALUES ('half')";
    connection.execute_batch(write).unwrap();
    // The other threads of this process may go on for a moment.
    signal("STOP", std::process::id());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    connection.execute_batch("COMMIT").unwrap();
}

#[test]
fn a_process_that_is_stopped_inside_a_transaction_makes_others_busy_and_none_hangs() {
    for (name, is_stored) in [("CONT", true), ("KILL", false)] {
        with_file(|path| async move {
            let store = open(&path).await.unwrap();
            let queue = texts(&store).await;
            queue.put(text("before")).await.unwrap();
            let writer = StoppedWriter::start(&path);
            let mut job = text("after");
            for _ in 0..3 {
                let error = queue.put(job).await.unwrap_err();
                assert_eq!(error.why, StoreProblem::Busy);
                job = error.job;
            }
            // What only reads goes on.
            assert_eq!(queue.status().await.unwrap().waiting, 1);
            let problem = open(&path).await.unwrap_err();
            assert_eq!(problem, StoreOpenProblem::Store(StoreProblem::Busy));
            // A worker tries again until it can take its job.
            let workers = queue.serve(Serve::workers(1), |_| async { Ok::<(), String>(()) });
            let workers = workers.await.unwrap();
            writer.end(name);
            assert!(queue.put(job).await.unwrap());
            for id in ["before", "after"] {
                assert_eq!(queue.outcome(id).await.unwrap(), FinalOutcome::Done);
            }
            let queues = store.statuses().await.unwrap();
            assert_eq!(queues.iter().any(|queue| queue.name == "half"), is_stored);
            workers.stop().await;
        });
    }
}
