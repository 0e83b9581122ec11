//! Stores in real files.

use std::path::Path;

use futures::future::join_all;
use futures::{FutureExt, StreamExt};
use greenroom::Runtime;
use greenroom_durable::{FinalOutcome, Job, Serve, Store};

use crate::support::{Note, Refused, is_done_at_its_first_attempt, ms, notes, secs};

/// Opens a file that is used by others, which may have it for as long as a disk stands still.
async fn shared(path: &Path) -> Store {
    let store = Store::sqlite(path).busy_limit(secs(60));
    store.open().await.unwrap()
}

#[test]
fn jobs_of_one_process_are_done_by_another_one_with_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    greenroom::run(async {
        let [ours, theirs] = [shared(&path).await, shared(&path).await];
        let served = notes(&theirs).await;
        let workers = served.serve(Serve::workers(4), |_| async { Ok::<(), Refused>(()) });
        let workers = workers.await.unwrap();
        let queue = notes(&ours).await;
        let puts = (0..200).map(|number| {
            let queue = queue.clone();
            async move {
                let job = Job::new(Note(number)).id(number.to_string());
                assert!(queue.put(job).await.unwrap());
                assert_eq!(
                    queue.outcome(&number.to_string()).await.unwrap(),
                    FinalOutcome::Done
                );
            }
        });
        join_all(puts).await;
        assert_eq!(queue.status().await.unwrap().done, 200);
        workers.stop().await;
        theirs.close().await;
        ours.close().await;
    });
    // The last one that closes leaves one file.
    let files = std::fs::read_dir(folder.path()).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["notes.db"]);
}

#[test]
fn each_of_those_who_close_a_store_waits_until_the_file_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    greenroom::run(async {
        let store = Store::sqlite(folder.path().join("a.db")).open();
        let store = store.await.unwrap();
        notes(&store).await.put(Job::new(Note(1))).await.unwrap();
        let second = store.clone();
        // It is closing from now on.
        assert!(store.close().now_or_never().is_none());
        second.close().await;
        // The WAL is removed at last.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        store.close().await;
    });
}

#[test]
fn a_runtime_is_not_quiescent_while_a_store_is_opened_checked_or_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let runtime = Runtime::new().unwrap();
    let task = runtime.spawn(async move {
        let store = Store::sqlite(&path).open().await.unwrap();
        store.close().await;
        Store::check(&path).await.unwrap();
    });
    runtime.run_until_quiescent();
    assert!(task.is_finished());
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_a_new_file_and_those_beside_it() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    greenroom::run(async {
        let store = Store::sqlite(folder.path().join("a.db"))
            .open()
            .await
            .unwrap();
        notes(&store).await.put(Job::new(Note(1))).await.unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap();
        let files: Vec<_> = files.map(|file| file.unwrap()).collect();
        assert_eq!(files.len(), 3);
        for file in files {
            let mode = file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{:?}", file.file_name());
        }
    });
}

#[test]
fn a_worker_that_is_cancelled_gives_its_job_back_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let runtime = Runtime::builder().grace(ms(1)).build().unwrap();
    let store = runtime.block_on(async {
        let store = Store::sqlite(&path).open().await.unwrap();
        let queue = notes(&store).await;
        let (sender, mut taken) = futures::channel::mpsc::unbounded();
        let serve = Serve::workers(1).lease(secs(1_000_000));
        let workers = queue.serve(serve, move |_| {
            sender.unbounded_send(()).unwrap();
            std::future::pending::<Result<(), Refused>>()
        });
        let _workers = workers.await.unwrap();
        queue.put(Job::new(Note(1)).id("one")).await.unwrap();
        taken.next().await.unwrap();
        store
    });
    futures::executor::block_on(runtime.shutdown());
    greenroom::run(async {
        let queue = notes(&store).await;
        is_done_at_its_first_attempt(&queue, "one").await;
    });
}

/// The variable with the file for the other process.
const SERVED: &str = "GREENROOM_DURABLE_SERVED";

/// Serves the file of a test that has started this process, until that closes its input. Otherwise there
/// is nothing to do.
#[test]
fn serving_process() {
    let Some(file) = std::env::var_os(SERVED) else {
        return;
    };
    greenroom::run(async {
        let store = shared(Path::new(&file)).await;
        let queue = notes(&store).await;
        let workers = queue.serve(Serve::workers(2), |_| async { Ok::<(), Refused>(()) });
        let workers = workers.await.unwrap();
        greenroom::unblock(|| std::io::stdin().read_line(&mut String::new()))
            .await
            .unwrap();
        workers.stop().await;
        store.close().await;
    });
}

#[test]
fn two_processes_use_one_file_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other
        .args(["--exact", "files::serving_process"])
        .env(SERVED, &path);
    let mut other = other.stdin(std::process::Stdio::piped()).spawn().unwrap();
    greenroom::run(async {
        let store = shared(&path).await;
        let queue = notes(&store).await;
        for number in 0..50 {
            let id = number.to_string();
            queue
                .put(Job::new(Note(number)).id(&id).key("a"))
                .await
                .unwrap();
            assert_eq!(queue.outcome(&id).await.unwrap(), FinalOutcome::Done);
        }
        drop(other.stdin.take());
        assert!(other.wait().unwrap().success());
        store.close().await;
    });
    let report = greenroom::run(async { Store::check(&path).await.unwrap() });
    assert_eq!(report.damages, [""; 0]);
}
