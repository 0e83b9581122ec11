//! This example indexes the text files of a folder under a supervisor: `supervise FOLDER`.
//!
//! ```text
//!  tree, rest for one ──┬── index    knows in how many files each word is
//!                       └── reader   reads files; one that is not text panics it
//! ```
//!
//! A panic loses the file in hand and nothing else: the reader begins anew, with the files that
//! wait in its mailbox. Ctrl-C stops the reader, then the index. For a folder with two texts and a
//! picture it prints lines like these:
//!
//! ```text
//! "reader" #3 begins anew (1): panicked: not text
//! notes/face.png: "reader" #3 panicked: not text
//! the reader ends
//! the index ends: files 2, words 311, most frequent "the"
//! reader: restarts 1, last fault: not text
//! ```
//!
//! A fault, also Ctrl-C, is printed as "supervise: condition (explanation)", and the exit status is
//! 71. With wrong arguments it is 2.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures::future::{Either, select};
use futures::{StreamExt, stream};
use greenroom::policy::TaskInfo;
use greenroom::supervise::{Restarts, Strategy, Supervisor};
use greenroom::{Address, Context, Fault, Observer, Refusal, RefusalKind, Reply, Runtime};
use greenroom::{AskError, actor, ctrl_c, unblock};

/// The maximum number of files in the reader's mailbox.
const WAITING: usize = 8;

/// The exit status of a fault that has none of its own.
const FAULT: u8 = 71;

type Words = BTreeSet<String>;
type Read = (PathBuf, Reply<()>);

/// Prints each restart.
struct Printer;

impl Observer for Printer {
    fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        match fault {
            Some(fault) => println!("{actor} begins anew ({incarnation}): {fault}"),
            None => println!("{actor} begins anew ({incarnation})"),
        }
    }
}

async fn index(mut cx: Context<Words>) {
    let (mut files, mut words) = (0, HashMap::<String, usize>::new());
    while let Some(found) = cx.recv().await {
        files += 1;
        for word in found {
            *words.entry(word).or_default() += 1;
        }
    }
    let most = words.iter().max_by_key(|(word, files)| (**files, *word));
    let most = most.map_or("", |(word, _)| word);
    println!(
        "the index ends: files {files}, words {}, most frequent {most:?}",
        words.len()
    );
}

async fn reader(mut cx: Context<Read>, index: Address<Words>) {
    while let Some((path, reply)) = cx.recv().await {
        let bytes = match unblock(move || fs::read(path)).await {
            Ok(bytes) => bytes,
            Err(error) => {
                reply.refuse(Refusal::new("not readable", error.to_string()));
                continue;
            }
        };
        let Ok(text) = String::from_utf8(bytes) else {
            panic!("not text");
        };
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        let _ = index.tell(words.map(str::to_lowercase).collect());
        reply.send(());
    }
    println!("the reader ends");
}

/// Returns the files of a folder and of the folders in it.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let unreadable = |error| Refusal::new("cannot list", format!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_type().map_err(unreadable)?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

async fn index_all(files: Vec<PathBuf>) -> Result<(), Refusal> {
    let failed = |problem: String| Refusal::new("cannot start", problem);
    let tree = Supervisor::builder()
        .strategy(Strategy::RestForOne)
        .intensity(u32::MAX, Duration::from_secs(1))
        .name("tree")
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let index = tree
        .start(actor(index).name("index"))
        .map_err(|error| failed(error.to_string()))?;
    let any = Restarts::on_fault().intensity(u32::MAX, Duration::from_secs(1));
    let reader = tree
        .start(actor(|cx| reader(cx, index)).name("reader").restart(any))
        .map_err(|error| failed(error.to_string()))?;

    let requests = stream::iter(files).map(|path| {
        let (name, file) = (path.display().to_string(), path);
        let request = reader.request(|reply| (file, reply));
        async { (name, request.await) }
    });
    let all = requests
        .buffered(WAITING)
        .for_each(async |(name, answer)| match answer {
            Ok(()) => {}
            Err(AskError::NoReply(why)) => println!("{name}: {why}"),
            Err(error) => println!("{name}: {error}"),
        });
    let interrupt = pin!(ctrl_c());
    let interrupted = match select(interrupt, pin!(all)).await {
        Either::Right(((), _)) => None,
        Either::Left((Ok(()), _)) => {
            println!("Ctrl-C: stopping");
            Some(Refusal::of(
                RefusalKind::Aborted,
                "user or software interrupt",
            ))
        }
        Either::Left((Err(error), all)) => {
            eprintln!("Ctrl-C will not be noticed: {error}");
            all.await;
            None
        }
    };
    let children = tree.children();
    tree.stop();
    let ended = tree.join().await;
    for child in children.iter().filter(|child| child.restarts > 0) {
        let (name, fault) = (child.name.as_deref(), child.last_fault.as_deref());
        let (name, fault) = (name.unwrap_or_default(), fault.unwrap_or_default());
        println!("{name}: restarts {}, last fault: {fault}", child.restarts);
    }
    ended.map_err(|escalated| Refusal::new("gave up", escalated.to_string()))?;
    interrupted.map_or(Ok(()), Err)
}

fn run(folder: &Path) -> Result<(), Refusal> {
    let files = files(folder)?;
    let runtime = Runtime::builder().observer(Printer).build();
    let runtime = runtime.map_err(|error| Refusal::new("no runtime", error.to_string()))?;
    // The observer prints each panic.
    std::panic::set_hook(Box::new(|_| ()));
    runtime.block_on(index_all(files))
}

/// Returns the one argument.
fn parse() -> Result<PathBuf, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut folder = None;
    while let Some(argument) = parser.next()? {
        match argument {
            lexopt::Arg::Value(value) if folder.is_none() => folder = Some(value.into()),
            other => return Err(other.unexpected()),
        }
    }
    folder.ok_or_else(|| "usage: supervise FOLDER".into())
}

fn main() -> ExitCode {
    let folder = match parse() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("supervise: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("supervise: {fault}");
            let status = fault
                .exit_status()
                .and_then(|status| u8::try_from(status).ok());
            ExitCode::from(status.unwrap_or(FAULT))
        }
    }
}
