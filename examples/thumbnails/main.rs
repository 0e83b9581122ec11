//! This example makes small images of those in a folder: `thumbnails [OPTIONS] FROM TO`.
//!
//! ```text
//! thumbnails --size=64 --workers=4 photos small
//! ```
//!
//! It takes the binary PPM files (`P6`) of `FROM` and its sub-folders, and writes each to the same
//! path in `TO`, at most 128 pixels (`--size`) wide and high. Jobs of a market do that, of which at
//! most 8 (`--workers`) run at a time. The key of a job is its folder: each job adds a line to the
//! `index.txt` of its folder, and no two jobs of a folder run at the same time. Small files go
//! first. While the board is full, the walk through the folders waits.
//!
//! A bar on stderr shows the progress. Files that are no such images are named and skipped. `TO`
//! must not be in `FROM`. After Ctrl-C the accepted jobs are finished, and after another one only
//! those that run. The exit status is 0, 1 if files were skipped, 2 with wrong arguments, and 130
//! after Ctrl-C.

mod image;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;

use futures::future::{BoxFuture, Either, FutureExt, select};
use futures::stream::{self, FuturesUnordered, StreamExt};
use greenroom::ctrl_c;
use greenroom::market::{Job, JobError, Market};
use indicatif::{ProgressBar, ProgressStyle};
use lexopt::ValueExt;

use image::Image;

struct Options {
    size: usize,
    workers: usize,
    from: PathBuf,
    to: PathBuf,
}

/// The result of a job: the reason why the file was skipped.
type Made = Result<(), String>;

/// The accepted jobs, with their files.
type Jobs = FuturesUnordered<BoxFuture<'static, (PathBuf, Result<Made, JobError>)>>;

/// The folders that were not read yet, and the files of those that were.
struct Walk {
    root: PathBuf,
    folders: Vec<PathBuf>,
    files: VecDeque<PathBuf>,
}

/// Counts what was done, and shows it.
struct Progress {
    bar: ProgressBar,
    made: u64,
    skipped: u64,
}

fn main() -> ExitCode {
    let options = match parse(lexopt::Parser::from_env()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("thumbnails: {error}\nusage: thumbnails [--size=N] [--workers=N] FROM TO");
            return ExitCode::from(2);
        }
    };
    let (progress, is_interrupted) = greenroom::run(make_all(options));
    progress.bar.finish_and_clear();
    println!("{} made, {} skipped", progress.made, progress.skipped);
    match (is_interrupted, progress.skipped) {
        (true, _) => ExitCode::from(130),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::FAILURE,
    }
}

fn parse(mut arguments: lexopt::Parser) -> Result<Options, lexopt::Error> {
    use lexopt::prelude::{Long, Value};
    let (mut size, mut workers, mut folders) = (128, 8, Vec::<OsString>::new());
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("size") => size = arguments.value()?.parse_with(positive)?,
            Long("workers") => workers = arguments.value()?.parse_with(positive)?,
            Value(folder) if folders.len() < 2 => folders.push(folder),
            other => return Err(other.unexpected()),
        }
    }
    let [from, to] = <[OsString; 2]>::try_from(folders).map_err(|_| "two folders are needed")?;
    if is_within(to.as_ref(), from.as_ref()) {
        // Small images would replace large ones, or be made small again.
        return Err("TO is in FROM".into());
    }
    Ok(Options {
        size,
        workers,
        from: from.into(),
        to: to.into(),
    })
}

/// Returns whether a folder, which may not be there yet, is in another one or is that one.
fn is_within(inner: &Path, outer: &Path) -> bool {
    let inner = std::path::absolute(inner).unwrap_or_default();
    let known = inner.ancestors().find_map(|path| path.canonicalize().ok());
    let outer = outer.canonicalize();
    matches!((known, outer), (Some(inner), Ok(outer)) if inner.starts_with(&outer))
}

fn positive(text: &str) -> Result<usize, &'static str> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=512).contains(number));
    number.ok_or("it is not a number from 1 to 512")
}

