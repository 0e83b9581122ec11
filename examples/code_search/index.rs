//! The index: an SQLite file with the stored lines and a full-text index over them.
//!
//! Each text file has its own range of row numbers. The line with number `n` is the row
//! `first + n - 1`, so neither lines nor terms store their file. The rows, terms and stamp of a
//! file change in one transaction. The number of a file is never reused, so a remembered number
//! never means a later file.
//!
//! A file that is not an index of this program is refused and not changed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Statement, params};

use crate::entry::{Content, Entry, Kind, Known};
use crate::error::{Error, Fault};
use crate::lines::Lines;
use crate::query::{self, Query};
use crate::stamp::Stamp;

/// Identifies SQLite files of this program ("grcs").
const APPLICATION: i32 = 0x6772_6373;

/// The version of the tables below.
const VERSION: i32 = 1;

/// The tables. With `detail=none` the full-text index stores which lines contain a term, but not
/// the position; that halves its size. `lines` supplies the texts when rows are deleted.
const TABLES: &str = "
    CREATE TABLE roots(id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE) STRICT;
    CREATE TABLE files(
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        root INTEGER NOT NULL REFERENCES roots, path BLOB NOT NULL,
        size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,
        inode INTEGER NOT NULL, kind INTEGER NOT NULL,
        first INTEGER UNIQUE, last INTEGER,
        UNIQUE(root, path)) STRICT;
    CREATE TABLE lines(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
    CREATE VIRTUAL TABLE terms USING fts5(
        text, content='lines', content_rowid='id', detail='none', columnsize=0,
        tokenize='trigram case_sensitive 1');";

/// A transaction is committed once it has this many bytes of text ..
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// .. or this many files.
const BATCH_FILES: usize = 4096;

/// An open index, for one root.
pub struct Index {
    connection: Connection,
    file: PathBuf,
    root: Vec<u8>,
    wait: Duration,
    batch: Option<Batch>,
}

/// A transaction in progress.
#[derive(Default)]
struct Batch {
    /// The number of the root.
    root: i64,
    /// The number of bytes of text stored or forgotten.
    bytes: usize,
    /// The number of files stored or forgotten.
    files: usize,
    /// Ranges of rows that belong to no file any more. They are deleted right before the commit and
    /// in order, because FTS5 flushes its buffers whenever row numbers decrease.
    stale: Vec<(i64, i64)>,
}

impl Index {
    /// Opens the index in `file` for the files below `root`, or creates one if there is none.
    ///
    /// # Errors
    /// If the file is something else, or cannot be used.
    pub fn open(file: &Path, root: Vec<u8>, wait: Duration) -> Result<Index, Error> {
        let named = |fault: Fault| Error {
            file: file.to_owned(),
            fault,
        };
        if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(named(Fault::NotAFile));
        }
        if !may_be_sqlite(file).map_err(|error| named(Fault::Unreadable(error)))? {
            return Err(named(Fault::Foreign));
        }
        let connection = connect(file, wait).map_err(named)?;
        Ok(Index {
            connection,
            file: file.to_owned(),
            root,
            wait,
            batch: None,
        })
    }

    /// Returns the files that the index holds below its root, by path.
    pub fn known(&self) -> Result<HashMap<Vec<u8>, Known>, Error> {
        self.known_files().map_err(|error| self.error(error))
    }

    /// Stores a file, replaces an older state under its path, and returns the number of rows.
    pub fn put(&mut self, entry: &Entry, say: &dyn Fn(&str)) -> Result<u64, Error> {
        let mut batch = self.begin(say)?;
        self.insert(&mut batch, entry)
            .map_err(|error| self.error(error))?;
        let rows = match &entry.content {
            Content::Text(lines) => lines.len(),
            Content::Nul | Content::NotUtf8 => 0,
        };
        self.go_on(batch)?;
        Ok(rows as u64)
    }

    /// Forgets the file with the number `id`, and returns whether it was there.
    pub fn forget(&mut self, id: i64, say: &dyn Fn(&str)) -> Result<bool, Error> {
        let mut batch = self.begin(say)?;
        let was_there = self
            .delete(&mut batch, id)
            .map_err(|error| self.error(error))?;
        self.go_on(batch)?;
        Ok(was_there)
    }

    /// Commits everything so far.
    pub fn commit(&mut self) -> Result<(), Error> {
        match self.batch.take() {
            Some(batch) => self.end(batch).map_err(|error| self.error(error)),
            None => Ok(()),
        }
    }

    /// Returns a statement for the lines that may contain the query, ordered by path and number.
    /// Its rows are path, number and text; its two parameters are returned with it.
    pub fn candidates(
        &self,
        query: &Query,
    ) -> Result<(Statement<'_>, [rusqlite::types::Value; 2]), Error> {
        let (sql, expression) = match query.expression() {
            Some(expression) => (INDEXED, expression.into()),
            None => (SCANNED, rusqlite::types::Value::Null),
        };
        let statement = self
            .connection
            .prepare(sql)
            .map_err(|error| self.error(error))?;
        Ok((statement, [self.root.clone().into(), expression]))
    }

    /// Wraps an error of SQLite as an error of this index.
    pub fn error(&self, error: rusqlite::Error) -> Error {
        Error {
            file: self.file.clone(),
            fault: Fault::Sqlite(error),
        }
    }

    fn known_files(&self) -> rusqlite::Result<HashMap<Vec<u8>, Known>> {
        let mut statement = self.connection.prepare(
            "SELECT files.path, files.id, size, mtime, ctime, inode, kind
             FROM files JOIN roots ON roots.id = files.root WHERE roots.path = ?1",
        )?;
        let rows = statement.query_map([&self.root], |row| {
            let stamp = Stamp {
                size: row.get(2)?,
                mtime: row.get(3)?,
                ctime: row.get(4)?,
                inode: row.get(5)?,
            };
            let kind = Kind::from_number(row.get(6)?);
            Ok((
                row.get(0)?,
                Known {
                    id: row.get(1)?,
                    stamp,
                    kind,
                },
            ))
        })?;
        rows.collect()
    }

    /// Takes the transaction in progress, or begins one. While another process writes, reports that
    /// and waits, but not longer than allowed.
    fn begin(&mut self, say: &dyn Fn(&str)) -> Result<Batch, Error> {
        match self.batch.take() {
            Some(batch) => Ok(batch),
            None => {
                let root = self
                    .begin_for_root(say)
                    .map_err(|error| self.error(error))?;
                Ok(Batch {
                    root,
                    ..Batch::default()
                })
            }
        }
    }

    /// Keeps a batch, or commits it if it is full.
    fn go_on(&mut self, batch: Batch) -> Result<(), Error> {
        let is_full = batch.bytes >= BATCH_BYTES || batch.files >= BATCH_FILES;
        self.batch = Some(batch);
        if is_full { self.commit() } else { Ok(()) }
    }

    fn begin_for_root(&self, say: &dyn Fn(&str)) -> rusqlite::Result<i64> {
        self.connection.busy_timeout(Duration::ZERO)?;
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE");
        self.connection.busy_timeout(self.wait)?;
        match begun {
            Err(error) if is_busy(&error) && !self.wait.is_zero() => {
                say("another process is writing to the index: waiting");
                self.connection.execute_batch("BEGIN IMMEDIATE")?;
            }
            begun => begun?,
        }
        let known = "INSERT INTO roots(path) VALUES(?1) ON CONFLICT DO NOTHING";
        self.connection.execute(known, [&self.root])?;
        let number = "SELECT id FROM roots WHERE path = ?1";
        self.connection
            .query_row(number, [&self.root], |row| row.get(0))
    }

    fn insert(&self, batch: &mut Batch, entry: &Entry) -> rusqlite::Result<()> {
        let known = "SELECT id FROM files WHERE root = ?1 AND path = ?2";
        let old = self
            .connection
            .query_row(known, params![batch.root, entry.path], |row| row.get(0))
            .optional()?;
        if let Some(old) = old {
            self.delete(batch, old)?;
        }
        let (first, last) = match &entry.content {
            Content::Text(lines) => {
                batch.bytes += lines.bytes();
                self.insert_lines(lines)?
            }
            Content::Nul | Content::NotUtf8 => None,
        }
        .unzip();
        batch.files += 1;
        let Stamp {
            size,
            mtime,
            ctime,
            inode,
        } = entry.stamp;
        let kind = entry.content.kind() as i64;
        self.connection.execute(
            "INSERT INTO files(root, path, size, mtime, ctime, inode, kind, first, last)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                batch.root, entry.path, size, mtime, ctime, inode, kind, first, last
            ],
        )?;
        Ok(())
    }

    /// Inserts the lines after all other rows, and returns their range; none if all lines are
    /// empty.
    fn insert_lines(&self, lines: &Lines) -> rusqlite::Result<Option<(i64, i64)>> {
        let Some(last_number) = lines.last_number() else {
            return Ok(None);
        };
        let highest = "SELECT coalesce(max(id), 0) FROM lines";
        let before: i64 = self.connection.query_row(highest, [], |row| row.get(0))?;
        let mut line = self
            .connection
            .prepare("INSERT INTO lines(id, text) VALUES(?1, ?2)")?;
        let mut terms = self
            .connection
            .prepare("INSERT INTO terms(rowid, text) VALUES(?1, ?2)")?;
        for (number, text) in lines.iter() {
            let id = before + i64::from(number);
            line.execute(params![id, text])?;
            if query::has_terms(text) {
                terms.execute(params![id, text])?;
            }
        }
        Ok(Some((before + 1, before + i64::from(last_number))))
    }

    /// Deletes a file and leaves its rows to the end of the batch; returns whether it was there.
    fn delete(&self, batch: &mut Batch, id: i64) -> rusqlite::Result<bool> {
        let sql = "DELETE FROM files WHERE id = ?1 RETURNING size, first, last";
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let deleted: Option<(i64, Option<i64>, Option<i64>)> =
            self.connection.query_row(sql, [id], columns).optional()?;
        let Some((size, first, last)) = deleted else {
            return Ok(false);
        };
        batch.stale.extend(first.zip(last));
        batch.bytes += usize::try_from(size).unwrap_or(0);
        batch.files += 1;
        Ok(true)
    }

    /// Deletes the stale rows of a batch, and commits it.
    fn end(&self, mut batch: Batch) -> rusqlite::Result<()> {
        batch.stale.sort_unstable();
        for (first, last) in batch.stale {
            // The same number of characters as `query::has_terms` requires.
            self.connection.execute(
                "INSERT INTO terms(terms, rowid, text) SELECT 'delete', id, text FROM lines
                 WHERE id BETWEEN ?1 AND ?2 AND length(text) >= 3",
                [first, last],
            )?;
            let lines = "DELETE FROM lines WHERE id BETWEEN ?1 AND ?2";
            self.connection.execute(lines, [first, last])?;
        }
        self.connection.execute_batch("COMMIT")
    }
}

