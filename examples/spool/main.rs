//! This example hashes a file under a load that doubles and halves:
//! `spool [--block BYTES] [--svg OUT] [--debug-level=LEVEL] FILE`.
//!
//! ```text
//!  LOAD requests in flight ──> Spool: a queue of 64, 8 workers ──> SHA-256 of a block each
//!          ^── refused: again, a little later ──┘
//! ```
//!
//! Each step hashes the whole file, block after block, with a number of requests in flight: 1, 2, 4
//! up to 512, and back. The hash of all hashes equals that of one pass without a spool. While many
//! requests are in flight, the spool refuses some as overloaded, and their senders try again. A
//! table shows the average response time, the queue and the refusals over time, and so does the
//! picture.
//!
//! With `--debug-level=LEVEL`, or `-dl=LEVEL`, it traces the spool and its workers to stderr. A fault,
//! also Ctrl-C, is printed as "spool: condition (explanation)", and the exit status is 71. With wrong
//! arguments it is 2.

mod picture;

use std::fs;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use futures::{StreamExt, stream};
use greenroom::spool::{Spool, SpoolStatus};
use greenroom::time::{Interval, RetryIntervals};
use greenroom::trace::{Level, Lines};
use greenroom::{AskError, Context, Refusal, RefusalKind, Reply, Runtime, ctrl_c, retry, spawn};
use sha2::{Digest, Sha256};

const WORKERS: usize = 8;
const QUEUE: usize = 64;
const LOAD_MAX: usize = 512;
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// The exit status of a fault that has none of its own.
const FAULT: u8 = 71;

type Hash = [u8; 32];

/// A block of the file, by its place.
#[derive(Clone)]
struct Block {
    file: Arc<Vec<u8>>,
    from: usize,
    to: usize,
}

impl Block {
    fn hash(&self) -> Hash {
        Sha256::digest(&self.file[self.from..self.to]).into()
    }
}

/// One line of the table.
struct Sample {
    time: Duration,
    load: usize,
    status: SpoolStatus,
}

async fn worker(mut cx: Context<(Block, Reply<Hash>)>) {
    while let Some((block, reply)) = cx.recv().await {
        if reply.is_wanted() {
            reply.send(block.hash());
        }
    }
}

fn blocks(file: &Arc<Vec<u8>>, size: usize) -> impl Iterator<Item = Block> {
    let len = file.len();
    (0..len).step_by(size).map(move |from| Block {
        file: file.clone(),
        from,
        to: len.min(from + size),
    })
}

