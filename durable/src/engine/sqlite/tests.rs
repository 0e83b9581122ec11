//! Faults of files that only the engine can make or see.

mod backups;
mod costs;
mod cuts;
#[cfg(target_os = "linux")]
mod idle;
mod notices;
mod openings;
mod pages;
mod recorder;
#[cfg(target_os = "linux")]
mod stopped;
mod syncs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ffi};

use super::file::{FileOptions, WAL_PAGES, network_system};
use crate::error::{StoreOpenProblem, StoreProblem};
use crate::limits::Limits;
use crate::records::schema;
use crate::{Job, Queue, Serve, Store, Stored};
use recorder::Recorder;

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Text(String);

impl Stored for Text {
    const KIND: &'static str = "text/1";
}

fn text(text: &str) -> Job<Text> {
    Job::new(Text(text.into())).id(text)
}

async fn texts(store: &Store) -> Queue<Text> {
    store.queue("texts").open().await.unwrap()
}

/// Runs a test with the path of a new file.
fn with_file<Fut: Future<Output = ()>>(test: impl FnOnce(PathBuf) -> Fut) {
    let folder = tempfile::tempdir().unwrap();
    greenroom::run(test(folder.path().join("texts.db")));
}

/// Returns how a file is opened by default.
fn options(path: &Path) -> FileOptions {
    FileOptions {
        path: path.to_owned(),
        busy_limit: Duration::from_secs(5),
        synchronous: "FULL",
        wal_pages: WAL_PAGES,
        vfs: None,
    }
}

async fn open(path: &Path) -> Result<Store, StoreOpenProblem> {
    let store = Store::sqlite(path)
        .busy_limit(Duration::from_millis(50))
        .open();
    store.await.map_err(|error| error.why)
}

#[test]
fn a_newer_file_is_refused() {
    with_file(|path| async move {
        open(&path).await.unwrap().close().await;
        let connection = Connection::open(&path).unwrap();
        connection
            .pragma_update(None, "user_version", 1000)
            .unwrap();
        let problem = open(&path).await.unwrap_err();
        assert!(
            matches!(problem, StoreOpenProblem::Newer { found: 1000, .. }),
            "{problem:?}"
        );
    });
}

#[test]
fn an_older_file_is_brought_up_to_date_with_what_is_in_it() {
    with_file(|path| async move {
        let connection = Connection::open(&path).unwrap();
        schema::create_older(&connection, 1);
        connection
            .execute("INSERT INTO queue(name) VALUES ('texts')", [])
            .unwrap();
        drop(connection);
        let store = open(&path).await.unwrap();
        assert_eq!(store.statuses().await.unwrap()[0].name, "texts");
        drop(store.lease("new in version 2").hold().await.unwrap());
    });
}

#[test]
fn a_database_of_another_program_is_refused_and_not_changed() {
    with_file(|path| async move {
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE theirs(x)").unwrap();
        drop(connection);
        let before = std::fs::read(&path).unwrap();
        let problem = open(&path).await.unwrap_err();
        assert_eq!(problem, StoreOpenProblem::Foreign);
        assert_eq!(
            problem.to_string(),
            "the file is a database of another program"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
    });
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    with_file(|path| async move {
        std::fs::write(
            &path,
            "not a database, but long enough to be looked at".repeat(100),
        )
        .unwrap();
        let problem = open(&path).await.unwrap_err();
        let is_corrupt = matches!(&problem, StoreOpenProblem::Store(StoreProblem::Corrupt(_)));
        assert!(is_corrupt, "{problem:?}");
    });
}

#[test]
fn a_folder_that_is_missing_is_named() {
    with_file(|path| async move {
        let path = path.join("missing").join("texts.db");
        let problem = open(&path).await.unwrap_err();
        assert!(
            matches!(problem, StoreOpenProblem::System(_)),
            "{problem:?}"
        );
    });
}

#[test]
fn network_file_systems_are_known_by_their_numbers() {
    assert_eq!(network_system(0x6969), Some("NFS"));
    assert_eq!(network_system(0xfe53_4d42), Some("SMB"));
    // ext4 and tmpfs.
    assert_eq!([0xef53, 0x0102_1994].map(network_system), [None; 2]);
    let system = network_system(0x6573_5546).unwrap();
    let (path, why) = (PathBuf::from("a.db"), StoreOpenProblem::Network { system });
    let text = crate::StoreOpenError { path, why }.to_string();
    let expected = "and the file is on FUSE, which may be one";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_writer_that_stands_still_makes_others_busy_and_not_wait_for_ever() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = queue.put(text("a")).await.unwrap_err();
        assert_eq!(error.why, StoreProblem::Busy);
        assert_eq!(queue.status().await.unwrap().waiting, 0);
        other.execute_batch("ROLLBACK").unwrap();
        assert!(queue.put(error.job).await.unwrap());
    });
}

