//! A tracer that writes one line an event.
//!
//! A thread makes its line on its own, and appends it to what is to be written. If no other thread
//! writes then, it writes all of that. So lines are whole and in order, and one thread at most waits
//! for a slow writer. A thread writes a few times at most. If more lines have come by then, a thread
//! that is started for them goes on, so no line is left behind.
//!
//! A line begins with the date, in UTC. It is computed from the days since 1970 alone, without a
//! table of leap seconds or zones.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use super::call::{Tracer, call};
use super::event::{Event, Level, LevelError};
use super::kept::KeptLines;
use crate::contain::attempt;
use crate::info::TaskInfo;
use crate::instant::since_1970;
use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, Process};

/// How many bytes of lines may gather in a turn before they are written.
const GATHERED_MAX: usize = 32 << 10;
/// How many bytes of memory a thread keeps for its next line.
const LINE_KEPT: usize = 4 << 10;
/// How many bytes of lines may wait for a slow writer. Further lines are dropped.
const WAITING_MAX: usize = 1 << 20;
/// How long a flush waits for the successor, and how often: 5 s in all, as long as the default grace
/// of a shutdown.
const FLUSH_WAIT: Duration = Duration::from_millis(100);
const FLUSH_WAITS: usize = 50;
/// How many times a thread writes what has come meanwhile, before another thread goes on.
const WRITES_MAX: usize = 8;

/// A [`Tracer`] that writes one line an event.
///
/// A line has the process, the time in UTC, a [sign](super::EventKind::sign), and the actor with its id,
/// name and [state](crate::Context::trace_state):
///
/// ```text
/// [00001234] 2026-11-23T10:36:13.042 < <00000012>server[READY] - Received Xy from <0000000e>
/// ```
///
/// In a simulation the time is that of its clock, which begins in 1970.
///
/// Lines are whole, and those of an actor are in order. Control characters are escaped. On stderr
/// each line is written at once. To another writer, the lines of an actor's turn are written when
/// the turn ends, or when 32 KiB have gathered, and other lines at once. The writer is flushed when
/// the runtime has shut down, so it may be a [`BufWriter`](io::BufWriter).
///
/// To look for a turn that hangs or aborts the process, use [`stderr`](Lines::stderr): another
/// writer does not get the lines of that turn.
///
/// Clones write to the same writer, and count together. In a child of `fork`, create other lines:
/// a thread of the parent may have been writing these.
///
/// # Writers that fail
/// A line that cannot be written is dropped and [counted](Lines::dropped), for example because the
/// disk is full or the pipe is closed. Later lines are tried again. A panic of the writer counts
/// as a failure. A writer that blocks delays the one thread that writes. Meanwhile the lines of
/// other threads wait, and are dropped and counted beyond 1 MiB. A thread that has written 8 times
/// leaves what has come meanwhile to a thread `greenroom-trace`, which ends when nothing waits.
///
/// # Examples
///
/// ```
/// use greenroom::trace::{Level, Lines};
/// use greenroom::{Context, Runtime, spawn};
///
/// async fn hello(mut cx: Context<u32>) -> Option<u32> {
///     cx.recv().await
/// }
///
/// let runtime = Runtime::builder().tracer(Lines::stderr(Level::Debug)).build()?;
/// runtime.block_on(async {
///     let hello = spawn!(hello(_));
///     hello.tell(1).unwrap();
///     assert_eq!(hello.join().await.unwrap(), Some(1));
/// });
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Lines {
    level: Level,
    /// The process that has created this, and its number, which only the system knows.
    process: (Process, u32),
    /// Whether the lines of a turn are written together.
    gathers: bool,
    kept: Option<Arc<KeptLines>>,
    shared: Arc<SharedLines>,
}

struct SharedLines {
    waiting: Mutex<WaitingLines>,
    /// Notified when the successor ends.
    succeeded: Condvar,
    dropped: AtomicU64,
}

