//! A date that jumps: by a preloaded library, never that of the machine.
//!
//! A process is this test binary again, which runs only `process`.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use greenroom_durable::{FinalOutcome, Job, Store};

use crate::support::{Note, Refused, notes, one_worker, secs};

/// The variables with the file, the step of the test, and the seconds by which the date is wrong.
const FILE: &str = "GREENROOM_DURABLE_FILE";
const PART: &str = "GREENROOM_DURABLE_PART";
const JUMP: &str = "GREENROOM_DURABLE_JUMP";

/// A library that shows another date, and leaves all other clocks.
const LIBRARY: &str = r#"
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, id, now);
    const char *jump = getenv("GREENROOM_DURABLE_JUMP");
    if (result == 0 && id == CLOCK_REALTIME && jump) {
        now->tv_sec += atol(jump);
    }
    return result;
}
"#;

const YEARS: i64 = 10 * 365 * 86_400;

/// Does a step of the test, in the process that has another date. Otherwise there is nothing to do.
#[test]
fn process() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let jump: i64 = std::env::var(JUMP).unwrap().parse().unwrap();
    let since = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default()
        .as_secs();
    let is_far = since as i64 > 1_900_000_000;
    assert_eq!(is_far, jump > 0, "the library shows no other date: {since}");
    greenroom::run(async {
        let store = Store::sqlite(file).open().await.unwrap();
        let queue = notes(&store).await;
        if std::env::var(PART).unwrap() == "put" {
            queue.put(Job::new(Note(1)).id("now")).await.unwrap();
            queue
                .put(Job::new(Note(2)).id("in an hour").after(secs(3600)))
                .await
                .unwrap();
        } else {
            let workers = queue.serve(one_worker(), |_| async { Ok::<(), Refused>(()) });
            let workers = workers.await.unwrap();
            assert_eq!(queue.outcome("now").await.unwrap(), FinalOutcome::Done);
            workers.stop().await;
            let status = queue.status().await.unwrap();
            assert_eq!((status.waiting, status.late), (1, 0));
        }
        store.close().await;
    });
}

/// Runs a step in a process whose date is wrong by so many seconds.
fn run(library: &Path, file: &Path, part: &str, jump: i64) {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "clock::process"]);
    process.env("LD_PRELOAD", library).env(FILE, file);
    process.env(PART, part).env(JUMP, jump.to_string());
    let output = process.output().unwrap();
    assert!(output.status.success(), "{output:#?}");
}

#[test]
fn a_date_that_jumps_makes_no_job_late_or_early() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("date.c"), folder.path().join("date.so"));
    std::fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source);
    assert!(compiler.status().unwrap().success());
    for (first, second) in [(YEARS, -YEARS), (-YEARS, YEARS)] {
        let file = folder.path().join(format!("notes{first}.db"));
        run(&library, &file, "put", first);
        run(&library, &file, "serve", second);
    }
}