/// Makes all images. Returns what was done, and whether Ctrl-C was pressed.
async fn make_all(options: Options) -> (Progress, bool) {
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} {msg}");
    let bar = ProgressBar::new(0).with_style(style.expect("the template is valid"));
    let mut progress = Progress {
        bar,
        made: 0,
        skipped: 0,
    };
    let market = Market::<PathBuf>::builder()
        .max_workers(options.workers)
        .capacity(64)
        .capacity_per_key(64)
        .build()
        .expect("the options are in range");
    let mut jobs = Jobs::new();
    let mut interrupts = pin!(stream::repeat_with(interrupt).buffered(1));
    let mut is_interrupted = {
        let offers = pin!(offer_all(&market, &options, &mut jobs, &mut progress));
        matches!(select(offers, interrupts.next()).await, Either::Right(_))
    };
    // Nothing more is offered, and what was accepted is made.
    loop {
        match select(jobs.next(), interrupts.next()).await {
            Either::Left((Some((path, made)), _)) => progress.count(&path, made),
            Either::Left((None, _)) => return (progress, is_interrupted),
            Either::Right(_) if is_interrupted => market.stop(),
            Either::Right(_) => is_interrupted = true,
        }
    }
}

/// Waits for Ctrl-C, if the system tells of it.
async fn interrupt() {
    if ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// Offers a job for each file.
async fn offer_all(
    market: &Market<PathBuf>,
    options: &Options,
    jobs: &mut Jobs,
    progress: &mut Progress,
) {
    let mut walk = Walk {
        root: options.from.clone(),
        folders: vec![PathBuf::new()],
        files: VecDeque::new(),
    };
    loop {
        // A folder may be large, and its disk slow.
        let read = greenroom::unblock(move || {
            let file = walk.next();
            (walk, file)
        });
        let (back, file) = read.await;
        walk = back;
        let (path, kilobytes) = match file {
            Some(Ok(file)) => file,
            Some(Err((path, error))) => {
                progress.bar.inc_length(1);
                progress.skip(&options.from.join(path), &error);
                continue;
            }
            None => return,
        };
        progress.bar.inc_length(1);
        while let Some(Some((path, made))) = jobs.next().now_or_never() {
            progress.count(&path, made);
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let (from, to) = (options.from.join(&path), options.to.join(&path));
        let priority = u32::MAX - u32::try_from(kilobytes).unwrap_or(u32::MAX);
        let size = options.size;
        let job = Job::new(move || make(&from, &to, size).map_err(|error| error.to_string()));
        let offered = market.offer(job.key(folder).priority(priority)).await;
        let job = offered.expect("the market is open, and its board is the limit");
        jobs.push(async move { (path, job.await) }.boxed());
    }
}

/// Makes one small image, and notes it in the index of its folder.
fn make(from: &Path, to: &Path, size: usize) -> io::Result<()> {
    let small = Image::read(&mut io::BufReader::new(File::open(from)?))?.shrunk(size);
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = io::BufWriter::new(File::create(to)?);
    small.write(&mut file)?;
    file.flush()?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let index = folder.join("index.txt");
    let mut index = OpenOptions::new().create(true).append(true).open(index)?;
    // Two writes: the key keeps the lines of other jobs out.
    write!(index, "{name}")?;
    writeln!(index, " {} x {}", small.width, small.height)
}

impl Walk {
    /// Returns the next file, as a path from the root, and its kilobytes.
    fn next(&mut self) -> Option<Result<(PathBuf, u64), (PathBuf, io::Error)>> {
        loop {
            if let Some(file) = self.files.pop_front() {
                let data = fs::metadata(self.root.join(&file));
                return Some(Ok((file, data.map_or(0, |data| data.len() >> 10))));
            }
            let folder = self.folders.pop()?;
            if let Err(error) = self.read(&folder) {
                return Some(Err((folder, error)));
            }
        }
    }

    fn read(&mut self, folder: &Path) -> io::Result<()> {
        let entries = fs::read_dir(self.root.join(folder))?;
        let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = folder.join(entry.file_name());
            match entry.file_type()? {
                kind if kind.is_dir() => self.folders.push(path),
                kind if kind.is_file() => self.files.push_back(path),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Progress {
    fn count(&mut self, path: &Path, made: Result<Made, JobError>) {
        match made {
            Ok(Ok(())) => {
                self.made += 1;
                self.bar.inc(1);
            }
            Ok(Err(why)) => self.skip(path, &why),
            Err(error) => self.skip(path, &error),
        }
    }

    fn skip(&mut self, path: &Path, why: &dyn std::fmt::Display) {
        self.skipped += 1;
        self.bar.inc(1);
        let path = path.display();
        self.bar.suspend(|| eprintln!("{path}: skipped: {why}"));
    }
}
