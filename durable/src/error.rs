//! The errors of a store. Each says whether the change is stored, and what to do next.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ffi::{self, ErrorCode};

/// Why an operation of a store has failed.
///
/// After all but [`Unknown`](StoreProblem::Unknown), nothing of the change is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreProblem {
    /// Another process was writing for longer than the
    /// [limit](crate::StoreBuilder::busy_limit). Try again later.
    Busy,
    /// The disk is full.
    DiskFull,
    /// The file or its folder cannot be written.
    ReadOnly,
    /// The file is damaged, with what was found. Restore a backup.
    Corrupt(String),
    /// The store is closed, or its simulated process has crashed.
    Closed,
    /// This process is a child of `fork` of the process that has opened the store. Open the file
    /// again in the child.
    Forked,
    /// The change is stored, or not: a sync has failed. With an id, a job can be put again.
    Unknown(String),
    /// A text or a payload has too many bytes.
    TooLarge {
        /// Which one, such as `"payload"`.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The [limit](crate::Limits) in bytes.
        limit: usize,
    },
    /// There are as many of these as may be.
    TooMany {
        /// Which, such as `"waiting jobs"`.
        what: &'static str,
        /// The [limit](crate::Limits).
        limit: u64,
    },
    /// The value cannot be encoded, with the reason.
    Unencodable(String),
    /// What is stored cannot be decoded as this type, with the reason.
    Undecodable(String),
    /// The job, the journal or the lease is in other hands by now: the token or the position is
    /// stale.
    Stale,
    /// There is nothing of that name or number.
    Missing,
    /// Anything else that SQLite or the system reports, with its text.
    Failed(String),
}

impl StoreProblem {
    /// Makes a problem of an error of SQLite.
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        let Some(failure) = error.sqlite_error() else {
            // A row that is not as it was written.
            return StoreProblem::Corrupt(error.to_string());
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreProblem::Busy,
            ErrorCode::DiskFull => StoreProblem::DiskFull,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreProblem::ReadOnly,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                StoreProblem::Corrupt(error.to_string())
            }
            _ => StoreProblem::Failed(format!(
                "{error} ({})",
                ffi::code_to_str(failure.extended_code)
            )),
        }
    }

    /// Makes a problem of an error of a commit. Only a full disk leaves no doubt: the last frame of
    /// the transaction is then not whole.
    pub(crate) fn of_commit(error: &rusqlite::Error) -> Self {
        match StoreProblem::of(error) {
            problem @ (StoreProblem::Busy | StoreProblem::DiskFull) => problem,
            _ => StoreProblem::Unknown(error.to_string()),
        }
    }
}

impl fmt::Display for StoreProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreProblem::Busy => f.write_str("another process is writing to the store"),
            StoreProblem::DiskFull => f.write_str("the disk is full"),
            StoreProblem::ReadOnly => f.write_str("the store cannot be written"),
            StoreProblem::Corrupt(what) => write!(f, "the store is damaged: {what}"),
            StoreProblem::Closed => f.write_str("the store is closed"),
            StoreProblem::Forked => f.write_str("the store was opened before a fork"),
            StoreProblem::Unknown(why) => write!(f, "stored or not, since a commit failed: {why}"),
            StoreProblem::TooLarge { what, bytes, limit } => {
                write!(f, "the {what} has {bytes} bytes, more than {limit}")
            }
            StoreProblem::TooMany { what, limit } => {
                write!(f, "there are {limit} {what}, as many as may be")
            }
            StoreProblem::Unencodable(why) => write!(f, "the value cannot be encoded: {why}"),
            StoreProblem::Undecodable(why) => write!(f, "the value cannot be decoded: {why}"),
            StoreProblem::Stale => f.write_str("it is in other hands by now"),
            StoreProblem::Missing => f.write_str("no such queue, job or dead letter"),
            StoreProblem::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StoreProblem {}

/// A store that was not opened or checked, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOpenError {
    /// The file, or nothing for a simulated one.
    pub path: PathBuf,
    /// The reason.
    pub why: StoreOpenProblem,
}

/// Why a store was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreOpenProblem {
    /// The file is on a network file system, where locks and shared memory are not sure.
    Network {
        /// The file system, such as `"NFS"`.
        system: &'static str,
    },
    /// The file is a database of another program.
    Foreign,
    /// The file was written by a newer version of this package.
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest version that this package knows.
        known: i64,
    },
    /// The file is empty, or was written by an older version of this package. A
    /// [check](crate::Store::check) changes nothing: open it first, which brings it up to date.
    Older {
        /// The version of the file, which is 0 for an empty one.
        found: i64,
        /// The version that this package reads.
        known: i64,
    },
    /// The linked SQLite is too old: it may damage files in use by several connections.
    OldLibrary(&'static str),
    /// The system refuses it, with its text.
    System(String),
    /// As for any operation.
    Store(StoreProblem),
}

impl StoreOpenProblem {
    /// Makes a problem of an error of SQLite.
    pub(crate) fn of(error: rusqlite::Error) -> Self {
        StoreOpenProblem::Store(StoreProblem::of(&error))
    }
}

impl fmt::Display for StoreOpenProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreOpenProblem::Network { system } => {
                write!(
                    f,
                    "no store may be on a network file system, and the file is on {system}"
                )
            }
            StoreOpenProblem::Foreign => f.write_str("the file is a database of another program"),
            StoreOpenProblem::Newer { found, known } => {
                write!(
                    f,
                    "the file has version {found}, and {known} is the newest known one"
                )
            }
            StoreOpenProblem::Older { found, known } => {
                write!(
                    f,
                    "the file has version {found} and not {known}: open it first"
                )
            }
            StoreOpenProblem::OldLibrary(found) => {
                write!(f, "the linked SQLite is {found}, older than 3.51.3")
            }
            StoreOpenProblem::System(why) => f.write_str(why),
            StoreOpenProblem::Store(problem) => problem.fmt(f),
        }
    }
}

impl fmt::Display for StoreOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for StoreOpenError {}

/// An operation of a store that has failed, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreError {
    /// What it was about: the name of a queue, a journal or a lease.
    pub name: String,
    /// The reason.
    pub why: StoreProblem,
}

impl StoreError {
    pub(crate) fn new(name: &str, why: StoreProblem) -> Self {
        StoreError {
            name: name.to_owned(),
            why,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.name, self.why)
    }
}

impl std::error::Error for StoreError {}

/// Returns a duration in whole milliseconds, rounded up, for the clock of a store.
pub(crate) fn millis(duration: Duration) -> i64 {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    // A thousand years: beyond that the sum with the time of now might overflow.
    i64::try_from(millis)
        .unwrap_or(i64::MAX)
        .min(31_536_000_000_000)
}
