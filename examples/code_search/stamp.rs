//! A file's stamp: what tells whether it may have changed since it was read.
//!
//! If the stamp that was stored with a file's content equals the file's stamp of today, then the
//! content is today's. Where that cannot be promised, `Stamp::NEVER` is stored, which equals none.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The coarsest step in which a kernel's clock for file times advances (a tick at 100 Hz). A file
/// changed twice within one step bears the same time twice.
const TICK: Duration = Duration::from_millis(10);

/// How far ahead of this machine's clock a file system's clock may run.
const SKEW: Duration = Duration::from_secs(2);

/// Size, times and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: i64,
    /// When the content changed, in nanoseconds since 1970.
    pub mtime: i64,
    /// When content or inode changed, in nanoseconds since 1970.
    pub ctime: i64,
    /// Which file it is.
    pub inode: i64,
}

impl Stamp {
    /// The stamp of no file: what is stored with it is read again.
    pub const NEVER: Stamp = Stamp {
        size: -1,
        mtime: 0,
        ctime: 0,
        inode: 0,
    };

    /// The stamp in a file's metadata.
    pub fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            size: i64::try_from(metadata.size()).unwrap_or(i64::MAX),
            mtime: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino().cast_signed(),
        }
    }

    /// Whether a change made after `read_at` would show: not if the file's time is so close to
    /// that moment that the change could bear the same.
    pub fn is_settled(&self, read_at: SystemTime) -> bool {
        let since = read_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let from = i64::try_from((since.saturating_sub(TICK)).as_nanos()).unwrap_or(i64::MAX);
        let to = i64::try_from((since + SKEW).as_nanos()).unwrap_or(i64::MAX);
        !(from..=to).contains(&self.mtime)
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
