//! This example copies a file in parts: `copy FROM TO`.
//!
//! ```text
//!                   files are open               all is copied              has its name
//!  Opening ────────────────────────> Copying ──────────────────> Naming ──────────────────> done
//!     progress and a stop are saved     progress is answered        a stop is ignored
//! ```
//!
//! The parts go to `TO.part`, which gets the name `TO` at the end. A run that is stopped, by Ctrl-C
//! or by `--at-most=BYTES`, leaves that file, and the next run goes on there, if the last part
//! still equals that of the original. Each step blocks, so it runs on a thread for blocking calls,
//! and its result comes as a message. It prints lines like these:
//!
//! ```text
//! 65536 of 200000 bytes are there
//! copied 134464 bytes
//! ```
//!
//! With `--debug-level=LEVEL`, or `-dl=LEVEL`, it traces the machine to stderr. A fault, also a stop,
//! is printed as "copy: condition (explanation)", and the exit status is 71. With wrong arguments it
//! is 2.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;

use futures::future::{Either, select};
use greenroom::machine::{Machine, Next};
use greenroom::trace::{Level, Lines};
use greenroom::{Context, Refusal, RefusalKind, Reply, Runtime, ctrl_c, unblock};

/// The number of bytes that are copied at a time.
const PART: u64 = 64 * 1024;

/// The exit status of a fault that has none of its own.
const FAULT: u8 = 71;

struct Options {
    from: PathBuf,
    to: PathBuf,
    /// The number of bytes that a run may copy.
    at_most: u64,
    debug_level: Option<Level>,
}

/// The numbers of bytes that are there, and of all.
#[derive(Clone, Copy, Default)]
struct Progress {
    there: u64,
    total: u64,
}

/// A file that is being copied.
struct Copy {
    options: Options,
    progress: Progress,
    /// The number of bytes that this run has copied.
    copied: u64,
    stops: bool,
}

enum State {
    Opening,
    Copying,
    Naming,
}

struct Files {
    from: File,
    to: File,
}

enum Event {
    Opened(io::Result<(Files, Progress)>),
    /// A part was copied, of this many bytes.
    Copied(io::Result<(Files, u64)>),
    Named(io::Result<()>),
    Progress(Reply<Progress>),
    Stop,
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Event::Opened(_) => "Opened",
            Event::Copied(_) => "Copied",
            Event::Named(_) => "Named",
            Event::Progress(_) => "Progress",
            Event::Stop => "Stop",
        }
    }
}

impl Copy {
    /// Runs a step on a thread for blocking calls. Its result comes as a message.
    fn step<T: Send + 'static>(
        cx: &mut Context<Event>,
        step: impl FnOnce() -> io::Result<T> + Send + 'static,
        event: fn(io::Result<T>) -> Event,
    ) {
        cx.on_return(unblock(step), move |result| {
            event(result.unwrap_or_else(|fault| Err(io::Error::other(fault.to_string()))))
        });
    }

    /// Copies the next part, or ends with the last one.
    fn go_on(&mut self, files: Files, cx: &mut Context<Event>) -> Next<Self> {
        let Progress { there, total } = self.progress;
        let (left, may) = (total - there, self.options.at_most - self.copied);
        if left == 0 {
            let to = self.options.to.clone();
            let name = move || {
                files
                    .to
                    .sync_all()
                    .and_then(|()| fs::rename(part_of(&to), &to))
            };
            Copy::step(cx, name, Event::Named);
            return Next::To(State::Naming);
        }
        if self.stops || may == 0 {
            let says = format!("{there} of {total} bytes are there");
            return Next::Done(Err(Refusal::of(RefusalKind::Aborted, says)));
        }
        Copy::step(
            cx,
            move || copy_part(files, PART.min(left).min(may)),
            Event::Copied,
        );
        Next::Stay
    }
}

impl Machine for Copy {
    type State = State;
    type Message = Event;
    /// The number of bytes that this run has copied, or why the copy is not complete.
    type Value = Result<u64, Refusal>;

    async fn started(&mut self, cx: &mut Context<Event>) {
        let (from, to) = (self.options.from.clone(), part_of(&self.options.to));
        Copy::step(cx, move || open(&from, &to), Event::Opened);
    }

    async fn on(&mut self, state: &State, event: Event, cx: &mut Context<Event>) -> Next<Self> {
        match (state, event) {
            (State::Opening, Event::Opened(Ok((files, progress)))) => {
                self.progress = progress;
                match self.go_on(files, cx) {
                    Next::Stay => Next::To(State::Copying),
                    other => other,
                }
            }
            (State::Copying, Event::Copied(Ok((files, copied)))) => {
                self.progress.there += copied;
                self.copied += copied;
                self.go_on(files, cx)
            }
            (State::Naming, Event::Named(Ok(()))) => Next::Done(Ok(self.copied)),
            (
                _,
                Event::Opened(Err(error)) | Event::Copied(Err(error)) | Event::Named(Err(error)),
            ) => Next::Done(Err(Refusal::new("cannot copy", error.to_string()))),
            (State::Opening, early @ (Event::Progress(_) | Event::Stop)) => Next::Save(early),
            (State::Copying | State::Naming, Event::Progress(reply)) => {
                reply.send(self.progress);
                Next::Stay
            }
            (State::Copying, Event::Stop) => {
                self.stops = true;
                Next::Stay
            }
            (State::Naming, late @ Event::Stop) => Next::Ignore(late),
            // The result of a step comes in the state that has begun it.
            (State::Opening | State::Naming, Event::Copied(Ok(_)))
            | (State::Copying | State::Naming, Event::Opened(Ok(_)))
            | (State::Opening | State::Copying, Event::Named(Ok(()))) => unreachable!(),
        }
    }