struct WaitingLines {
    lines: Vec<u8>,
    /// `None` while a thread writes, which will also write these lines.
    out: Option<LineWriter>,
    /// Whether that thread is to flush then.
    flush: bool,
    successor: Successor,
}

/// The thread that goes on for others, which have written their share.
enum Successor {
    No,
    /// It was started, and writes unless another thread does.
    Yes,
    /// It is to end after its current write, since a thread waits for that, which goes on.
    Ends,
}

struct LineWriter {
    writer: Box<dyn Write + Send>,
    /// The lines that are being written. Empty, but for its memory, while no thread writes.
    lines: Vec<u8>,
    /// Whether only a part of the last line was written.
    is_torn: bool,
    /// The number of lines that the writer has taken since the last flush.
    unflushed: u64,
}

impl Lines {
    /// Creates a tracer that writes the events of this level, and those above, to stderr.
    pub fn stderr(level: Level) -> Lines {
        Lines {
            gathers: false,
            ..Lines::to(io::stderr(), level)
        }
    }

    /// Creates a tracer that writes the events of this level, and those above, to `writer`.
    pub fn to(writer: impl Write + Send + 'static, level: Level) -> Lines {
        let out = LineWriter {
            writer: Box::new(writer),
            lines: Vec::new(),
            is_torn: false,
            unflushed: 0,
        };
        Lines {
            level,
            process: (Process::current(), std::process::id()),
            gathers: true,
            kept: None,
            shared: Arc::new(SharedLines {
                waiting: Mutex::new(WaitingLines {
                    lines: Vec::new(),
                    out: Some(out),
                    flush: false,
                    successor: Successor::No,
                }),
                succeeded: Condvar::new(),
                dropped: AtomicU64::new(0),
            }),
        }
    }

    /// Creates a tracer that writes to stderr, with the level of the variable `GREENROOM_LOG`.
    ///
    /// Returns `None` if the variable is not set or empty. [`run`](crate::run()) calls this; a
    /// built runtime does what its builder was given.
    ///
    /// # Errors
    /// [`LevelError`] if the variable is not the name of a level.
    pub fn from_env() -> Result<Option<Lines>, LevelError> {
        match std::env::var_os("GREENROOM_LOG") {
            Some(name) if !name.is_empty() => {
                let level = name.to_string_lossy().parse()?;
                Ok(Some(Lines::stderr(level)))
            }
            _ => Ok(None),
        }
    }

    /// Also keeps the last lines in memory, at most `most` of all actors together, for
    /// [`Runtime::trace_of`](crate::Runtime::trace_of).
    pub fn keep(mut self, most: usize) -> Lines {
        self.kept = Some(Arc::new(KeptLines::new(most)));
        self
    }

