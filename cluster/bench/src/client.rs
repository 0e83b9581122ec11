//! The client of a server: each figure is measured in a process of its own.
//!
//! It says one line: the numbers of the figure. They are `ask`: microseconds; `many`: asks a
//! second; `send`: messages a second, and how many were handled in order; `flood`: the peak of
//! resident memory in bytes, how many were sent, and how many handled. At `idle` and `killed` the line is empty, and a second one follows when the actor is lost.
//! `stopped` is a figure of greenroom alone.

use std::future::Future;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;

use crate::Outcome;
use crate::kinds::say;
use crate::process::peak;

/// The tasks that ask at the same time.
const ASKERS: u64 = 64;
/// The time for which a sender floods a slow actor, a millisecond for each message of 1 KiB.
const FLOOD: Duration = Duration::from_secs(3);
pub const SLOWNESS: Duration = Duration::from_millis(1);
/// If no further message was handled for this time, none is on its way. An ask of kameo that was
/// lost among messages fails after 10 s.
const QUIET: Duration = Duration::from_secs(12);

/// An actor of another process, which counts numbers.
pub trait Counter: Clone + Send + Sync + 'static {
    /// Whether a flooding sender waits for the actor, so that all of the flood is handled soon.
    const HAS_BACK_PRESSURE: bool = false;

    /// Sends a number.
    fn add(&self, number: u64) -> impl Future<Output = Outcome<()>> + Send;

    /// Sends bytes, for which the actor needs a [`SLOWNESS`]. May wait if the system demands it.
    fn load(&self, bytes: Vec<u8>) -> impl Future<Output = Outcome<()>> + Send;

    /// Asks how many numbers have come.
    fn count(&self) -> impl Future<Output = Outcome<u64>> + Send;

    /// Waits until the actor is lost.
    fn lost(&self) -> impl Future<Output = ()> + Send;

    /// Runs a task at the workers.
    fn spawn(task: impl Future<Output = ()> + Send + 'static);
}

/// Runs a task at the workers, and waits for it.
pub async fn at_workers<C: Counter, T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> T {
    let (task, outcome) = task.remote_handle();
    C::spawn(task);
    outcome.await
}

/// Measures a figure.
pub async fn measure<C: Counter>(counter: C, figure: &str, size: u64) -> Outcome<()> {
    match figure {
        "ask" => {
            ask(&counter, size / 5).await?;
            let times = ask(&counter, size).await?;
            let p50 = times[times.len() / 2];
            say(&p50.to_string())
        }
        "many" => {
            many(&counter, size).await?;
            let begun = Instant::now();
            many(&counter, 5 * size).await?;
            say(&(5.0 * size as f64 / begun.elapsed().as_secs_f64()).to_string())
        }
        "send" => {
            let (rate, handled) = send(&counter, 10 * size).await?;
            say(&format!("{rate} {handled}"))
        }
        "flood" => {
            let begun = Instant::now();
            let mut sent = 0;
            while begun.elapsed() < FLOOD {
                counter.load(vec![0; 1024]).await?;
                sent += 1;
            }
            let handled = match C::HAS_BACK_PRESSURE {
                true => handled(&counter, sent).await.0,
                false => 0,
            };
            say(&format!("{} {sent} {handled}", peak(std::process::id())?))
        }
        "idle" | "killed" => {
            counter.count().await?;
            say("")?;
            counter.lost().await;
            say("")
        }
        _ => Err(format!("there is no figure {figure:?}").into()),
    }
}

/// Asks so often, one after another. Returns the times in microseconds.
async fn ask(counter: &impl Counter, asks: u64) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..asks {
        let begun = Instant::now();
        counter.count().await?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Lets all askers ask, so often in all.
async fn many<C: Counter>(counter: &C, asks: u64) -> Outcome<()> {
    let askers = (0..ASKERS).map(|_| {
        let counter = counter.clone();
        at_workers::<C, _>(async move {
            for _ in 0..asks.div_ceil(ASKERS) {
                counter.count().await?;
            }
            Ok(())
        })
    });
    join_all(askers).await.into_iter().collect()
}

/// Sends so many numbers. Returns how many were handled in a second, and how many in all.
async fn send(counter: &impl Counter, numbers: u64) -> Outcome<(f64, u64)> {
    let begun = Instant::now();
    for number in 0..numbers {
        counter.add(number).await?;
    }
    let (handled, at) = handled(counter, numbers).await;
    Ok((handled as f64 / (at - begun).as_secs_f64(), handled))
}

/// Waits until so many messages were handled, or no further one is. Returns how many were, and when.
async fn handled(counter: &impl Counter, messages: u64) -> (u64, Instant) {
    let (mut handled, mut at) = (0, Instant::now());
    // An ask may overtake messages, or fail, and messages may be lost.
    while handled < messages && at.elapsed() < QUIET {
        let count = counter.count().await.unwrap_or(handled);
        if count > handled {
            (handled, at) = (count, Instant::now());
        }
    }
    (handled, at)
}
