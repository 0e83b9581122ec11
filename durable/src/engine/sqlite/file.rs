//! The file of a store: where it may be, who may read it, and how SQLite uses it.
//!
//! The file itself is never opened and closed here, only by SQLite: a process that closes a file gives
//! up all locks that it has on that file, also those of another store in it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::error::{StoreOpenProblem, StoreProblem};
use crate::records::schema;

/// The oldest SQLite that resets a WAL safely while another connection writes.
const OLDEST: i32 = 3_051_003;

/// The pages of a WAL that are copied into the file. A page that is written again and again is copied
/// once.
pub(crate) const WAL_PAGES: u32 = 4000;

/// How a connection is set up.
#[derive(Debug, Clone)]
pub(crate) struct FileOptions {
    pub(crate) path: PathBuf,
    pub(crate) busy_limit: Duration,
    /// A name of `PRAGMA synchronous`; other than `FULL` only in tests.
    pub(crate) synchronous: &'static str,
    /// The pages of a WAL that are copied; other than [`WAL_PAGES`] only in tests.
    pub(crate) wal_pages: u32,
    /// A file system of SQLite, for tests.
    pub(crate) vfs: Option<&'static str>,
}

/// Returns where a file is, without links: SQLite has its other files there, and only there is said on
/// which file system it is. It is there also when the process goes to another folder.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, StoreOpenProblem> {
    let found = match fs::canonicalize(path) {
        // One that is to be created.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().unwrap_or_default();
            fs::canonicalize(folder_of(path)).map(|folder| folder.join(name))
        }
        found => found,
    };
    found.map_err(|error| StoreOpenProblem::System(error.to_string()))
}

/// The pause before a file is opened again.
const PAUSE: Duration = Duration::from_millis(5);

/// Opens the file, and creates or completes it.
pub(crate) fn open(options: &FileOptions) -> Result<Connection, StoreOpenProblem> {
    let start = Instant::now();
    loop {
        match open_once(options) {
            // While others open it, SQLite refuses some steps at once that it could wait for.
            Err(StoreOpenProblem::Store(StoreProblem::Busy))
                if start.elapsed() < options.busy_limit =>
            {
                thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
}

fn open_once(options: &FileOptions) -> Result<Connection, StoreOpenProblem> {
    if rusqlite::version_number() < OLDEST {
        return Err(StoreOpenProblem::OldLibrary(rusqlite::version()));
    }
    let path = &options.path;
    check_place(folder_of(path))?;
    if fs::symlink_metadata(path).is_err() {
        create(path).map_err(|error| StoreOpenProblem::System(error.to_string()))?;
    }
    let opened = connect(options, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let mut connection = opened.map_err(StoreOpenProblem::of)?;
    if connection
        .is_readonly("main")
        .map_err(StoreOpenProblem::of)?
    {
        return Err(StoreOpenProblem::Store(StoreProblem::ReadOnly));
    }
    // Before anything is written into it, see whose file it is.
    schema::check(&connection)?;
    let mode = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
    let mode: String = mode.map_err(StoreOpenProblem::of)?;
    if mode != "wal" {
        let why = format!("the journal of the file is {mode:?} and cannot be a WAL");
        return Err(StoreOpenProblem::System(why));
    }
    set_up(&connection, options).map_err(StoreOpenProblem::of)?;
    schema::complete(&mut connection)?;
    Ok(connection)
}

/// Sets what SQLite does not keep in the file.
fn set_up(connection: &Connection, options: &FileOptions) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", options.synchronous)?;
    // A WAL that a long reader has made large becomes small again.
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    connection.pragma_update_and_check(
        None,
        "wal_autocheckpoint",
        options.wal_pages,
        |_| Ok(()),
    )?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Opens a file that is there, only to read it.
pub(crate) fn open_to_check(path: &Path) -> Result<Connection, StoreOpenProblem> {
    check_place(folder_of(path))?;
    let options = FileOptions {
        path: path.to_owned(),
        busy_limit: Duration::from_secs(5),
        synchronous: "FULL",
        wal_pages: WAL_PAGES,
        vfs: None,
    };
    let opened = connect(&options, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let connection = opened.map_err(StoreOpenProblem::of)?;
    let (found, known) = (schema::check(&connection)?, schema::KNOWN);
    if found < known {
        return Err(StoreOpenProblem::Older { found, known });
    }
    Ok(connection)
}

fn connect(options: &FileOptions, access: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&options.path, flags, vfs)?,
        None => Connection::open_with_flags(&options.path, flags)?,
    };
    // SQLite counts the milliseconds in 31 bits.
    connection.busy_timeout(
        options
            .busy_limit
            .min(Duration::from_millis(i32::MAX as u64)),
    )?;
    Ok(connection)
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates an empty file that only its owner may read. SQLite gives its other files the same mode.
///
/// It gets its name when it is complete and closed, so that no lock of another store in this process
/// is given up.
fn create(path: &Path) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let (file, new) = loop {
        // Relaxed: only the numbers have to differ.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".new-{}-{number}", std::process::id()));
        let new = path.with_file_name::<OsString>(name);
        match options.open(&new) {
            // Of a process of the same number, which was killed or is in another container.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => break (opened?, new),
        }
    };
    file.sync_all()?;
    drop(file);
    let linked = fs::hard_link(&new, path);
    fs::remove_file(&new)?;
    match linked {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }?;
    #[cfg(unix)]
    fs::File::open(folder_of(path))?.sync_all()?;
    Ok(())
}

/// Refuses a folder of a network file system.
#[cfg(target_os = "linux")]
fn check_place(folder: &Path) -> Result<(), StoreOpenProblem> {
    let system = rustix::fs::statfs(folder);
    let system = system.map_err(|error| StoreOpenProblem::System(error.to_string()))?;
    // The numbers have 32 bits, and a sign on some machines.
    match network_system(system.f_type as u32) {
        Some(system) => Err(StoreOpenProblem::Network { system }),
        None => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn check_place(folder: &Path) -> Result<(), StoreOpenProblem> {
    let found = fs::metadata(folder);
    found.map_err(|error| StoreOpenProblem::System(error.to_string()))?;
    Ok(())
}

/// Returns the name of a network file system, as Linux numbers them.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "other systems have no such numbers")
)]
pub(super) fn network_system(number: u32) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9P",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x7461_636f => "OCFS2",
        0x0116_1970 => "GFS2",
        0x0bd0_0bd0 => "Lustre",
        0x6573_5546 => "FUSE, which may be one",
        _ => return None,
    })
}
