//! Signals that ask the process to end, as futures: Ctrl-C and SIGTERM.
//!
//! Each kind of signal is caught from the first poll of its first call on, and left alone before.

#[cfg(windows)]
mod windows;

use std::io;
use std::sync::Arc;

#[cfg(unix)]
use signal_hook::consts::{SIGINT, SIGTERM};
#[cfg(unix)]
use signal_hook::iterator::Signals;

use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Mutex, PerProcess, Process};
use crate::waiters::Waiters;

/// Waits for the next Ctrl-C (SIGINT) that arrives after the first poll.
///
/// From the first poll of the first call on, SIGINT no longer ends the process. Each signal
/// completes every call that waits. A signal is discarded if no call waits. On Unix, that first
/// poll also starts a thread, which waits for signals as long as the process lives. A child of
/// `fork` starts its own.
///
/// This also applies to a process that was started with SIGINT ignored, as shells without job
/// control start background jobs. The process ignores the signal until the first poll, and catches
/// it from then on. A program that should keep ignoring SIGINT must check the signal's disposition
/// before it calls this function.
///
/// The code for Windows has no tests yet.
///
/// # Errors
/// - The error of the operating system, if the handler cannot be installed or the thread cannot be
///   started.
/// - An error that names the `fork`, if the future was first polled before a `fork` and is polled
///   in the child.
/// - [`Unsupported`](std::io::ErrorKind::Unsupported) on other systems than Unix and Windows.
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
///
/// The first Ctrl-C may stop an actor, and the second one kill it:
///
/// ```no_run
/// use greenroom::{Context, ctrl_c, spawn};
///
/// async fn crawl(mut cx: Context<String>) {
///     while let Some(page) = cx.recv().await {
///         println!("fetches {page}");
///     }
/// }
///
/// greenroom::run(async {
///     let crawl = spawn!(crawl(_));
///     ctrl_c().await.unwrap();
///     crawl.stop();
///     let crawler = crawl.address();
///     let kill = async move {
///         ctrl_c().await.unwrap();
///         crawler.kill();
///     };
///     greenroom::spawn(kill).detach();
///     println!("the crawler has ended: {:?}", crawl.join().await);
/// });
/// ```
pub async fn ctrl_c() -> io::Result<()> {
    next(Signal::Interrupt).await
}

/// Waits for the next SIGTERM that arrives after the first poll: the request of a service manager,
/// a container or `kill` to end. On Windows it waits for Ctrl-Break.
///
/// All that [`ctrl_c`] says about SIGINT holds here for SIGTERM. The two are independent: only the
/// signals that a program waits for are caught.
///
/// # Errors
/// As [`ctrl_c`].
///
/// # Cancel safety
/// As [`ctrl_c`].
///
/// ```no_run
/// use futures::future::{Either, select};
/// use std::pin::pin;
///
/// greenroom::run(async {
///     match select(pin!(greenroom::ctrl_c()), pin!(greenroom::terminate())).await {
///         Either::Left(_) => println!("stopping, by Ctrl-C"),
///         Either::Right(_) => println!("stopping, by SIGTERM"),
///     }
/// });
/// ```
pub async fn terminate() -> io::Result<()> {
    next(Signal::Terminate).await
}

async fn next(signal: Signal) -> io::Result<()> {
    let arrivals = Arrivals::of_process(signal)?;
    let (seen, process) = (arrivals.count(), Process::current());
    let is_over = || arrivals.count() != seen || !process.is_current();
    arrivals.raised.until(is_over).await;
    match process.is_current() {
        true => Ok(()),
        false => Err(io::Error::other("the process was forked meanwhile")),
    }
}

/// A kind of signal that asks the process to end.
#[derive(Clone, Copy)]
enum Signal {
    Interrupt,
    Terminate,
}

/// The signals of one kind that the process has received since the first call was polled.
struct Arrivals {
    count: AtomicU64,
    raised: Waiters,
}

impl Arrivals {
    fn of_process(signal: Signal) -> io::Result<Arc<Arrivals>> {
        type Made = PerProcess<Mutex<Option<Arc<Arrivals>>>>;
        static INTERRUPTS: Made = PerProcess::new();
        static TERMINATIONS: Made = PerProcess::new();
        let made = match signal {
            Signal::Interrupt => &INTERRUPTS,
            Signal::Terminate => &TERMINATIONS,
        };
        let mut made = made.get_or_init(|| Mutex::new(None)).lock();
        // The first call catches the signal. If that fails, the next call tries again.
        if let Some(arrivals) = &*made {
            return Ok(arrivals.clone());
        }
        let arrivals = Arc::new(Arrivals {
            count: AtomicU64::new(0),
            raised: Waiters::new(),
        });
        listen(signal, arrivals.clone())?;
        *made = Some(arrivals.clone());
        Ok(arrivals)
    }

    #[cfg_attr(
        not(any(unix, windows)),
        expect(dead_code, reason = "no signal arrives")
    )]
    fn add(&self) {
        // Release pairs with the Acquire in `count`.
        self.count.fetch_add(1, Ordering::Release);
        self.raised.wake_all();
    }

    fn count(&self) -> u64 {
        // Acquire pairs with the Release of `add`.
        self.count.load(Ordering::Acquire)
    }
}

/// Catches the signal from now on. Unix has one thread for each kind that is awaited.
#[cfg(unix)]
fn listen(signal: Signal, arrivals: Arc<Arrivals>) -> io::Result<()> {
    let mut signals = Signals::new([match signal {
        Signal::Interrupt => SIGINT,
        Signal::Terminate => SIGTERM,
    }])?;
    let thread = std::thread::Builder::new().name("greenroom-signal".into());
    thread
        .spawn(move || {
            crate::contain::count_thread();
            signals.forever().for_each(|_| arrivals.add());
        })
        .map(drop)
}

/// Catches the event of a console from now on.
#[cfg(windows)]
fn listen(signal: Signal, arrivals: Arc<Arrivals>) -> io::Result<()> {
    windows::listen(signal, arrivals)
}

/// Returns an error, since the system has no signals.
#[cfg(not(any(unix, windows)))]
fn listen(_signal: Signal, _arrivals: Arc<Arrivals>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
