//! Errors of an index, with texts that say what to do about them.
//!
//! Every text names the file, and none advises to delete a file that is not this program's.

use std::io;
use std::path::PathBuf;
use std::{error, fmt};

use rusqlite::ErrorCode;

/// The reason why an index can't be used.
#[derive(Debug)]
pub struct Error {
    /// The file of the index.
    pub file: PathBuf,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with an index.
#[derive(Debug)]
pub enum Fault {
    /// The path is a directory, pipe or device.
    NotAFile,
    /// The file is of another kind, or of another program.
    Foreign,
    /// The system does not let the program read the file.
    Unreadable(io::Error),
    /// The file is an index, but of another version.
    Version(i32),
    /// Any other error of SQLite.
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
                    "{file} is not an index of code_search; it was not changed"
                )
            }
            Fault::Unreadable(error) => write!(f, "the index {file}: {error}"),
            Fault::Version(version) => write!(
                f,
                "the index {file} has version {version}, which is not supported here: delete \
                 it, or name another file with --index"
            ),
            Fault::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => {
                    write!(
                        f,
                        "{file} is not an index of code_search; it was not changed"
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
