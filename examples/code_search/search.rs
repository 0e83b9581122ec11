//! One search from start to end: brings the index up to date, then queries it.
//!
//! The store is stopped and joined on every path, so everything that it accepted is committed. If
//! the store failed, its error is reported, because the other errors follow from it.

use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::thread;

use futures::FutureExt;
use futures::future::{Either, select};
use greenroom::{Address, Runtime, spawn};

use crate::interrupt::{self, Interrupt};
use crate::options::Options;
use crate::print::printer;
use crate::progress::Progress;
use crate::query::Query;
use crate::read::reader;
use crate::store::{Order, Place, Search, Written, store};
use crate::walk::{Route, Walk, walker};

/// The maximum number of files that wait for one reader.
const READER_CAPACITY: usize = 16;

/// The maximum number of files, with their text, that wait for the store. Each can be 16 MiB.
const STORE_CAPACITY: usize = 8;

/// The maximum number of pages of hits that wait for the printer.
const PRINTER_CAPACITY: usize = 8;

/// Any error that ends the program early.
pub type Trouble = Box<dyn Error + Send + Sync>;

/// The outcome of a search without an error.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The number of lines found.
    pub hits: u64,
    /// Whether Ctrl-C ended the search.
    pub is_interrupted: bool,
}

/// Searches, and prints the hits to stdout and the summary to stderr.
///
/// # Errors
/// If the directory or the index can't be used, or the hits can't be written to stdout.
pub async fn search(options: Options, progress: Progress) -> Result<Outcome, Trouble> {
    let interrupt = interrupt::watch(progress.clone());
    let Options {
        dir,
        query,
        index,
        wait,
    } = options;
    let (typed, file) = (dir.clone(), index.clone());
    let root = greenroom::unblock(move || prepare(&typed, &file)).await?;

    let pinned = Runtime::current().spawn_pinned("sqlite")?;
    let own = own_files(&root, &index);
    let place = Place {
        file: index,
        root: root.as_os_str().as_bytes().to_vec(),
        wait,
    };
    let store = spawn!(
        store(_, place, progress.clone()),
        on = &pinned,
        name = "store",
        capacity = STORE_CAPACITY,
    );
    let run = Run {
        store: store.address(),
        interrupt,
        progress,
    };
    let outcome = run.both(root, own, &dir, query).await;
    store.stop();
    drop(run);
    store.join().await??;
    outcome
}

/// The parts of one search.
struct Run {
    store: Address<Order>,
    interrupt: Interrupt,
    progress: Progress,
}

impl Run {
    /// Indexes, then searches, then prints the summary.
    async fn both(
        &self,
        root: PathBuf,
        own: Vec<Vec<u8>>,
        dir: &Path,
        query: Query,
    ) -> Result<Outcome, Trouble> {
        let (walk, written) = self.index(root, own).await?;
        self.progress.clear();
        let found = match self.is_interrupted() {
            true => None,
            false => self.find(dir, query).await?,
        };
        self.tell(&walk, written, found);
        Ok(Outcome {
            hits: found.unwrap_or(0),
            is_interrupted: found.is_none(),
        })
    }