#[test]
fn a_long_reader_lets_the_wal_grow_and_afterwards_it_is_small_again() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        let reader = Connection::open(&path).unwrap();
        reader
            .execute_batch("BEGIN; SELECT count(*) FROM job")
            .unwrap();
        reader
            .query_row("SELECT count(*) FROM job", [], |_| Ok(()))
            .unwrap();
        let wal = PathBuf::from(format!("{}-wal", path.display()));
        let size = || std::fs::metadata(&wal).unwrap().len();
        let payload = "x".repeat(500_000);
        for _ in 0..60 {
            queue.put(Job::new(Text(payload.clone()))).await.unwrap();
        }
        assert!(size() > 25_000_000, "{}", size());
        reader.execute_batch("ROLLBACK").unwrap();
        for number in 0..3 {
            queue.put(text(&number.to_string())).await.unwrap();
        }
        assert!(size() <= 16 << 20, "{}", size());
    });
}

/// Changes one byte of a job in the file, without SQLite.
fn change_byte(path: &Path, word: &[u8]) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes
        .windows(word.len())
        .rposition(|window| window == word)
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_changed_byte_in_a_job_makes_it_a_dead_letter_and_never_a_job() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        queue.put(text("good")).await.unwrap();
        queue
            .put(Job::new(Text("changeable".into())))
            .await
            .unwrap();
        store.close().await;
        change_byte(&path, b"changeable");
        let report = Store::check(&path).await.unwrap();
        assert_eq!(
            (report.jobs, report.damages),
            (2, vec!["job 2 is not whole".to_owned()])
        );

        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        let workers = queue.serve(Serve::workers(1), |job| async move {
            assert_eq!(job.0, "good");
            Ok::<(), String>(())
        });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        let dead = store.dead_jobs("texts", 0, 10).await.unwrap();
        assert_eq!(dead[0].reason, "its row is damaged: the sum differs");
        let status = queue.status().await.unwrap();
        assert_eq!((status.waiting, status.running, status.dead), (0, 0, 1));
        workers.stop().await;
    });
}

/// The texts so far.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Page(String);

impl Stored for Page {
    const KIND: &'static str = "page/1";
}

impl crate::JournalState for Page {
    type Event = Text;

    fn apply(&mut self, event: &Text) {
        self.0.push_str(&event.0);
    }
}

#[test]
fn a_lost_tail_of_a_journal_and_a_changed_event_are_reported_and_never_half_read() {
    let damages = [
        "DELETE FROM event WHERE position = 3",
        "UPDATE event SET payload = x'224322' WHERE position = 2",
    ];
    for damage in damages {
        with_file(|path| async move {
            let store = open(&path).await.unwrap();
            let mut page = store.journal::<Page>("pages", "a").open().await.unwrap();
            page.append(["a", "b", "c"].map(|text| Text(text.into())))
                .await
                .unwrap();
            let other = Connection::open(&path).unwrap();
            other.execute(damage, []).unwrap();
            let error = store
                .journal::<Page>("pages", "a")
                .open()
                .await
                .unwrap_err();
            assert!(matches!(error.why, StoreProblem::Corrupt(_)), "{error}");
            // Beside the open store.
            assert!(!Store::check(&path).await.unwrap().damages.is_empty());
        });
    }
}

#[test]
fn a_check_beside_an_open_store_in_this_process_leaves_its_locks() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        queue.put(text("a")).await.unwrap();
        assert_eq!(Store::check(&path).await.unwrap().damages, [""; 0]);
        // Another process that finds no locks would remove the WAL at its end.
        let program = std::env::current_exe().unwrap();
        let mut other = std::process::Command::new(program);
        other.args([
            "--exact",
            "engine::sqlite::tests::opened_by_another_process",
        ]);
        assert!(other.env(OTHER, &path).output().unwrap().status.success());
        assert!(std::fs::exists(format!("{}-wal", path.display())).unwrap());
        assert!(!queue.put(text("a")).await.unwrap());
        assert!(queue.put(text("b")).await.unwrap());
    });
}

/// The variable with the file for the other process.
const OTHER: &str = "GREENROOM_DURABLE_OTHER";

/// Opens and closes the file of a test that has started this process. Otherwise there is nothing to do.
#[test]
fn opened_by_another_process() {
    let Some(path) = std::env::var_os(OTHER) else {
        return;
    };
    let connection = Connection::open(path).unwrap();
    connection
        .query_row("SELECT count(*) FROM job", [], |_| Ok(()))
        .unwrap();
}

