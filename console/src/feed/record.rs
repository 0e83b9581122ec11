//! Records: the lines of a connection, each with its time.
//!
//! A line of a record is `{"at_ms":1732860000000,"line":{..}}`, with the Unix time at which the line came.
//! What a plain client has written, without times, is read as well.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};

use super::{Fed, whole_lines};

/// Lines are sent together until there are so many bytes.
const CHUNK: usize = 64 << 10;

/// The longest pause of a replay: a record that was interrupted has longer ones.
const PAUSE_MAX: u64 = 10_000;

/// A file to which lines are written.
#[derive(Debug)]
pub struct LineRecord {
    file: BufWriter<File>,
}

impl LineRecord {
    /// Creates a file, which only its owner may read.
    ///
    /// # Errors
    /// It exists already, or cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = BufWriter::new(options.open(path)?);
        Ok(LineRecord { file })
    }

    /// Writes lines that have come now.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_ms = now.unwrap_or_default().as_millis();
        for line in whole_lines(lines) {
            write!(self.file, "{{\"at_ms\":{at_ms},\"line\":")?;
            self.file.write_all(line)?;
            self.file.write_all(b"}\n")?;
        }
        Ok(())
    }

    /// Writes what is not in the file yet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[derive(Deserialize)]
struct ParsedRecord<'a> {
    at_ms: u64,
    #[serde(borrow)]
    line: &'a RawValue,
}

/// Returns the time and the line of a line of a record. A plain line has no time.
pub fn read_record(recorded: &[u8]) -> (Option<u64>, &[u8]) {
    match serde_json::from_slice::<ParsedRecord<'_>>(recorded) {
        Ok(ParsedRecord { at_ms, line }) => (Some(at_ms), line.get().as_bytes()),
        Err(_) => (None, recorded),
    }
}

/// Returns whether a line is the first of a connection.
fn is_first(line: &[u8]) -> bool {
    line.starts_with(b"{\"protocol\"")
}

/// Returns whether this is the beginning of a line, with which a record ends whose console was killed.
fn is_cut(recorded: &[u8]) -> bool {
    !recorded.ends_with(b"\n") && serde_json::from_slice::<IgnoredAny>(recorded).is_err()
}

/// Sends the lines of a record, with the pauses that were between them.
pub(super) async fn replay(path: PathBuf, sender: Sender<Fed>) {
    let last = match send_all(&path, &sender).await {
        Ok(()) => Fed::Over,
        Err(error) => Fed::Refused(format!("{}: {error}", path.display())),
    };
    let _ = sender.send(last).await;
}

async fn send_all(path: &Path, sender: &Sender<Fed>) -> io::Result<()> {
    let file = tokio::fs::File::open(path).await?;
    let mut file = BufReader::with_capacity(CHUNK, file);
    let (mut recorded, mut lines) = (Vec::new(), Vec::new());
    // The moment of the last line, here and in the record.
    let mut last: Option<(Instant, u64)> = None;
    loop {
        recorded.clear();
        file.read_until(b'\n', &mut recorded).await?;
        if recorded.is_empty() || is_cut(&recorded) {
            let _ = sender.send(Fed::Lines(lines)).await;
            return Ok(());
        }
        let (at_ms, line) = read_record(&recorded);
        let pause = match (last, at_ms) {
            (Some((_, before)), Some(at_ms)) => at_ms.saturating_sub(before).min(PAUSE_MAX),
            _ => 0,
        };
        let begins = is_first(line);
        if (pause > 0 || begins || lines.len() > CHUNK) && !lines.is_empty() {
            let whole = std::mem::take(&mut lines);
            if sender.send(Fed::Lines(whole)).await.is_err() {
                return Ok(());
            }
        }
        if let Some((moment, _)) = last.filter(|_| pause > 0) {
            let next = moment + Duration::from_millis(pause);
            sleep_until(next).await;
        }
        if let Some(at_ms) = at_ms {
            let moment = last.map_or_else(Instant::now, |(moment, _)| moment);
            last = Some((moment + Duration::from_millis(pause), at_ms));
        }
        if begins && sender.send(Fed::Begins).await.is_err() {
            return Ok(());
        }
        lines.extend_from_slice(line.trim_ascii_end());
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{Fed, LineRecord, read_record, replay};

    #[test]
    fn a_record_that_was_cut_ends_with_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let whole = b"{\"protocol\":1}\n{\"seq\":1,\"event\":\"reset\"}\n";
        let record = [&whole[..], b"{\"at_ms\":1,\"line\":{\"se"].concat();
        std::fs::write(&path, record).unwrap();
        let (sender, mut fed) = tokio::sync::mpsc::channel(8);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.build().unwrap().block_on(replay(path, sender));
        let all: Vec<_> = std::iter::from_fn(|| fed.try_recv().ok()).collect();
        assert_eq!(all, [Fed::Begins, Fed::Lines(whole.to_vec()), Fed::Over]);
    }

    #[test]
    fn a_record_has_the_lines_with_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut record = LineRecord::create(&path).unwrap();
        record
            .write(b"{\"protocol\":1}\n{\"seq\":1,\"event\":\"reset\"}\n")
            .unwrap();
        record.flush().unwrap();
        let written = std::fs::read(&path).unwrap();
        let lines: Vec<_> = written
            .split(|byte| *byte == b'\n')
            .map(read_record)
            .collect();
        assert!(lines[0].0.is_some_and(|at_ms| at_ms > 1_700_000_000_000));
        assert_eq!(lines[0].1, b"{\"protocol\":1}");
        assert_eq!(lines[1].1, b"{\"seq\":1,\"event\":\"reset\"}");
        assert_eq!(
            read_record(b"{\"protocol\":1}"),
            (None, &b"{\"protocol\":1}"[..])
        );
        LineRecord::create(&path).unwrap_err(); // nothing is overwritten
    }
}
