//! The store: the actor that owns the connection, on a thread of its own.
//!
//! Nobody else touches the index. Orders are carried out one after the other; what was ordered
//! before a commit or before the end is in the index after it. The first error ends the store,
//! which gives it back when it is joined.

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

/// About how many bytes of hits are printed at once.
const PAGE_BYTES: usize = 32 * 1024;

/// What the store is told.
pub enum Order {
    /// Say what is known below the root.
    Known(Reply<HashMap<Vec<u8>, Known>>),
    /// Store a file.
    Put(Entry),
    /// Forget files.
    Forget(Vec<i64>),
    /// Make it last, and say what was done.
    Commit(Reply<Written>),
    /// Find the lines of a query.
    Find(Search, Reply<u64>),
}

/// A query, and where its hits go.
pub struct Search {
    /// What to look for.
    pub query: Query,
    /// What every hit begins with.
    pub prefix: Vec<u8>,
    /// Who prints them.
    pub printer: Address<Vec<u8>>,
}

/// What was written to the index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Text files stored.
    pub texts: u64,
    /// Rows stored with them.
    pub rows: u64,
    /// Files forgotten.
    pub forgotten: u64,
}

/// Which index, for what.
pub struct Place {
    /// The SQLite file.
    pub file: PathBuf,
    /// The directory that is searched.
    pub root: Vec<u8>,
    /// How long to wait for another process.
    pub wait: Duration,
}

/// The actor.
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

/// Sends the hits to the printer, page by page, and the asker their number. Ends early if the
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
        let _ = printer.send(page).await; // Only if it still prints.
    }
    reply.send(hits);
    Ok(())
}

/// Appends `path:line: text` to the page if the row's text really contains the query.
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
