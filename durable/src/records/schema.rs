//! The tables, as steps: a file of version n has had the first n of them.
//!
//! A step that was published is never changed. A row has a sum of what never changes in it, so that
//! a damaged page is reported. No index is larger than its use: each is partial.

use rusqlite::{Connection, Row, Transaction, TransactionBehavior};

use crate::error::StoreOpenProblem;

/// "grnd" in ASCII: marks a file as a store.
const APPLICATION: i64 = 0x6772_6e64;

/// A job that may be taken when it is due.
pub(crate) const READY: i64 = 0;
/// A job behind another one of its key.
pub(crate) const HELD: i64 = 1;
pub(crate) const RUNNING: i64 = 2;
pub(crate) const DEAD: i64 = 3;
/// Its outcome and its id are kept for a while.
pub(crate) const ENDED: i64 = 4;

const STEPS: [&str; 2] = [JOBS, JOURNALS];

/// The version of a file that has had all steps.
pub(crate) const KNOWN: i64 = STEPS.len() as i64;

const JOBS: &str = "
CREATE TABLE store(
  only INTEGER PRIMARY KEY CHECK (only = 1),
  boot TEXT NOT NULL,      -- the start of the machine in which the clock was set
  ahead INTEGER NOT NULL,  -- ms that the clock of the store is ahead of that of the machine
  seen INTEGER NOT NULL,   -- ms: the latest time that was written
  token INTEGER NOT NULL   -- the last token that was given away
);
CREATE TABLE queue(
  queue INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  paused INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  minute INTEGER NOT NULL DEFAULT 0,   -- since 1970, of the last end
  ended INTEGER NOT NULL DEFAULT 0,    -- in that minute
  before INTEGER NOT NULL DEFAULT 0    -- in the minute before
);
CREATE TABLE kind(kind INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE job(
  seq INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  due INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  id TEXT,
  key TEXT,
  attempt INTEGER NOT NULL DEFAULT 0,
  yields INTEGER NOT NULL DEFAULT 0,   -- 1: it lets others of its key pass while it waits
  cancel INTEGER NOT NULL DEFAULT 0,   -- running: 1 if it was cancelled; ended: 1 likewise
  token INTEGER,
  until INTEGER,                       -- running: of its lease; ended: of its outcome
  reason TEXT,
  progress BLOB,
  sum INTEGER NOT NULL,
  payload BLOB NOT NULL
);
CREATE UNIQUE INDEX job_id ON job(queue, id) WHERE id IS NOT NULL;
CREATE INDEX job_ready ON job(queue, priority DESC, due) WHERE state = 0;
CREATE INDEX job_key ON job(queue, key, state, due) WHERE key IS NOT NULL AND state < 3;
CREATE INDEX job_running ON job(queue, until) WHERE state = 2;
CREATE INDEX job_dead ON job(queue) WHERE state = 3;
CREATE INDEX job_ended ON job(until) WHERE state = 4;
";

const JOURNALS: &str = "
CREATE TABLE stream(
  stream INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  key TEXT NOT NULL,
  position INTEGER NOT NULL DEFAULT 0,  -- of the last event
  token INTEGER NOT NULL DEFAULT 0,     -- of the one who has appended last
  chain INTEGER NOT NULL DEFAULT 0,     -- the sum of all events
  UNIQUE(name, key)
);
CREATE TABLE event(
  stream INTEGER NOT NULL,
  position INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  chain INTEGER NOT NULL,               -- the sum of this event and of all before it
  payload BLOB NOT NULL,
  PRIMARY KEY(stream, position)
) WITHOUT ROWID;
CREATE TABLE snapshot(
  stream INTEGER PRIMARY KEY,
  position INTEGER NOT NULL,
  chain INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  payload BLOB NOT NULL
);
CREATE TABLE lease(
  name TEXT PRIMARY KEY,
  token INTEGER NOT NULL,
  until INTEGER NOT NULL                -- 0 if it was given back
) WITHOUT ROWID;
";

/// Creates or completes the tables.
pub(crate) fn complete(connection: &mut Connection) -> Result<(), StoreOpenProblem> {
    if check(connection)? == KNOWN {
        return Ok(());
    }
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(StoreOpenProblem::of)?;
    // Another process may have done it meanwhile.
    let found = check(&transaction)?;
    complete_from(found, transaction).map_err(StoreOpenProblem::of)
}

/// Takes the steps from a version to the known one.
fn complete_from(found: i64, transaction: Transaction<'_>) -> rusqlite::Result<()> {
    for step in &STEPS[found as usize..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    transaction.commit()
}

/// Returns the version of the file, which is 0 for an empty one.
pub(crate) fn check(connection: &Connection) -> Result<i64, StoreOpenProblem> {
    // One statement reads from one state of the file: another process may be creating the tables.
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
               FROM pragma_application_id, pragma_user_version";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let row = connection.query_row(sql, [], read);
    let (application, found, tables): (i64, i64, i64) = row.map_err(StoreOpenProblem::of)?;
    match (application, tables) {
        (APPLICATION, _) if (0..=KNOWN).contains(&found) => Ok(found),
        (APPLICATION, _) => {
            let known = KNOWN;
            Err(StoreOpenProblem::Newer { found, known })
        }
        (_, 0) => Ok(0),
        _ => Err(StoreOpenProblem::Foreign),
    }
}

/// Creates the tables as an older version of this package did, for tests.
#[cfg(test)]
pub(crate) fn create_older(connection: &Connection, version: usize) {
    for step in &STEPS[..version] {
        connection.execute_batch(step).unwrap();
    }
    connection
        .pragma_update(None, "application_id", APPLICATION)
        .unwrap();
    connection
        .pragma_update(None, "user_version", version as i64)
        .unwrap();
}

/// Where a sum begins. Any number would do but 0, which a sum of zeros would keep.
const SUM_START: u64 = 0xcbf2_9ce4_8422_2325;

/// What each word is multiplied by. It is odd, so that a product can be undone, and has bits all over.
const SUM_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sum of bytes that follow each other, eight at a time. A change within eight bytes always shows.
pub(crate) struct Sum(u64);

impl Sum {
    pub(crate) fn new(before: i64) -> Self {
        Sum(before as u64 ^ SUM_START)
    }

    /// Adds bytes, and where they end.
    pub(crate) fn add(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let words = words.iter().chain([&last]);
        let sum = words.fold(self, |sum, word| sum.add_word(u64::from_le_bytes(*word)));
        sum.add_word(bytes.len() as u64)
    }

    /// Adds a word. This step can be undone, so another word is another sum. The high bits of a product depend on all
    /// bits of the word, so they come down.
    fn add_word(self, word: u64) -> Self {
        Sum((self.0 ^ word).wrapping_mul(SUM_FACTOR).rotate_left(32))
    }

    pub(crate) fn end(self) -> i64 {
        self.0 as i64
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn each_changed_bit_of_some_bytes_and_each_other_length_is_another_sum() {
        let sum = |bytes: &[u8]| Sum::new(7).add(bytes).end();
        let bytes: Vec<u8> = (0..21).collect();
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum(&changed), sum(&bytes), "bit {bit}");
        }
        let zeros: Vec<i64> = (0..20).map(|length| sum(&vec![0; length])).collect();
        for (length, other) in zeros.iter().enumerate() {
            assert!(!zeros[..length].contains(other), "{length} zeros");
        }
    }
}
