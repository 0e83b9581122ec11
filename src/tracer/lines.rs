//! A tracer that writes one line an event.
//!
//! A thread makes its line on its own, and appends it to what is to be written. If no other thread
//! writes then, it writes all of that. So lines are whole and in order, and one thread at most waits
//! for a slow writer.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use super::call::Tracer;
use super::date;
use super::event::Event;
use super::level::{Level, LevelError};
use crate::contain::attempt;
use crate::info::TaskInfo;
use crate::instant::since_1970;
use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, Process};

/// How many bytes of lines may gather in a turn before they are written.
const GATHERED_MAX: usize = 32 << 10;
/// How many bytes of memory a thread keeps for its next line.
const LINE_KEPT: usize = 4 << 10;
/// How many bytes of lines may wait for a slow writer. Further lines are dropped.
const WAITING_MAX: usize = 1 << 20;

/// A [`Tracer`] that writes one line an event.
///
/// A line has the process, the time in UTC, a [sign](super::EventKind::sign), and the actor with its id,
/// name and [state](crate::Context::trace_state):
///
/// ```text
/// [00001234] 2026-11-23T10:36:13.042 < <00000012>server[READY] - Received Xy from <0000000e>
/// ```
///
/// In a simulation the time is that of its clock, which begins in 1970. The format is that of
/// layer_cake.
///
/// Lines are whole, and those of an actor are in order. Control characters are escaped. On stderr
/// each line is written at once. To another writer, the lines of an actor's turn are written when
/// the turn ends, or when 32 KiB have gathered, and other lines at once. The writer is flushed when
/// the runtime has shut down, so it may be a [`BufWriter`](io::BufWriter).
///
/// Clones write to the same writer, and count together. In a child of `fork`, create other lines:
/// a thread of the parent may have been writing these.
///
/// # Writers that fail
/// A line that cannot be written is dropped and [counted](Lines::dropped), for example because the
/// disk is full or the pipe is closed. Later lines are tried again. A panic of the writer counts
/// as a failure. A writer that blocks delays the one thread that writes. Meanwhile the lines of
/// other threads wait, and are dropped and counted beyond 1 MiB.
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
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    dropped: AtomicU64,
}

struct Waiting {
    lines: Vec<u8>,
    /// `None` while a thread writes, which will also write these lines.
    out: Option<Out>,
    /// Whether that thread is to flush then.
    flush: bool,
}

struct Out {
    writer: Box<dyn Write + Send>,
    /// Whether only a part of the last line was written.
    is_torn: bool,
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
        let out = Out {
            writer: Box::new(writer),
            is_torn: false,
        };
        Lines {
            level,
            process: (Process::current(), std::process::id()),
            gathers: true,
            shared: Arc::new(Shared {
                waiting: Mutex::new(Waiting {
                    lines: Vec::new(),
                    out: Some(out),
                    flush: false,
                }),
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

    /// Returns the number of lines that could not be written.
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
        date::digits(&mut line, u64::from(number), 8);
        line.extend(b"] ");
        date::append(&mut line, since_1970());
        // Writing to memory fails only if the text of a panic does.
        let _ = writeln!(line, "{event}");
        self.shared.put(&line, self.is_in_turn());
        line.clear();
        line.shrink_to(LINE_KEPT);
        let _ = LINE.try_with(|kept| kept.replace(line));
    }

    fn enabled(&self, level: Level) -> bool {
        level >= self.level
    }

    fn enter(&self, _actor: &TaskInfo) {
        if self.gathers {
            let _ = TURN.try_with(|turn| turn.set(Arc::as_ptr(&self.shared).addr()));
        }
    }

    fn exit(&self, _actor: &TaskInfo) {
        if self.gathers {
            let _ = TURN.try_with(|turn| turn.set(0));
            self.shared.write(self.shared.waiting.lock());
        }
    }

    fn flush(&self) {
        let mut waiting = self.shared.waiting.lock();
        waiting.flush = true;
        self.shared.write(waiting);
    }
}

impl Lines {
    /// Returns whether this thread is in a turn whose lines are written together.
    fn is_in_turn(&self) -> bool {
        TURN.try_with(Cell::get).ok() == Some(Arc::as_ptr(&self.shared).addr())
    }
}

impl Shared {
    /// Appends a line, and writes what waits unless the turn `gathers` lines.
    fn put(&self, line: &[u8], gathers: bool) {
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() + line.len() > WAITING_MAX {
            drop(waiting);
            return self.count(line);
        }
        waiting.lines.extend_from_slice(line);
        if !gathers || waiting.lines.len() >= GATHERED_MAX {
            self.write(waiting);
        }
    }

    /// Writes what waits, or leaves it to the thread that writes.
    fn write<'a>(&'a self, mut waiting: MutexGuard<'a, Waiting>) {
        let Some(mut out) = waiting.out.take() else {
            return;
        };
        let mut written = Vec::new();
        while waiting.flush || !waiting.lines.is_empty() {
            std::mem::swap(&mut waiting.lines, &mut written);
            let flush = std::mem::take(&mut waiting.flush);
            drop(waiting);
            let mut rest = &*written;
            let all = attempt(|| out.write(&mut rest, flush));
            if !matches!(all, Ok(Ok(()))) {
                self.count(rest);
            }
            written.clear();
            waiting = self.waiting.lock();
        }
        written.shrink_to(2 * GATHERED_MAX);
        waiting.lines = written;
        waiting.out = Some(out);
    }

    /// Counts the lines that were not written, or not completely.
    fn count(&self, lines: &[u8]) {
        let dropped = lines.iter().filter(|byte| **byte == b'\n').count();
        // Relaxed: a mere count.
        self.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
    }
}

impl Out {
    /// Writes the lines. On an error, `rest` begins with the line that was not written completely.
    fn write(&mut self, rest: &mut &[u8], flush: bool) -> io::Result<()> {
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
            let ended = rest[..begun].iter().rposition(|byte| *byte == b'\n');
            let whole = ended.map_or(0, |last| last + 1);
            *rest = &rest[whole..];
            begun -= whole;
            self.is_torn = begun > 0;
        }
        if flush { self.writer.flush() } else { Ok(()) }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("level", &self.level)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}
