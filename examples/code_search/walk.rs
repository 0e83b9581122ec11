//! The walk: an actor that lists the directories and selects the files that have changed.
//!
//! No symbolic link is followed, no directory is listed twice. A file in the index counts as gone
//! only if the walk was complete and could list the place where the file was.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use greenroom::{Address, Context};

use crate::entry::{Kind, Known};
use crate::progress::Progress;
use crate::read::{Candidate, SIZE_MAX};
use crate::report::{Reason, Report};
use crate::stamp::Stamp;

/// The input of a walk.
pub struct Route {
    /// The directory to walk; absolute, and not a link.
    pub root: PathBuf,
    /// The files of the index itself, relative to the root, if they are below it.
    pub own: Vec<Vec<u8>>,
    /// The files that the index holds, by path.
    pub known: HashMap<Vec<u8>, Known>,
    /// The actors that read the files that have changed.
    pub readers: Vec<Address<Candidate>>,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Walk {
    /// Whether the walk saw the whole tree.
    pub is_complete: bool,
    /// The number of text files whose current state is in the index.
    pub unchanged: u64,
    /// The number of text files that stay in the index because the walk could not list their
    /// places.
    pub unseen: u64,
    /// Files in the index that the tree no longer has; empty if the walk is not complete.
    pub gone: Vec<i64>,
    /// The files that were left out or could not be listed.
    pub report: Report,
}

/// The kind of one entry of a directory.
enum Found {
    Directory,
    File(Stamp),
    LeftOut(Reason),
}

/// The entries of one directory by path, and the error that ended the list early.
type Listing = (Vec<(Vec<u8>, io::Result<Found>)>, Option<io::Error>);

/// Runs the walk. The actor takes no messages: closing its mailbox ends the walk.
pub async fn walker(mut cx: Context<Infallible>, route: Route, progress: Progress) -> Walk {
    let root = Arc::new(route.root);
    let own = Arc::new(route.own);
    let mut walker = Walker {
        known: route.known,
        readers: route.readers,
        turn: 0,
        waiting: vec![Vec::new()],
        hidden: Vec::new(),
        progress,
        walk: Walk::default(),
    };
    while let Some(directory) = walker.waiting.pop() {
        let (root, own, path) = (Arc::clone(&root), Arc::clone(&own), directory.clone());
        let (entries, error) = greenroom::unblock(move || list(&root, &own, &path)).await;
        if let Some(error) = error {
            walker.failed(directory, &error);
        }
        for (path, found) in entries {
            if is_stopped(&mut cx) || walker.take(path, found).await.is_err() {
                return walker.walk;
            }
        }
    }
    walker.finish()
}

/// Returns whether the walk was stopped.
fn is_stopped(cx: &mut Context<Infallible>) -> bool {
    matches!(cx.recv().now_or_never(), Some(None))
}

/// The error of a walk whose readers have ended before it.
struct NobodyReads;

/// A walk in progress.
struct Walker {
    /// Files in the index that the walk has not seen yet.
    known: HashMap<Vec<u8>, Known>,
    readers: Vec<Address<Candidate>>,
    /// The index of the reader that gets the next file.
    turn: usize,
    /// Directories that are still to be listed.
    waiting: Vec<Vec<u8>>,
    /// Places that the walk could not list.
    hidden: Vec<Vec<u8>>,
    progress: Progress,
    walk: Walk,
}

impl Walker {
    /// Handles one entry.
    async fn take(&mut self, path: Vec<u8>, found: io::Result<Found>) -> Result<(), NobodyReads> {
        match found {
            Ok(Found::Directory) => self.waiting.push(path),
            Ok(Found::LeftOut(reason)) => self.walk.report.left_out(reason, &path),
            Ok(Found::File(stamp)) => return self.file(path, stamp).await,
            Err(error) => self.failed(path, &error),
        }
        Ok(())
    }

    /// Handles one regular file: either it is unchanged, or it is sent to a reader.
    async fn file(&mut self, path: Vec<u8>, stamp: Stamp) -> Result<(), NobodyReads> {
        self.progress.found(1);
        let known = self.known.remove(&path);
        if let Some(known) = &known
            && known.stamp == stamp
        {
            match known.kind.left_out() {
                Some(reason) => self.walk.report.left_out(reason, &path),
                None => self.walk.unchanged += 1,
            }
            self.progress.done(1);
            return Ok(());
        }
        self.give(Candidate {
            path,
            known: known.map(|known| known.id),
        })
        .await
    }

    /// Sends a file to the first reader in turn that has room, or waits for room.
    async fn give(&mut self, mut candidate: Candidate) -> Result<(), NobodyReads> {
        for _ in 0..self.readers.len() {
            self.turn = (self.turn + 1) % self.readers.len();
            candidate = match self.readers[self.turn].tell(candidate) {
                Ok(()) => return Ok(()),
                Err(full) if full.is_full() => full.into_inner(),
                Err(_closed) => return Err(NobodyReads),
            };
        }
        self.turn = (self.turn + 1) % self.readers.len();
        self.readers[self.turn]
            .send(candidate)
            .await
            .map_err(|_| NobodyReads)
    }

    /// Records a place that could not be listed. A place that has vanished meanwhile is simply
    /// gone.
    fn failed(&mut self, path: Vec<u8>, error: &io::Error) {
        self.walk.report.failed(&path, error);
        if Reason::of(error) != Reason::Gone {
            self.hidden.push(path);
        }
    }

    /// Completes a walk that saw the whole tree.
    fn finish(mut self) -> Walk {
        for (path, known) in mem::take(&mut self.known) {
            if !self
                .hidden
                .iter()
                .any(|hidden| is_at_or_below(&path, hidden))
            {
                self.walk.gone.push(known.id);
            } else if known.kind == Kind::Text {
                self.walk.unseen += 1;
            }
        }
        self.walk.is_complete = true;
        self.walk
    }
}

fn is_at_or_below(path: &[u8], place: &[u8]) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => place.is_empty() || rest.is_empty() || rest[0] == b'/',
        None => false,
    }
}

/// Lists one directory.
fn list(root: &Path, own: &[Vec<u8>], directory: &[u8]) -> Listing {
    let mut entries = Vec::new();
    let listed = fs::read_dir(root.join(OsStr::from_bytes(directory)));
    let error = listed.and_then(|listed| {
        for entry in listed {
            let entry = entry?;
            let mut path = directory.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.file_name().as_bytes());
            let found = look(&entry, own.contains(&path));
            entries.push((path, found));
        }
        Ok(())
    });
    (entries, error.err())
}

/// Returns the kind of one entry, without opening it.
fn look(entry: &fs::DirEntry, is_own: bool) -> io::Result<Found> {
    let metadata = entry.metadata()?; // Of a link itself, not of its target.
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        Found::Directory
    } else if kind.is_symlink() {
        Found::LeftOut(Reason::Symlink)
    } else if !kind.is_file() {
        Found::LeftOut(Reason::Special)
    } else if is_own {
        Found::LeftOut(Reason::Index)
    } else if metadata.len() > SIZE_MAX {
        Found::LeftOut(Reason::TooLarge)
    } else {
        Found::File(Stamp::of(&metadata))
    })
}