#[test]
fn at_a_new_start_of_the_machine_the_clock_goes_on_and_all_leases_are_over() {
    with_file(|path| async move {
        let store = open(&path).await.unwrap();
        let queue = texts(&store).await;
        queue.put(text("a")).await.unwrap();
        let lease = store
            .lease("leader")
            .time(Duration::from_secs(1_000_000))
            .hold();
        let lease = lease.await.unwrap();
        let workers = queue.serve(
            Serve::workers(1).lease(Duration::from_secs(1_000_000)),
            |_| std::future::pending::<Result<(), String>>(),
        );
        let workers = workers.await.unwrap();
        while queue.status().await.unwrap().running == 0 {
            greenroom::yield_now().await;
        }
        // A year ahead of the date, on a machine that has started since.
        let other = Connection::open(&path).unwrap();
        let sql = "UPDATE store SET boot = 'before', seen = seen + 31536000000";
        other.execute(sql, []).unwrap();
        let seen: i64 = other
            .query_row("SELECT seen FROM store", [], |row| row.get(0))
            .unwrap();

        let again = open(&path).await.unwrap();
        let next = again.lease("leader").hold().await.unwrap();
        assert!(next.token() > lease.token());
        let queue = texts(&again).await;
        let second = queue.serve(Serve::workers(1), |job| async move {
            assert_eq!(job.attempt(), 2);
            Ok::<(), String>(())
        });
        let second = second.await.unwrap();
        assert_eq!(queue.outcome("a").await.unwrap(), crate::FinalOutcome::Done);
        let now: i64 = other
            .query_row("SELECT seen FROM store", [], |row| row.get(0))
            .unwrap();
        assert!(now >= seen, "{now} after {seen}");
        second.stop().await;
        drop(workers);
    });
}

/// Opens a file in a file system that fails when asked to.
async fn open_recorded(path: &Path, recorder: &Recorder) -> Store {
    let mut options = options(path);
    options.vfs = Some(recorder.name);
    options.busy_limit = Duration::from_secs(60);
    Store::new(super::open(options, Limits::default()).await.unwrap())
}

#[test]
fn a_full_disk_refuses_a_job_that_can_be_put_when_there_is_room() {
    let recorder = Recorder::register("full disk");
    with_file(|path| async move {
        let store = open_recorded(&path, recorder).await;
        let queue = texts(&store).await;
        queue.put(text("a")).await.unwrap();
        recorder.fail_writes(Some(ffi::SQLITE_FULL));
        let error = queue.put(text("b")).await.unwrap_err();
        assert_eq!(error.why, StoreProblem::DiskFull);
        assert_eq!(queue.status().await.unwrap().waiting, 1);
        recorder.fail_writes(None);
        assert!(queue.put(error.job).await.unwrap());
        assert_eq!(queue.status().await.unwrap().waiting, 2);
    });
}

#[test]
fn after_a_failed_sync_the_outcome_is_unknown_and_a_job_with_an_id_can_be_put_again() {
    let recorder = Recorder::register("failing syncs");
    with_file(|path| async move {
        let store = open_recorded(&path, recorder).await;
        let queue = texts(&store).await;
        recorder.fail_syncs(Some(ffi::SQLITE_IOERR_FSYNC));
        let error = queue.put(text("a")).await.unwrap_err();
        assert!(matches!(error.why, StoreProblem::Unknown(_)), "{error}");
        recorder.fail_syncs(None);
        queue.put(error.job).await.unwrap();
        assert_eq!(queue.status().await.unwrap().waiting, 1);
        store.close().await;
        assert_eq!(Store::check(&path).await.unwrap().damages, [""; 0]);
    });
}

/// Opens the file of a test that has started this process without rights. Otherwise there is nothing to
/// do.
#[test]
fn opened_without_rights() {
    let Some(path) = std::env::var_os(OTHER) else {
        return;
    };
    let problem = greenroom::run(open(Path::new(&path))).unwrap_err();
    println!("PROBLEM {problem:?}");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_only_be_read_or_not_even_that_is_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let is_root = folder.path().metadata().unwrap().uid() == 0;
    if !is_root {
        eprintln!("SKIPPED: only root can have a file that others may not write");
        return;
    }
    let path = folder.path().join("texts.db");
    greenroom::run(async { open(&path).await.unwrap().close().await });
    set(folder.path(), 0o755);
    for (mode, expected) in [
        (0o444, "PROBLEM Store(ReadOnly)"),
        (0o600, "PROBLEM Store("),
    ] {
        set(&path, mode);
        let program = std::env::current_exe().unwrap();
        let mut other = Command::new("setpriv");
        other
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(program);
        other.args([
            "--exact",
            "engine::sqlite::tests::opened_without_rights",
            "--nocapture",
        ]);
        let output = match other.env(OTHER, &path).output() {
            Ok(output) if output.status.success() => output,
            failed => {
                eprintln!("SKIPPED: no process without rights can be started: {failed:?}");
                return;
            }
        };
        let output = String::from_utf8(output.stdout).unwrap();
        assert!(output.contains(expected), "{output}");
    }
}