    /// Brings the index up to date, or as far as possible before Ctrl-C.
    async fn index(&self, root: PathBuf, own: Vec<Vec<u8>>) -> Result<(Walk, Written), Trouble> {
        let known = self.store.ask(Order::Known).await?;
        let count = thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8));
        let mut readers = Vec::new();
        for _ in 0..count {
            readers.push(spawn!(
                reader(_, root.clone(), self.store.clone(), self.progress.clone()),
                name = "reader",
                capacity = READER_CAPACITY,
            ));
        }
        let addresses = readers.iter().map(|reader| reader.address()).collect();
        let route = Route {
            root,
            own,
            known,
            readers: addresses,
        };
        let walker = spawn!(walker(_, route, self.progress.clone()), name = "walker");
        // A join drops the handle's address, and without any address the walker would be closed.
        let address = walker.address();
        let mut walk = match select(pin!(walker.join()), self.interrupt.clone()).await {
            Either::Left((walk, _)) => walk,
            Either::Right(((), walk)) => {
                address.stop();
                self.progress
                    .say("stopping in order; Ctrl-C again quits at once");
                walk.await
            }
        }?;
        for reader in readers {
            walk.report.merge(reader.join().await?);
        }
        if !walk.gone.is_empty() {
            let gone = std::mem::take(&mut walk.gone);
            self.store
                .send(Order::Forget(gone))
                .await
                .map_err(|_| "the store has ended")?;
        }
        let written = self.store.ask(Order::Commit).await?;
        Ok((walk, written))
    }

    /// Prints the hits for the query and returns their number, or `None` if Ctrl-C was pressed
    /// first.
    async fn find(&self, dir: &Path, query: Query) -> Result<Option<u64>, Trouble> {
        let printer = spawn!(printer(_), name = "printer", capacity = PRINTER_CAPACITY);
        let search = Search {
            query,
            prefix: prefix(dir),
            printer: printer.address(),
        };
        let asked = self.store.ask(|reply| Order::Find(search, reply));
        // Dropping the ask ends the search.
        let hits = match select(pin!(asked), self.interrupt.clone()).await {
            Either::Left((hits, _)) => Some(hits?),
            Either::Right(_) => None,
        };
        match printer.join().await? {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(format!("stdout: {error}").into())
            }
            _ => Ok(hits),
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.clone().now_or_never().is_some()
    }

    /// Prints the summary of the run.
    fn tell(&self, walk: &Walk, written: Written, found: Option<u64>) {
        let Walk {
            unchanged,
            unseen,
            report,
            ..
        } = walk;
        let Written {
            texts,
            rows,
            forgotten,
        } = written;
        let say = |line: String| self.progress.say(&line);
        say(format!(
            "text files: {} ({texts} read, {unchanged} unchanged), {rows} rows written, \
             {forgotten} files forgotten",
            texts + unchanged + unseen,
        ));
        if *unseen > 0 {
            say(format!(
                "{unseen} of them are unchanged in the index; their directories are now unreadable"
            ));
        }
        for line in report.to_string().lines() {
            say(line.to_owned());
        }
        match found {
            Some(hits) => say(format!("lines found: {hits}")),
            None if walk.is_complete => say("stopped by Ctrl-C".to_owned()),
            None => say("stopped by Ctrl-C; the next run continues from here".to_owned()),
        }
    }
}

/// Checks the directory, creates the directory for the index, and returns the real path to search.
fn prepare(dir: &Path, index: &Path) -> Result<PathBuf, Trouble> {
    let named = |error: io::Error| format!("{}: {error}", dir.display());
    let root = fs::canonicalize(dir).map_err(named)?;
    fs::read_dir(&root).map_err(named)?;
    let refused = |error: io::Error| format!("the index {}: {error}", index.display());
    if let Some(parent) = index.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(refused)?;
    }
    // The content of files may be private to their owner, and so is an index of them.
    match fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(index)
    {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(refused(error).into()),
        _ => Ok(root),
    }
}

/// Returns the files of the index that are below the root, relative to it.
fn own_files(root: &Path, index: &Path) -> Vec<Vec<u8>> {
    let index = fs::canonicalize(index).unwrap_or_else(|_| index.to_owned());
    let Ok(relative) = index.strip_prefix(root) else {
        return Vec::new();
    };
    let name = relative.as_os_str().as_bytes();
    let with = |suffix: &str| [name, suffix.as_bytes()].concat();
    ["", "-wal", "-shm", "-journal"].map(with).to_vec()
}

/// Returns the prefix of every hit: the directory as it was typed, and a slash.
fn prefix(dir: &Path) -> Vec<u8> {
    let mut prefix = dir.as_os_str().as_bytes().to_vec();
    if prefix.last() != Some(&b'/') {
        prefix.push(b'/');
    }
    prefix
}
