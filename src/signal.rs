//! Ctrl-C as a future.

/// Waits for the next Ctrl-C (SIGINT) that arrives after the first poll.
///
/// From the first poll of the first call on, SIGINT no longer ends the process. Each signal
/// completes every call that waits. A signal is discarded if no call waits. That first poll also
/// starts a thread, which waits for signals as long as the process lives. A child of `fork` starts
/// its own.
///
/// This also applies to a process that was started with SIGINT ignored, as shells without job
/// control start background jobs. The process ignores the signal until the first poll, and catches
/// it from then on. A program that should keep ignoring SIGINT must check the signal's disposition
/// before it calls this function.
///
/// # Errors
/// - The error of the operating system, if the handler cannot be installed or the thread cannot be
///   started.
/// - An error that names the `fork`, if the future was first polled before a `fork` and is polled
///   in the child.
/// - [`Unsupported`](std::io::ErrorKind::Unsupported) on systems without Unix signals.
///
/// # Cancel safety
/// Dropping the future has no effect on other calls. A signal that arrives before the next call is
/// first polled is discarded.
///
/// ```no_run
/// greenroom::run(async {
///     greenroom::ctrl_c().await.unwrap();
///     println!("stopping");
/// });
/// ```
#[cfg(unix)]
pub async fn ctrl_c() -> std::io::Result<()> {
    use crate::sync::Process;
    use unix::Interrupts;

    let interrupts = Interrupts::of_process()?;
    let (seen, process) = (interrupts.count(), Process::current());
    let is_over = || interrupts.count() != seen || !process.is_current();
    interrupts.raised.until(is_over).await;
    match process.is_current() {
        true => Ok(()),
        false => Err(std::io::Error::other("the process was forked meanwhile")),
    }
}

/// Returns an error, since this system has no Unix signals.
///
/// # Errors
/// Always [`Unsupported`](std::io::ErrorKind::Unsupported).
///
/// # Cancel safety
/// Cancel safe: the future completes in its first poll.
#[cfg(not(unix))]
pub async fn ctrl_c() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
mod unix {
    use std::sync::Arc;

    use signal_hook::consts::SIGINT;
    use signal_hook::iterator::Signals;

    use crate::sync::global::{AtomicU64, Ordering};
    use crate::sync::{Mutex, PerProcess};
    use crate::waiters::Waiters;

    /// The SIGINTs that the process has received since the first call was polled.
    pub(super) struct Interrupts {
        count: AtomicU64,
        pub(super) raised: Waiters,
    }

    impl Interrupts {
        pub(super) fn of_process() -> std::io::Result<Arc<Interrupts>> {
            static PROCESS: PerProcess<Mutex<Option<Arc<Interrupts>>>> = PerProcess::new();
            let mut process = PROCESS.get_or_init(|| Mutex::new(None)).lock();
            if let Some(interrupts) = &*process {
                return Ok(interrupts.clone());
            }
            let mut signals = Signals::new([SIGINT])?;
            let interrupts = Arc::new(Interrupts {
                count: AtomicU64::new(0),
                raised: Waiters::new(),
            });
            let own = interrupts.clone();
            std::thread::Builder::new()
                .name("greenroom-signal".into())
                .spawn(move || {
                    for _ in signals.forever() {
                        // Release pairs with the Acquire in `count`.
                        own.count.fetch_add(1, Ordering::Release);
                        own.raised.wake_all();
                    }
                })?;
            *process = Some(interrupts.clone());
            Ok(interrupts)
        }

        pub(super) fn count(&self) -> u64 {
            // Acquire pairs with the Release of `fetch_add`.
            self.count.load(Ordering::Acquire)
        }
    }
}
