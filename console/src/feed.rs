//! Where lines come from: a connection to a program, or a record of one.
//!
//! A feed is a task that sends what it has read. It waits while what it has sent is not read yet, so a
//! program that sends faster than the console draws sees a slow reader.

mod connection;
mod endpoint;
mod record;

use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use endpoint::{BadEndpoint, Endpoint};
pub use record::{LineRecord, read_record};

/// The chunks that wait to be read.
const CHUNKS: usize = 8;

/// A line that is longer is no line of the protocol.
const LINE_MAX: usize = 4 << 20;

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Fed {
    /// A connection was made: its first line follows.
    Begins,
    /// Whole lines, each with its end.
    Lines(Vec<u8>),
    /// Nothing has come for so many seconds.
    Silence(u64),
    /// The connection is lost, for this reason, and will be tried again in so many seconds.
    Lost(String, u64),
    /// There is no use in trying again, for this reason.
    Refused(String),
    /// The record is over.
    Over,
}

/// What a feed reads.
#[derive(Debug, Clone)]
pub enum LineOrigin {
    /// A program, with the token that it asks for.
    Live(Endpoint, Option<String>),
    /// A record.
    Record(PathBuf),
}

/// A task that reads lines.
#[derive(Debug)]
pub struct LineFeed {
    fed: mpsc::Receiver<Fed>,
    task: JoinHandle<()>,
}

impl LineFeed {
    /// Begins to read. After a connection that was of no use, it first waits for a second.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn begin(origin: &LineOrigin, is_again: bool) -> Self {
        let (sender, fed) = mpsc::channel(CHUNKS);
        let task = match origin.clone() {
            LineOrigin::Live(endpoint, token) => {
                tokio::spawn(connection::keep_reading(endpoint, token, is_again, sender))
            }
            LineOrigin::Record(path) => tokio::spawn(record::replay(path, sender)),
        };
        LineFeed { fed, task }
    }

    /// Waits for what comes next. `None` if the feed has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Fed> {
        self.fed.recv().await
    }
}

impl Drop for LineFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the lines, without their ends.
pub(crate) fn whole_lines(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = lines.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty())
}

/// Makes whole lines of chunks.
#[derive(Debug, Default)]
struct LineJoiner {
    rest: Vec<u8>,
}

impl LineJoiner {
    /// Returns the whole lines up to this chunk, if there are some.
    ///
    /// # Errors
    /// A line is too long.
    fn join(&mut self, chunk: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let Some(end) = chunk.iter().rposition(|byte| *byte == b'\n') else {
            self.rest.extend_from_slice(chunk);
            return match self.rest.len() > LINE_MAX {
                true => Err("it sends no lines".to_owned()),
                false => Ok(None),
            };
        };
        let (whole, rest) = chunk.split_at(end + 1);
        let mut lines = std::mem::take(&mut self.rest);
        lines.extend_from_slice(whole);
        self.rest.extend_from_slice(rest);
        Ok(Some(lines))
    }
}

#[cfg(test)]
mod tests {
    use super::LineJoiner;

    #[test]
    fn chunks_become_whole_lines() {
        let mut joiner = LineJoiner::default();
        assert_eq!(joiner.join(b"{\"a\"").unwrap(), None);
        let lines = joiner.join(b":1}\n{}\n{").unwrap();
        assert_eq!(lines.as_deref(), Some(&b"{\"a\":1}\n{}\n"[..]));
        assert_eq!(joiner.join(b"}\n").unwrap().as_deref(), Some(&b"{}\n"[..]));
    }
}
