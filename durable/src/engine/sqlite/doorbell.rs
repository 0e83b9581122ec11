//! What wakes the thread of an engine: a command, its time, or a change by another process.

use std::io;
use std::path::Path;
use std::time::Duration;

pub(crate) use system::Doorbell;

/// What the system has noticed about a file, since it was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Notice {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "without notices, each look is for a commit")
    )]
    Nothing,
    /// A process writes into the WAL. What is written is committed later, or never.
    Written,
    /// A process has committed.
    Committed,
}

#[cfg(target_os = "linux")]
mod system {
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::fs::{AtFlags, CWD, Timestamps, UTIME_NOW, utimensat};

    use super::{Duration, Notice, Path, io};

    /// Returns the path of a file beside this one, as SQLite names it.
    fn beside(path: &Path, ending: &str) -> PathBuf {
        let mut name = path.to_owned().into_os_string();
        name.push(ending);
        name.into()
    }

    /// An event file for the commands, and the notices of the system about two files.
    ///
    /// The WAL shows that a process writes, before it has committed. So a process that has committed sets
    /// the time of the file of the shared memory, which is never synced.
    #[derive(Debug)]
    pub(crate) struct Doorbell {
        bell: OwnedFd,
        notices: OwnedFd,
        wal: PathBuf,
        shared: PathBuf,
    }

    impl Doorbell {
        pub(crate) fn new(path: &Path) -> io::Result<Self> {
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Doorbell {
                bell,
                notices: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
                wal: beside(path, "-wal"),
                shared: beside(path, "-shm"),
            })
        }

        /// Begins to watch the file for commits. SQLite keeps those beside it while it is open.
        pub(crate) fn watch(&self) -> io::Result<()> {
            inotify::add_watch(&self.notices, &self.shared, WatchFlags::ATTRIB)?;
            Ok(())
        }

        /// Begins to watch the WAL for writes, or ends that. While the thread itself writes, a notice of
        /// each page would cost a tenth of its time.
        pub(crate) fn watch_writes(&self, is_watched: bool) {
            let flags = match is_watched {
                true => WatchFlags::MODIFY,
                // A watch looks for something. This never comes.
                false => WatchFlags::DELETE_SELF,
            };
            // Without it, a change is noticed if its process announces it.
            let _ = inotify::add_watch(&self.notices, &self.wal, flags);
        }

        /// Wakes the thread, now or when it waits next.
        pub(crate) fn ring(&self) {
            // It fails only if it was rung already, very often.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }

        /// Tells those who watch the file that something was committed.
        pub(crate) fn announce(&self) {
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_NOW,
            };
            let times = Timestamps {
                last_access: now,
                last_modification: now,
            };
            // If it fails, they notice what was written.
            let _ = utimensat(CWD, &self.shared, &times, AtFlags::empty());
        }

        /// Waits for a ring or a notice, without a limit for `None`.
        pub(crate) fn wait(&self, limit: Option<Duration>) {
            let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
            let mut files = [
                PollFd::new(&self.bell, PollFlags::IN),
                PollFd::new(&self.notices, PollFlags::IN),
            ];
            // An interrupted wait ends early, which is harmless.
            let _ = poll(&mut files, limit.as_ref());
            if !files[0].revents().is_empty() {
                let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
            }
        }

        /// Returns what was noticed since the last call.
        pub(crate) fn notice(&self) -> Notice {
            let mut buffer = [MaybeUninit::uninit(); 1024];
            let mut reader = inotify::Reader::new(&self.notices, &mut buffer);
            let mut noticed = Notice::Nothing;
            while let Ok(event) = reader.next() {
                noticed = noticed.max(match event.events() {
                    written if written.contains(ReadFlags::MODIFY) => Notice::Written,
                    // Also if the queue of the system was too short.
                    _ => Notice::Committed,
                });
            }
            noticed
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::{Condvar, Mutex, PoisonError};

    use super::{Duration, Notice, Path, io};
    use crate::engine::lock;

    /// A flag for the commands. A change by another process is looked for each 100 ms.
    #[derive(Debug, Default)]
    pub(crate) struct Doorbell {
        is_rung: Mutex<bool>,
        changed: Condvar,
    }

    const LOOK: Duration = Duration::from_millis(100);

    impl Doorbell {
        pub(crate) fn new(_: &Path) -> io::Result<Self> {
            Ok(Doorbell::default())
        }

        pub(crate) fn watch(&self) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn watch_writes(&self, _: bool) {}

        pub(crate) fn ring(&self) {
            *lock(&self.is_rung) = true;
            self.changed.notify_one();
        }

        pub(crate) fn announce(&self) {}

        pub(crate) fn wait(&self, limit: Option<Duration>) {
            let limit = limit.unwrap_or(LOOK).min(LOOK);
            let is_rung = lock(&self.is_rung);
            let waited = self
                .changed
                .wait_timeout_while(is_rung, limit, |is_rung| !*is_rung);
            let (mut is_rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
            *is_rung = false;
        }

        pub(crate) fn notice(&self) -> Notice {
            Notice::Committed
        }
    }
}
