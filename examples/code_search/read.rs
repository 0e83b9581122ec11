//! Reading: an actor that opens files, decides whether they are text, and splits them into lines.
//!
//! Only regular files are ever read, and at most 16 MiB and one byte of each. A path that has
//! become a link, a pipe or a device since the walk is skipped. To that end the file is opened
//! without following a link and without waiting, and checked again once it is open.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use greenroom::{Address, Context};

use crate::entry::{Content, Entry};
use crate::lines::Lines;
use crate::progress::Progress;
use crate::report::{Reason, Report};
use crate::stamp::Stamp;
use crate::store::Order;

/// The largest file that is searched, in bytes.
pub const SIZE_MAX: u64 = 16 * 1024 * 1024;

/// A file that is new or has changed.
#[derive(Debug)]
pub struct Candidate {
    /// The path relative to the root.
    pub path: Vec<u8>,
    /// The number of the file in the index, if an older state of it is there.
    pub known: Option<i64>,
}

/// The result of reading one file.
enum Reading {
    /// The file belongs in the index.
    Entry(Stamp, Content),
    /// The file does not belong in the index.
    LeftOut(Reason),
}

/// Runs the actor: reads the candidates one at a time and sends them to the store.
pub async fn reader(
    mut cx: Context<Candidate>,
    root: PathBuf,
    store: Address<Order>,
    progress: Progress,
) -> Report {
    let mut report = Report::default();
    while let Some(Candidate { path, known }) = cx.recv().await {
        let file = root.join(OsStr::from_bytes(&path));
        let reading = greenroom::unblock(move || read(&file)).await;
        match &reading {
            Ok(Reading::Entry(_, content)) => {
                if let Some(reason) = content.kind().left_out() {
                    report.left_out(reason, &path);
                }
            }
            Ok(Reading::LeftOut(reason)) => report.left_out(*reason, &path),
            Err(error) => report.failed(&path, error),
        }
        let order = match reading {
            Ok(Reading::Entry(stamp, content)) => Some(Order::Put(Entry {
                path,
                stamp,
                content,
            })),
            Ok(Reading::LeftOut(_)) | Err(_) => known.map(|id| Order::Forget(vec![id])),
        };
        if let Some(order) = order
            && store.send(order).await.is_err()
        {
            break; // The store has failed; its join returns the error.
        }
        progress.done(1);
    }
    report
}

/// Reads one file and classifies it.
fn read(path: &Path) -> io::Result<Reading> {
    let file = match open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Ok(Reading::LeftOut(Reason::Symlink));
        }
        // Opening a socket, or a device without a driver, fails like this.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
            return Ok(Reading::LeftOut(Reason::Special));
        }
        opened => opened?,
    };
    let read_at = SystemTime::now();
    let before = file.metadata()?;
    if !before.is_file() {
        return Ok(Reading::LeftOut(Reason::Special));
    }
    if before.len() > SIZE_MAX {
        return Ok(Reading::LeftOut(Reason::TooLarge));
    }
    let mut bytes = Vec::with_capacity(before.len() as usize + 1);
    (&file).take(SIZE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SIZE_MAX {
        return Ok(Reading::LeftOut(Reason::TooLarge));
    }
    let stamp = Stamp::of(&before);
    let is_settled = stamp.is_settled(read_at) && stamp == Stamp::of(&file.metadata()?);
    Ok(Reading::Entry(
        if is_settled { stamp } else { Stamp::NEVER },
        classify(bytes),
    ))
}

/// Opens a file, without following a link and without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Decides whether `bytes` are text, and splits them if so.
fn classify(bytes: Vec<u8>) -> Content {
    if bytes.contains(&0) {
        return Content::Nul;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Content::Text(Lines::split(text)),
        Err(_) => Content::NotUtf8,
    }
}