    /// Returns the number of lines that could not be written.
    ///
    /// If a flush fails, all lines since the last flush count: a writer with a buffer may have lost
    /// each of them.
    pub fn dropped(&self) -> u64 {
        // Relaxed: a mere count.
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

crate::sync::thread_local! {
    /// The memory of a line, which is used again.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
crate::sync::thread_local! {
    /// The address of what gathers the lines of this thread's turn, or 0. A turn that has nested
    /// turns gathers none after them.
    static TURN: Cell<usize> = const { Cell::new(0) };
}

impl Tracer for Lines {
    fn event(&self, event: &Event<'_>) {
        let mut line = LINE.try_with(RefCell::take).unwrap_or_default();
        line.push(b'[');
        let (process, number) = self.process;
        let number = match process.is_current() {
            true => number,
            false => std::process::id(),
        };
        digits(&mut line, u64::from(number), 8);
        line.extend(b"] ");
        append_date(&mut line, since_1970());
        // Writing to memory fails only if the text of a panic does.
        let _ = writeln!(line, "{event}");
        if let Some(kept) = &self.kept {
            kept.add(event.id(), &line);
        }
        self.put(&line, self.is_in_turn());
        line.clear();
        line.shrink_to(LINE_KEPT);
        let _ = LINE.try_with(|kept| kept.replace(line));
    }

    fn enabled(&self, level: Level) -> bool {
        level >= self.level
    }

    fn enter(&self, _actor: &TaskInfo, _name: &str) {
        if self.gathers {
            let _ = TURN.try_with(|turn| turn.set(Arc::as_ptr(&self.shared).addr()));
        }
    }

    fn exit(&self, _actor: &TaskInfo) {
        if self.gathers {
            let _ = TURN.try_with(|turn| turn.set(0));
            self.write(self.shared.waiting.lock());
        }
    }

    fn flush(&self) {
        let mut waiting = self.shared.waiting.lock();
        waiting.flush = true;
        // The process may end next, and with it a successor. A writer that blocks for good is left.
        for _ in 0..FLUSH_WAITS {
            if waiting.out.is_some() || matches!(waiting.successor, Successor::No) {
                break;
            }
            waiting.successor = Successor::Ends;
            waiting = self.shared.succeeded.wait(waiting, Some(FLUSH_WAIT));
        }
        self.write(waiting);
    }

    fn lines_of(&self, actor: u64) -> Vec<String> {
        self.kept
            .as_ref()
            .map_or_else(Vec::new, |kept| kept.of(actor))
    }
}

impl Lines {
    /// Returns whether this thread is in a turn whose lines are written together.
    fn is_in_turn(&self) -> bool {
        TURN.try_with(Cell::get).ok() == Some(Arc::as_ptr(&self.shared).addr())
    }

    /// Appends a line, and writes what waits unless the turn `gathers` lines.
    fn put(&self, line: &[u8], gathers: bool) {
        let mut waiting = self.shared.waiting.lock();
        if waiting.lines.len() + line.len() > WAITING_MAX {
            drop(waiting);
            return self.shared.count(lines_in(line));
        }
        waiting.lines.extend_from_slice(line);
        if !gathers || waiting.lines.len() >= GATHERED_MAX {
            self.write(waiting);
        }
    }

    /// Writes what waits, or leaves it to the thread that writes.
    fn write<'a>(&'a self, mut waiting: MutexGuard<'a, WaitingLines>) {
        let Some(mut out) = waiting.out.take() else {
            return;
        };
        for _ in 0..WRITES_MAX {
            if waiting.is_done() {
                break;
            }
            waiting = self.shared.write_once(&mut out, waiting);
        }
        waiting.out = Some(out);
        if !waiting.is_done() && matches!(waiting.successor, Successor::No) {
            waiting.successor = Successor::Yes;
            drop(waiting);
            self.hand_over();
        }
    }

    /// Starts the successor, or is the successor if no thread can be started.
    fn hand_over(&self) {
        let lines = self.clone();
        let thread = std::thread::Builder::new().name("greenroom-trace".into());
        let started = thread.spawn(move || call(&lines, |_| lines.shared.succeed()));
        if started.is_err() {
            self.shared.succeed();
        }
    }
}

impl SharedLines {
    /// Writes, as the successor, until nothing waits.
    fn succeed(&self) {
        let mut waiting = self.waiting.lock();
        // A thread that has `out` leaves no lines without a successor.
        if let Some(mut out) = waiting.out.take() {
            while !waiting.is_done() && matches!(waiting.successor, Successor::Yes) {
                waiting = self.write_once(&mut out, waiting);
            }
            waiting.out = Some(out);
        }
        waiting.successor = Successor::No;
        drop(waiting);
        self.succeeded.notify_all();
    }

    /// Writes what waits, once, without the lock.
    fn write_once<'a>(
        &'a self,
        out: &mut LineWriter,
        mut waiting: MutexGuard<'a, WaitingLines>,
    ) -> MutexGuard<'a, WaitingLines> {
        std::mem::swap(&mut waiting.lines, &mut out.lines);
        let flush = std::mem::take(&mut waiting.flush);
        drop(waiting);
        self.count(out.write(flush));
        self.waiting.lock()
    }

