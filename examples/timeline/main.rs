//! A look at the work: `timeline [FOLDER] [OUT.svg] [WORKERS]`.
//!
//! Runs a load of several kinds of actors, and draws what an observer saw: workers over time, steals,
//! parks, turns by actor, the longest turns. The load looks for copied text in `FOLDER` (`load.rs`).
//! The defaults are `src`, `target/timeline.svg`, and as many workers as there are cores. Open the
//! picture in a browser; `docs/timeline.svg` is one.
//!
//! ```text
//!  Recorder, an Observer: each turn ────────┐
//!  Sampler: Runtime::stats, once a ms ──────┴──> Recording ──> Picture ──> OUT.svg
//! ```
//!
//! - Measured: the turns, one by one, with their workers, starts and lengths.
//! - Counted by the runtime, and read once a millisecond: steals, parks, queued tasks.
//! - Derived: that a worker was parked in a gap between two turns, which is so if a sample found it
//!   asleep there.
//!
//! All memory is bounded, and the picture tells how much was left out (`record.rs`). To look at a
//! program of your own, copy all files but `main.rs` and `load.rs`, and give the runtime's threads the
//! name [`record::THREAD_NAME`].

mod columns;
mod counters;
mod load;
mod picture;
mod record;
mod svg;
mod tables;

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use greenroom::{Runtime, spawn};

use record::{Recorder, THREAD_NAME};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "src".into()));
    let file = PathBuf::from(
        arguments
            .next()
            .unwrap_or_else(|| "target/timeline.svg".into()),
    );
    let workers = match arguments.next() {
        Some(workers) => workers.to_str().and_then(|workers| workers.parse().ok()),
        None => Some(thread::available_parallelism().map_or(1, |cores| cores.get())),
    };
    let (Some(workers), None) = (workers, arguments.next()) else {
        return Err("usage: timeline [FOLDER] [OUT.svg] [WORKERS]".into());
    };
    fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;

    let recorder = Recorder::new(workers);
    let runtime = Runtime::builder().workers(workers).thread_name(THREAD_NAME);
    let runtime = runtime.observer(recorder.clone()).build()?;
    let sampler = recorder.sample(&runtime);
    let input = folder.clone();
    let found = runtime.block_on(async {
        let director = spawn!(load::director(_, input), name = "director");
        director.join().await
    })??;
    // The last turn may not be over yet.
    runtime.run_until_quiescent();
    let recording = recorder.finish(sampler);

    let title = format!(
        "greenroom on {workers} workers: copied text in {}",
        folder.display()
    );
    let picture = picture::render(&recording, &title);
    write(&file, &picture).map_err(|error| format!("{}: {error}", file.display()))?;
    print!("{found}");
    println!("{}: {} bytes", file.display(), picture.len());
    Ok(())
}

/// Writes a file, and makes the folder for it if there is none.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text)
}
