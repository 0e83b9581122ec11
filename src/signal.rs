//! Ctrl-C as a future.

/// Waits for the next Ctrl-C (SIGINT) after the first poll.
///
/// From the first call on, SIGINT no longer ends the process by itself: every waiting call is
/// completed by it, and one that comes while nobody waits is dropped. One thread of the process
/// waits for the signal, and is started by the first call; a child of a `fork` has its own.
///
/// That is so too in a process that was started to ignore SIGINT, as a shell without job control starts its
/// background jobs. It ignores the signal until the first call, and has it caught from then on. So a program
/// that should go on ignoring it looks at the signal's disposition first, and does not call this.
///
/// # Errors
/// What the system said when the handler could not be installed or the thread not be started; one that says
/// so if it is polled in a child of a `fork`, and was begun before that;
/// [`Unsupported`](std::io::ErrorKind::Unsupported) where there are no Unix signals.
///
/// # Cancel safety
/// Nothing is lost.
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

/// Waits for the next Ctrl-C; not to be had on this system.
///
/// # Errors
/// [`Unsupported`](std::io::ErrorKind::Unsupported), always.
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

    /// The SIGINTs that the process got since the first call.
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
            // Acquire pairs with the Release above.
            self.count.load(Ordering::Acquire)
        }
    }
}