/// Selects the lines that the full-text index finds for `?2`.
const INDEXED: &str = "
    SELECT files.path, terms.rowid - files.first + 1, lines.text
    FROM terms
    JOIN files ON files.first =
        (SELECT max(before.first) FROM files AS before WHERE before.first <= terms.rowid)
    JOIN lines ON lines.id = terms.rowid
    WHERE terms MATCH ?2 AND files.root = (SELECT id FROM roots WHERE path = ?1)
    ORDER BY files.path, terms.rowid";

/// Selects all lines; `?2` is ignored.
const SCANNED: &str = "
    SELECT files.path, lines.id - files.first + 1, lines.text
    FROM files CROSS JOIN lines ON lines.id BETWEEN files.first AND files.last
    WHERE files.root = (SELECT id FROM roots WHERE path = ?1) AND ?2 IS NULL
    ORDER BY files.path, lines.id";

/// Opens an SQLite file, and makes it an index if it is empty.
fn connect(file: &Path, wait: Duration) -> Result<Connection, Fault> {
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(wait)?;
    if is_empty(&connection)? {
        let tables =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process may have created the tables first.
        if is_empty(&tables)? {
            tables.execute_batch(TABLES)?;
            tables.pragma_update(None, "application_id", APPLICATION)?;
            tables.pragma_update(None, "user_version", VERSION)?;
        }
        tables.commit()?;
    }
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("application_id")? != APPLICATION {
        return Err(Fault::Foreign);
    }
    match number("user_version")? {
        VERSION => {}
        other => return Err(Fault::Version(other)),
    }
    prefer_wal(&connection, wait)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -64 * 1024)?;
    Ok(connection)
}

/// Enables a write-ahead log, so that a reader never blocks a writer, for example a search whose
/// output waits in a pager. A power failure then loses at most the last batch.
///
/// The mode is a property of the file and is set once. SQLite refuses to change it while another
/// process uses the file. Then this process does without, unless the other is about to set it.
fn prefer_wal(connection: &Connection, wait: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    let set = connection.pragma_update(None, "journal_mode", "WAL");
    connection.busy_timeout(wait)?;
    match set {
        Err(error) if is_busy(&error) => Ok(()),
        set => set,
    }
}

/// Returns whether SQLite may open a file: it is new, or it is an SQLite file. SQLite itself takes
/// a file of a few bytes for a new one.
fn may_be_sqlite(file: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    match File::open(file) {
        Ok(file) => file.take(16).read_to_end(&mut start)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(start.is_empty() || start == b"SQLite format 3\0")
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let tables = "SELECT count(*) FROM sqlite_schema";
    let none = connection.query_row(tables, [], |row| row.get::<_, i64>(0))? == 0;
    let mark = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))?;
    Ok(none && mark == 0)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
