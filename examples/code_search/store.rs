//! The store: the actor that owns the SQLite connection, on its own thread.
//!
//! No other code accesses the index. Orders are carried out one after the other. The index holds
//! everything that was ordered before a commit or before the end. The first error ends the store;
//! its join returns the error.

use std::collections::HashMap;
use std::mem;
use std::path::PathBuf;
use std::time::Duration;

use greenroom::{Address, Context, Reply};

use crate::entry::{Content, Entry, Known};
use crate::error::Error;
use crate::index::Index;
use crate::progress::Progress;
use crate::query::Query;

/// The approximate number of bytes of hits that are printed at once.
const PAGE_BYTES: usize = 32 * 1024;

/// A message to the store.
pub enum Order {
    /// Report all known files below the root.
    Known(Reply<HashMap<Vec<u8>, Known>>),
    /// Store a file.
    Put(Entry),
    /// Forget files.
    Forget(Vec<i64>),
    /// Commit, and report what was written.
    Commit(Reply<Written>),
    /// Find the lines that match a query.
    Find(Search, Reply<u64>),
}

/// A query, and the receiver of its hits.
pub struct Search {
    /// The string to find.
    pub query: Query,
    /// The prefix of every hit.
    pub prefix: Vec<u8>,
    /// The actor that prints the hits.
    pub printer: Address<Vec<u8>>,
}

/// The changes written to the index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Text files stored.
    pub texts: u64,
    /// Rows stored with them.
    pub rows: u64,
    /// Files forgotten.
    pub forgotten: u64,
}

/// The index and the directory that it serves.
pub struct Place {
    /// The SQLite file.
    pub file: PathBuf,
    /// The directory that is searched.
    pub root: Vec<u8>,
    /// How long to wait for another process.
    pub wait: Duration,
}

/// Runs the actor.
pub async fn store(mut cx: Context<Order>, place: Place, progress: Progress) -> Result<(), Error> {
    let say = |line: &str| progress.say(line);
    let mut index = Index::open(&place.file, place.root, place.wait)?;
    let mut written = Written::default();
    while let Some(order) = cx.recv().await {
        match order {
            Order::Known(reply) => reply.send(index.known()?),
            Order::Put(entry) => {
                let rows = index.put(&entry, &say)?;
                written.texts += u64::from(matches!(entry.content, Content::Text(_)));
                written.rows += rows;
                progress.wrote(rows);
            }
            Order::Forget(ids) => {
                for id in ids {
                    written.forgotten += u64::from(index.forget(id, &say)?);
                }
            }
            Order::Commit(reply) => {
                index.commit()?;
                reply.send(written);
            }
            Order::Find(search, reply) => find(&index, search, reply).await?,
        }
    }
    index.commit()
}

/// Sends the hits to the printer, page by page, and replies with their number. Ends early if the
/// printer has ended or the asker no longer waits.
async fn find(index: &Index, search: Search, reply: Reply<u64>) -> Result<(), Error> {
    let Search {
        query,
        prefix,
        printer,
    } = search;
    let (mut statement, parameters) = index.candidates(&query)?;
    let mut rows = statement
        .query(parameters)
        .map_err(|error| index.error(error))?;
    let mut page = Vec::new();
    let mut hits = 0;
    while let Some(row) = rows.next().map_err(|error| index.error(error))? {
        if !reply.is_wanted() {
            return Ok(());
        }
        let is_hit = append(row, &query, &prefix, &mut page).map_err(|error| index.error(error))?;
        hits += u64::from(is_hit);
        if page.len() >= PAGE_BYTES && printer.send(mem::take(&mut page)).await.is_err() {
            break;
        }
    }
    if !page.is_empty() {
        let _ = printer.send(page).await; // The printer may have ended.
    }
    reply.send(hits);
    Ok(())
}

/// Appends `path:line: text` to the page if the text of the row really contains the query.
fn append(
    row: &rusqlite::Row<'_>,
    query: &Query,
    prefix: &[u8],
    page: &mut Vec<u8>,
) -> rusqlite::Result<bool> {
    let text = row.get_ref(2)?.as_str()?;
    let is_hit = text.contains(query.text());
    if is_hit {
        let number: i64 = row.get(1)?;
        page.extend_from_slice(prefix);
        page.extend_from_slice(row.get_ref(0)?.as_blob()?);
        page.extend_from_slice(format!(":{number}: ").as_bytes());
        page.extend_from_slice(text.as_bytes());
        page.push(b'\n');
    }
    Ok(is_hit)
}
