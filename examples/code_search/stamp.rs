//! The stamp of a file: tells whether the file may have changed since it was read.
//!
//! If the stored stamp equals the current stamp of the file, then the stored content is current.
//! Where that cannot be guaranteed, `Stamp::NEVER` is stored, which equals no stamp.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The coarsest step of a kernel's clock for file times: a tick at 100 Hz. Two changes within one
/// step have the same time.
const TICK: Duration = Duration::from_millis(10);

/// The maximum lead of a file system's clock over the clock of this machine.
const SKEW: Duration = Duration::from_secs(2);

/// Size, times and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The size in bytes.
    pub size: i64,
    /// The time of the last change of the content, in nanoseconds since 1970.
    pub mtime: i64,
    /// The time of the last change of the content or the inode, in nanoseconds since 1970.
    pub ctime: i64,
    /// The number of the inode.
    pub inode: i64,
}

impl Stamp {
    /// The stamp of no file: a file that is stored with it is read again.
    pub const NEVER: Stamp = Stamp {
        size: -1,
        mtime: 0,
        ctime: 0,
        inode: 0,
    };

    /// Returns the stamp in a file's metadata.
    pub fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            size: i64::try_from(metadata.size()).unwrap_or(i64::MAX),
            mtime: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino().cast_signed(),
        }
    }

    /// Returns whether a change made after `read_at` would alter the stamp. It would not if the
    /// file's time is so close to `read_at` that the change could have the same time.
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
