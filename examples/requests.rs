//! This example shows requests that fail in several ways, and actors that own or watch others:
//! `requests [FOLDER]`.
//!
//! ```text
//!         ┌── owns ─────> reader    counts the lines of files
//!  desk ──┼── owns ─────> index     is busy at first, so the desk asks again
//!         ├── owns ─────> printer   has paper for one page, so it refuses the second
//!         └── watches ··> plotter   is too slow, so the request times out
//! ```
//!
//! It uses `on_answer` for requests in flight, `concurrently`, `retry`, a timeout, a `Refusal`,
//! `adopt` and `watch`. For a folder, by default `src`, it prints lines like these:
//!
//! ```text
//! reading 23 files, at most 4 at a time
//! the index answered at attempt 3
//! printed: src/blocks.rs is the longest of 23 files
//! printer: refused: out of paper (add some)
//! plotter: no answer came in time
//! the plotter ended: Killed
//! the children ended: index 3, printer 1, reader 23
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use greenroom::time::{RetryIntervals, sleep};
use greenroom::{Address, AskError, Context, End, Fault, Handle, Refusal, RefusalKind, Reply};
use greenroom::{concurrently, retry, spawn, unblock};

/// The maximum number of files that are read at the same time.
const IN_FLIGHT: usize = 4;

type Read = (PathBuf, Reply<usize>);
type Find = (Vec<(usize, PathBuf)>, Reply<PathBuf>);
type Print = (String, Reply<()>);

/// The messages of the desk.
enum Event {
    Read(PathBuf, Result<usize, AskError>),
    Child(&'static str, Result<usize, Fault>),
    Plotter(End),
}

/// Reads each file on a thread that may block, and receives the next request meanwhile.
async fn reader(mut cx: Context<Read>) -> usize {
    let mut requests = 0;
    while let Some((path, reply)) = cx.recv().await {
        requests += 1;
        let read = move || match fs::read(path) {
            Ok(bytes) => reply.send(bytes.iter().filter(|&&byte| byte == b'\n').count()),
            Err(error) => reply.refuse(Refusal::new("not readable", error.to_string())),
        };
        unblock(read).detach();
    }
    requests
}

/// Finds the longest file, but is busy at the first two requests.
async fn index(mut cx: Context<Find>) -> usize {
    let mut requests = 0;
    while let Some((files, reply)) = cx.recv().await {
        requests += 1;
        match files.into_iter().max() {
            _ if requests < 3 => reply.refuse(Refusal::of(RefusalKind::Busy, "starting")),
            Some((_, path)) => reply.send(path),
            None => reply.refuse(Refusal::new("no files", "none was readable")),
        }
    }
    requests
}

async fn printer(mut cx: Context<Print>, paper: usize, pace: Duration) -> usize {
    let mut pages = 0;
    while let Some((page, reply)) = cx.recv().await {
        if pages == paper {
            reply.refuse(Refusal::new("out of paper", "add some"));
            continue;
        }
        sleep(pace).await;
        println!("printed: {page}");
        pages += 1;
        reply.send(());
    }
    pages
}

async fn desk(mut cx: Context<Event>, mut files: Vec<PathBuf>, plotter: Address<Print>) {
    let reader = own(&mut cx, "reader", spawn!(reader(_)));
    let index = own(&mut cx, "index", spawn!(index(_)));
    let printer = own(&mut cx, "printer", spawn!(printer(_, 1, Duration::ZERO)));
    let _watch = cx.watch(&plotter, Event::Plotter);
    let _open = cx.address(); // neither children nor a watch keep the desk open

    println!(
        "reading {} files, at most {IN_FLIGHT} at a time",
        files.len()
    );
    let (mut in_flight, mut counted, mut ended) = (0, Vec::new(), Vec::new());
    loop {
        while in_flight < IN_FLIGHT
            && let Some(path) = files.pop()
        {
            in_flight += 1;
            let file = path.clone();
            let request = reader.request(|reply| (file, reply));
            cx.on_answer(request, |lines| Event::Read(path, lines));
        }
        let Some(event) = cx.recv().await else { break };
        match event {
            Event::Read(path, lines) => {
                in_flight -= 1;
                match lines {
                    Ok(lines) => counted.push((lines, path)),
                    Err(error) => println!("{}: {error}", path.display()),
                }
                if in_flight == 0 && files.is_empty() {
                    report(&counted, &index, &printer, &plotter).await;
                    plotter.kill();
                }
            }
            Event::Plotter(end) => {
                println!("the plotter ended: {end:?}");
                cx.stop(); // stops the children; their results are the last messages
            }
            Event::Child(name, Ok(count)) => ended.push(format!("{name} {count}")),
            Event::Child(name, Err(fault)) => ended.push(format!("{name} {fault}")),
        }
    }
    ended.sort();
    println!("the children ended: {}", ended.join(", "));
}

/// Makes the desk the owner of a child, and returns the child's address.
fn own<M: Send + 'static>(
    cx: &mut Context<Event>,
    name: &'static str,
    child: Handle<M, usize>,
) -> Address<M> {
    let address = child.address();
    cx.adopt(child, move |result| Event::Child(name, result));
    address
}

/// Asks the index until it is not busy, then makes three requests at the same time.
async fn report(
    files: &[(usize, PathBuf)],
    index: &Address<Find>,
    printer: &Address<Print>,
    plotter: &Address<Print>,
) {
    let intervals = RetryIntervals::exponential(Duration::from_millis(1), Duration::from_secs(1));
    let mut attempt = 0;
    let longest = retry(&intervals, || {
        attempt += 1;
        index.ask(|reply| (files.to_vec(), reply))
    });
    let first = match longest.when(is_busy).await {
        Ok(path) => format!("{} is the longest of {} files", path.display(), files.len()),
        Err(error) => return println!("index: {error}"),
    };
    println!("the index answered at attempt {attempt}");
    let pages = concurrently((
        printer.ask(|reply| (first, reply)),
        printer.ask(|reply| ("all files, by name".to_owned(), reply)),
        plotter
            .ask(|reply| ("a chart".to_owned(), reply))
            .timeout(Duration::from_millis(50)),
    ));
    let (first, second, chart) = pages.await;
    for (name, answer) in [("printer", first), ("printer", second), ("plotter", chart)] {
        if let Err(error) = answer {
            println!("{name}: {error}");
        }
    }
}

/// Returns whether the same request may succeed later.
fn is_busy(error: &AskError) -> bool {
    matches!(error, AskError::Refused(why) if why.kind() == RefusalKind::Busy)
}

fn start(arguments: &[OsString]) -> Result<(), Box<dyn Error>> {
    let folder = match arguments {
        [] => Path::new("src"),
        [folder] => Path::new(folder),
        _ => return Err("usage: requests [FOLDER]".into()),
    };
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let files: Vec<_> = paths.filter(|path| path.is_file()).collect();
    if files.is_empty() {
        return Err(format!("{} has no files", folder.display()).into());
    }
    greenroom::run(async {
        let plotter = spawn!(printer(_, 1, Duration::from_secs(60)));
        spawn!(desk(_, files, plotter.address())).join().await?;
        Ok(())
    })
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    if let Err(error) = start(&arguments) {
        eprintln!("requests: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
