//! This example shows Conway's Game of Life in a window: actors on the workers compute it, SDL
//! drives the main thread.
//!
//! ```text
//!  main thread                               pool
//!  SDL's loop ── keys, mouse, the red X ──> simulation <──> bands (some rows each)
//!   └─ stage: window <────── worlds ─────────────┘ └─ Quit: saves, then all ends
//! ```
//!
//! See `events.rs` for the loop, `window.rs` for the actor on the stage. Space pauses and resumes,
//! N computes one generation, C clears, a click toggles a cell.

mod bench;
mod board;
mod events;
mod frames;
mod processor;
mod simulation;
mod window;

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use greenroom::{Runtime, spawn};

use bench::Bench;
use board::Board;
use simulation::{Message, simulation};
use window::window;

const HELP: &str = "\
usage: life [--seed NUMBER] [--workers NUMBER] [--bench[=SECONDS]] [FILE]

Shows the board that is in FILE, or a random one, and saves it there when its window is closed.
Space pauses and resumes, N computes one generation, C clears, a click toggles a cell.

  --seed NUMBER     another random board
  --workers NUMBER  number of workers [default: one fewer than there are processors]
  --bench=SECONDS   keeps all workers busy as well, closes the window after that time, or after
                    five seconds, and prints how long the frames took
";

/// The size of a random board in cells, across and down.
const SIZE: (usize, usize) = (240, 160);

/// The default length of a `--bench`, in seconds.
const BENCH: u64 = 5;

#[derive(Default)]
struct Options {
    file: Option<PathBuf>,
    seed: u64,
    workers: Option<usize>,
    bench: Option<Duration>,
    is_help: bool,
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;

    let mut options = Options::default();
    let mut arguments = lexopt::Parser::from_args(arguments);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("workers") => options.workers = Some(arguments.value()?.parse()?),
            Long("bench") => {
                let seconds = arguments.optional_value();
                let seconds = seconds.map_or(Ok(BENCH), |seconds| seconds.parse())?;
                options.bench = Some(Duration::from_secs(seconds));
            }
            Short('h') | Long("help") => options.is_help = true,
            Value(file) if options.file.is_none() => options.file = Some(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}

/// Returns the board in the file or, if there is no file, a random one.
fn board(options: &Options) -> Result<Board, String> {
    match &options.file {
        Some(file) if file.exists() => {
            let text = fs::read_to_string(file).map_err(|error| error.to_string());
            let board = text.and_then(|text| text.parse());
            board.map_err(|error| format!("{}: {error}", file.display()))
        }
        _ => Ok(Board::random(SIZE.0, SIZE.1, options.seed)),
    }
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let board = board(&options)?;
    let size = (board.width(), board.height());
    // One processor is left for the main thread and the process that displays the window.
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let workers = options.workers.unwrap_or(processors.max(2) - 1);
    let runtime = Runtime::builder().workers(workers).build()?;
    // The stage is dropped first, and all SDL values on it.
    let sdl = sdl2::init()?;
    let stage = runtime.pinned_here();

    let simulation = spawn!(simulation(_, board, options.file), on = &runtime);
    let window = spawn!(window(_, simulation.address(), size), on = &stage);
    simulation.tell(Message::Watch(window.map(window::Message::World)))?;
    let bench = options.bench;
    let bench = bench.map(|length| Bench::start(&runtime, simulation.address(), length));

    let served = events::serve(&sdl, &stage, &simulation, || {
        !simulation.is_closed() && !window.is_closed()
    });
    // The world is saved even if the window has failed.
    let _ = simulation.tell(Message::Quit);
    window.stop();
    let frames = stage.block_on(window.join());
    println!("closed");
    // Work that follows from the end continues, and is awaited here.
    stage.block_on(simulation.join())??;
    served?;
    let frames = frames??;
    println!("{frames}");
    if let Some(bench) = bench {
        println!("{}", bench.verdict(&frames));
    }
    drop(stage);
    runtime.block_on(runtime.shutdown());
    Ok(())
}

fn main() -> ExitCode {
    let done = match parse(env::args_os().skip(1)) {
        Ok(options) if options.is_help => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(options) => run(options),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("life: {error}");
            ExitCode::FAILURE
        }
    }
}
