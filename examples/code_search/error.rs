//! Why an index can't be used, in words that say what to do about it.
//!
//! Every message names the file, and none advises to delete one that is not this program's.

use std::io;
use std::path::PathBuf;
use std::{error, fmt};

use rusqlite::ErrorCode;

/// Why an index can't be used.
#[derive(Debug)]
pub struct Error {
    /// The index.
    pub file: PathBuf,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with it.
#[derive(Debug)]
pub enum Fault {
    /// A directory, pipe or device.
    NotAFile,
    /// A file of another kind, or of another program.
    Foreign,
    /// The system refuses to read it.
    Unreadable(io::Error),
    /// An index, but with other tables.
    Version(i32),
    /// SQLite says so.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Sqlite(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.fault {
            Fault::NotAFile => write!(f, "{file} is not a regular file, so it can't be an index"),
            Fault::Foreign => {
                write!(
                    f,
                    "{file} is not an index of code_search; it was left as it is"
                )
            }
            Fault::Unreadable(error) => write!(f, "the index {file}: {error}"),
            Fault::Version(version) => write!(
                f,
                "the index {file} is of version {version}, not the one that is known here: delete it, or name \
                 another file with --index"
            ),
            Fault::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => {
                    write!(
                        f,
                        "{file} is not an index of code_search; it was left as it is"
                    )
                }
                Some(ErrorCode::DatabaseCorrupt) => write!(
                    f,
                    "the index {file} is damaged ({error}): delete it to have it built anew, or \
                     name another file with --index"
                ),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    write!(f, "the index {file} is busy: another process writes to it")
                }
                _ => write!(f, "the index {file}: {error}"),
            },
        }
    }
}

impl error::Error for Error {}