    fn state_name(state: &State) -> &'static str {
        match state {
            State::Opening => "Opening",
            State::Copying => "Copying",
            State::Naming => "Naming",
        }
    }
}

/// Returns the name of a copy that is not complete.
fn part_of(to: &Path) -> PathBuf {
    let mut name = OsString::from(to);
    name.push(".part");
    name.into()
}

/// Opens both files behind the bytes that are there.
fn open(from: &Path, to: &Path) -> io::Result<(Files, Progress)> {
    let mut from = File::open(from)?;
    if !from.metadata()?.is_file() {
        return Err(io::Error::other("the original is not a regular file"));
    }
    let mut options = OpenOptions::new();
    let mut to = options.read(true).append(true).create(true).open(to)?;
    let (there, total) = (to.seek(SeekFrom::End(0))?, from.seek(SeekFrom::End(0))?);
    if there > total {
        return Err(io::Error::other(
            "there are more bytes than in the original",
        ));
    }
    if last_part(&mut from, there)? != last_part(&mut to, there)? {
        return Err(io::Error::other("the original has changed"));
    }
    Ok((Files { from, to }, Progress { there, total }))
}

/// Reads the last part before this position, which is the position then.
fn last_part(file: &mut File, end: u64) -> io::Result<Vec<u8>> {
    let begin = end.saturating_sub(PART);
    file.seek(SeekFrom::Start(begin))?;
    let mut part = Vec::new();
    file.take(end - begin).read_to_end(&mut part)?;
    Ok(part)
}

/// Copies at most this many bytes.
fn copy_part(mut files: Files, bytes: u64) -> io::Result<(Files, u64)> {
    let copied = io::copy(&mut (&files.from).take(bytes), &mut files.to)?;
    match copied {
        0 => Err(io::Error::other("the original has become shorter")),
        _ => Ok((files, copied)),
    }
}

async fn copy(options: Options) -> Result<u64, Refusal> {
    let copy = Copy {
        options,
        progress: Progress::default(),
        copied: 0,
        stops: false,
    };
    let copy = copy
        .into_builder(State::Opening)
        .name("copy")
        .label(Event::name)
        .spawn();
    let (to, ending) = (copy.address(), copy.join());
    // The answer comes once the files are open.
    let told = to.clone();
    let ending = async {
        if let Ok(Progress { there, total }) = told.ask(Event::Progress).await {
            println!("{there} of {total} bytes are there");
        }
        ending.await
    };
    // Ctrl-C is polled first, so from the beginning it no longer ends the process.
    let ended = match select(pin!(ctrl_c()), pin!(ending)).await {
        Either::Right((ended, _)) => ended,
        Either::Left((stop, ending)) => {
            match stop {
                Ok(()) => drop(to.tell(Event::Stop)),
                Err(error) => eprintln!("Ctrl-C will not be noticed: {error}"),
            }
            ending.await
        }
    };
    let ended = ended.map_err(|fault| Refusal::new("copy failed", fault.to_string()))?;
    ended
        .value
        .unwrap_or_else(|| Err(Refusal::of(RefusalKind::Aborted, "the copy was stopped")))
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let (mut paths, mut at_most, mut debug_level) = (Vec::new(), u64::MAX, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("at-most") => at_most = parser.value()?.parse()?,
            Long("debug-level") => debug_level = Some(parser.value()?.parse()?),
            // The initials of that, as layer_cake has them: `-dl=DEBUG`.
            Short('d') => match parser.next()? {
                Some(Short('l')) => debug_level = Some(parser.value()?.parse()?),
                _ => return Err(Short('d').unexpected()),
            },
            Value(path) if paths.len() < 2 => paths.push(PathBuf::from(path)),
            other => return Err(other.unexpected()),
        }
    }
    let Ok([from, to]) = <[PathBuf; 2]>::try_from(paths) else {
        return Err("usage: copy [--at-most=BYTES] [--debug-level=LEVEL] FROM TO".into());
    };
    Ok(Options {
        from,
        to,
        at_most,
        debug_level,
    })
}

fn run(options: Options) -> Result<u64, Refusal> {
    let mut builder = Runtime::builder();
    if let Some(level) = options.debug_level {
        builder = builder.tracer(Lines::stderr(level));
    }
    let runtime = builder.build();
    let runtime = runtime.map_err(|error| Refusal::new("no runtime", error.to_string()))?;
    let copied = runtime.block_on(copy(options));
    runtime.block_on(runtime.shutdown());
    copied
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("copy: {error}");
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(bytes) => {
            println!("copied {bytes} bytes");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("copy: {fault}");
            let status = fault
                .exit_status()
                .and_then(|status| u8::try_from(status).ok());
            ExitCode::from(status.unwrap_or(FAULT))
        }
    }
}
