//! A process that has nothing to do.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, thread};

use super::{OTHER, open, text, texts, with_file};
use crate::Serve;
use crate::engine::reply;

const TEST: &str =
    "engine::sqlite::tests::idle::an_idle_store_has_no_wake_up_beside_its_next_due_time";

/// The thread that looks at the others.
const OBSERVER: &str = "observer";

#[test]
fn an_idle_store_has_no_wake_up_beside_its_next_due_time() {
    if env::var_os(OTHER).is_none() {
        // In a process without other stores.
        let mut alone = Command::new(env::current_exe().unwrap());
        let alone = alone.args(["--exact", TEST]).env(OTHER, "");
        let output = alone.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        let workers = queue.serve(Serve::workers(2), |_| async { Ok::<(), String>(()) });
        let workers = workers.await.unwrap();
        queue.put(text("a")).await.unwrap();
        let later = text("b").after(Duration::from_secs(3600));
        queue.put(later).await.unwrap();
        queue.outcome("a").await.unwrap();
        let (sender, observed) = reply();
        let observer = thread::Builder::new().name(OBSERVER.into());
        let observer = observer.spawn(move || {
            let _ = sender.send(quiet_second());
        });
        // No thread of the runtime or the store has anything to do until then.
        let threads = observed.await.unwrap();
        observer.unwrap().join().unwrap();
        let stores = threads.values().filter(|name| *name == "greenroom-durab");
        assert_eq!(stores.count(), 1, "{threads:?}");
        assert!(threads.len() > 2, "with those of the runtime: {threads:?}");
        workers.stop().await;
    });
}

/// Waits for a second in which no thread goes to sleep: one that did has been awake. Returns the names of
/// the threads.
///
/// What was noticed of the commits before is read some time. A thread that wakes by itself goes on.
fn quiet_second() -> BTreeMap<u32, String> {
    let mut before = threads();
    for _ in 0..60 {
        thread::sleep(Duration::from_secs(1));
        let after = threads();
        if before == after {
            return after
                .into_iter()
                .map(|(id, (name, _))| (id, name))
                .collect();
        }
        before = after;
    }
    panic!("threads wake again and again: {before:?}")
}

/// Returns the name of each thread of this process, and how often it has gone to sleep. The observer is
/// missing, and the main thread, which waits for the test.
fn threads() -> BTreeMap<u32, (String, String)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let threads = tasks.filter_map(|task| {
        let task = task.ok()?;
        let id = task.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let count = status.lines().find(|line| line.starts_with("voluntary"))?;
        Some((id, (name.trim().to_owned(), count.to_owned())))
    });
    let is_watched = |id: u32, name: &str| id != std::process::id() && name != OBSERVER;
    threads
        .filter(|(id, (name, _))| is_watched(*id, name))
        .collect()
}