/// Returns the hash of the hashes of all blocks.
fn digest(hashes: impl IntoIterator<Item = Hash>) -> String {
    let mut all = Sha256::new();
    hashes.into_iter().for_each(|hash| all.update(hash));
    all.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Asks until the spool is neither overloaded nor busy.
async fn hash(
    spool: &Spool<Block, Hash>,
    block: Block,
    pauses: &RetryIntervals,
) -> Result<Hash, AskError> {
    let is_loaded = |error: &AskError| match error {
        AskError::Refused(refusal) => {
            matches!(refusal.kind(), RefusalKind::Overloaded | RefusalKind::Busy)
        }
        _ => false,
    };
    retry(pauses, || spool.ask(block.clone()))
        .when(is_loaded)
        .await
}

/// Hashes the file once for each load, and checks each digest.
async fn steps(
    file: &Arc<Vec<u8>>,
    size: usize,
    spool: &Spool<Block, Hash>,
    load: &std::cell::Cell<usize>,
) -> Result<String, Refusal> {
    let expected = digest(blocks(file, size).map(|block| block.hash()));
    let pauses = RetryIntervals::exponential(Duration::from_millis(1), Duration::from_millis(50));
    let up = (0..)
        .map(|step| 1 << step)
        .take_while(|load| *load < LOAD_MAX);
    let up: Vec<usize> = up.collect();
    let down = up.iter().rev();
    for requests in up.iter().chain([&LOAD_MAX]).chain(down) {
        load.set(*requests);
        let hashes = stream::iter(blocks(file, size))
            .map(|block| hash(spool, block, &pauses))
            .buffered(*requests);
        let hashes: Vec<Result<Hash, AskError>> = hashes.collect().await;
        let hashes: Result<Vec<Hash>, AskError> = hashes.into_iter().collect();
        let hashes = hashes.map_err(|error| Refusal::new("not hashed", error.to_string()))?;
        let found = digest(hashes);
        if found != expected {
            let explanation = format!("{found} instead of {expected}, with {requests} in flight");
            return Err(Refusal::new("wrong digest", explanation));
        }
    }
    Ok(expected)
}

async fn hash_file(options: &Options) -> Result<(), Refusal> {
    let unreadable = |error| {
        Refusal::new(
            "cannot read",
            format!("{}: {error}", options.file.display()),
        )
    };
    let file = Arc::new(fs::read(&options.file).map_err(unreadable)?);
    let spool = Spool::builder(|number| spawn!(worker(_), name = format!("worker {number}")))
        .workers(WORKERS)
        .capacity(QUEUE)
        .responsiveness(Duration::from_secs(1))
        .name("spool")
        .spawn()
        .map_err(|error| Refusal::new("cannot start", error.to_string()))?;
    let (load, begin) = (std::cell::Cell::new(0), Instant::now());
    let mut samples = Vec::new();
    let mut sampler = Interval::new(SAMPLE_EVERY);
    let mut interrupt = pin!(ctrl_c());
    let mut steps = pin!(steps(&file, options.block, &spool, &load));
    let done = loop {
        let tick = pin!(sampler.tick());
        match select(steps.as_mut(), select(tick, interrupt.as_mut())).await {
            Either::Left((done, _)) => break done,
            Either::Right((Either::Right(_), _)) => {
                break Err(Refusal::of(
                    RefusalKind::Aborted,
                    "user or software interrupt",
                ));
            }
            Either::Right((Either::Left(_), _)) => samples.push(Sample {
                time: begin.elapsed(),
                load: load.get(),
                status: spool.status(),
            }),
        }
    };
    samples.push(Sample {
        time: begin.elapsed(),
        load: load.get(),
        status: spool.status(),
    });
    spool.stop();
    // A spool that was stopped always ends as aborted.
    let _ = spool.join().await;
    print(&samples);
    let digest = done?;
    println!("digest {digest}, as in one pass");
    if let Some(path) = &options.svg {
        let unwritable = |error: &dyn std::fmt::Display| {
            Refusal::new("cannot write", format!("{}: {error}", path.display()))
        };
        picture::draw(path, &samples).map_err(|error| unwritable(&error))?;
    }
    Ok(())
}

/// Prints at most 30 of the samples, and the last one.
fn print(samples: &[Sample]) {
    println!("  time s  load  queue  busy  average ms  answered  refused");
    let every = samples.len().div_ceil(30).max(1);
    let last = samples.len() - 1;
    let shown = samples.iter().enumerate();
    for (_, sample) in shown.filter(|(number, _)| number % every == 0 || *number == last) {
        let Sample { time, load, status } = sample;
        println!(
            "{:8.2} {load:5} {:6} {:5} {:11.3} {:9} {:8}",
            time.as_secs_f64(),
            status.waiting,
            status.busy,
            status.average.as_secs_f64() * 1e3,
            status.answered,
            status.refused(),
        );
    }
}

fn run(options: &Options) -> Result<(), Refusal> {
    let mut builder = Runtime::builder();
    if let Some(level) = options.debug_level {
        builder = builder.tracer(Lines::stderr(level));
    }
    let runtime = builder.build();
    let runtime = runtime.map_err(|error| Refusal::new("no runtime", error.to_string()))?;
    let hashed = runtime.block_on(hash_file(options));
    runtime.block_on(runtime.shutdown());
    hashed
}

struct Options {
    file: PathBuf,
    block: usize,
    svg: Option<PathBuf>,
    debug_level: Option<Level>,
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let (mut file, mut block, mut svg, mut debug_level) = (None, 64 * 1024, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("block") => block = parser.value()?.parse()?,
            Long("debug-level") => debug_level = Some(parser.value()?.parse()?),
            // The initials of that, as layer_cake has them: `-dl=DEBUG`.
            Short('d') => match parser.next()? {
                Some(Short('l')) => debug_level = Some(parser.value()?.parse()?),
                _ => return Err(Short('d').unexpected()),
            },
            Long("svg") => svg = Some(parser.value()?.into()),
            Value(value) if file.is_none() => file = Some(value.into()),
            other => return Err(other.unexpected()),
        }
    }
    if block == 0 {
        return Err("--block=0 is less than 1".into());
    }
    let usage = "usage: spool [--block BYTES] [--svg OUT] [--debug-level=LEVEL] FILE";
    let file = file.ok_or(usage)?;
    Ok(Options {
        file,
        block,
        svg,
        debug_level,
    })
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("spool: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("spool: {fault}");
            let status = fault
                .exit_status()
                .and_then(|status| u8::try_from(status).ok());
            ExitCode::from(status.unwrap_or(FAULT))
        }
    }
}