    /// Counts lines that were dropped.
    fn count(&self, dropped: u64) {
        // Relaxed: a mere count.
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
    }
}

impl WaitingLines {
    /// Returns whether there is nothing to write or to flush.
    fn is_done(&self) -> bool {
        self.lines.is_empty() && !self.flush
    }
}

impl LineWriter {
    /// Writes the lines, and returns the number of those that are lost.
    fn write(&mut self, flush: bool) -> u64 {
        let mut lines = std::mem::take(&mut self.lines);
        let mut rest = &*lines;
        // What an error or a panic has left is the rest.
        let _ = attempt(|| self.write_lines(&mut rest));
        let mut lost = lines_in(rest);
        self.unflushed += lines_in(&lines) - lost;
        if flush {
            let unflushed = std::mem::take(&mut self.unflushed);
            if !matches!(attempt(|| self.writer.flush()), Ok(Ok(()))) {
                lost += unflushed;
            }
        }
        lines.clear();
        lines.shrink_to(2 * GATHERED_MAX);
        self.lines = lines;
        lost
    }

    /// Writes the lines. On an error, `rest` begins with the line that was not written completely.
    fn write_lines(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        // The part of a line that an earlier error has left becomes a line of its own.
        if self.is_torn {
            self.writer.write_all(b"\n")?;
            self.is_torn = false;
        }
        let mut begun = 0;
        while !rest.is_empty() {
            match self.writer.write(&rest[begun..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => begun += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // Only whole lines leave the rest, so that lost lines can be counted.
            let ended = rest[..begun].iter().rposition(|byte| *byte == b'\n');
            let whole = ended.map_or(0, |last| last + 1);
            *rest = &rest[whole..];
            begun -= whole;
            self.is_torn = begun > 0;
        }
        Ok(())
    }
}

/// Returns the number of lines.
fn lines_in(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("level", &self.level)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

/// Appends a time since 1970 as `YYYY-MM-DDTHH:MM:SS.mmm`.
pub(super) fn append_date(line: &mut Vec<u8>, since_1970: Duration) {
    let seconds = since_1970.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let clock = seconds % 86_400;
    for (number, width, end) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (clock / 3600, 2, b':'),
        (clock / 60 % 60, 2, b':'),
        (clock % 60, 2, b'.'),
        (u64::from(since_1970.subsec_millis()), 3, b' '),
    ] {
        digits(line, number, width);
        line.push(end);
    }
}

/// Appends a number with at least this many digits.
pub(super) fn digits(line: &mut Vec<u8>, number: u64, width: u32) {
    let mut unit = 10_u64.pow(width - 1);
    while number / unit >= 10 {
        unit *= 10;
    }
    while unit > 0 {
        line.push(b'0' + (number / unit % 10) as u8);
        unit /= 10;
    }
}

/// Returns year, month and day of the day with this number, counted from 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that a leap day is the last day of its year. 719 468 days lead
    // from 0000-03-01 to 1970-01-01, and 400 years have 146 097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months from March on have 153 days, whichever five they are.
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use std::time::Duration;

    use super::append_date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00.007 "),
            (951_782_399, "2000-02-28T23:59:59.007 "),
            (951_782_400, "2000-02-29T00:00:00.007 "),
            (951_868_800, "2000-03-01T00:00:00.007 "),
            (1_735_689_599, "2024-12-31T23:59:59.007 "),
            (4_107_542_400, "2100-03-01T00:00:00.007 "),
            (253_402_300_800, "10000-01-01T00:00:00.007 "),
        ] {
            let mut line = Vec::new();
            append_date(&mut line, Duration::from_millis(seconds * 1000 + 7));
            assert_eq!(String::from_utf8(line).unwrap(), shown);
        }
    }
}
