//! The clients of the cases with pools of actors.
//!
//! Each client has a handle of the pool.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use crate::executors::Executor;
use crate::figures::{self, Figure, check, nanoseconds};
use crate::sizes::{BURST, BURSTS, CLIENTS, POOL_REQUESTS};

/// A handle of a pool.
pub trait Pool: Clone + Send + Sync + 'static {
    /// Sends a number, and returns it, or `None` if the request was refused.
    fn ask(&self, n: u64) -> impl Future<Output = Option<u64>> + Send;
}

/// Has many clients send requests, one after another each, and returns the time of a request.
pub async fn clients<E: Executor>(what: &'static str, pool: impl Pool) -> Figure {
    let begin = Instant::now();
    let clients = (0..CLIENTS).map(|client| {
        let pool = pool.clone();
        E::spawn(async move {
            for n in 0..POOL_REQUESTS {
                let n = client + n;
                check("pool", pool.ask(n).await.expect("no request is refused"), n);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await;
    }
    nanoseconds(what, CLIENTS * POOL_REQUESTS, begin)
}

/// The requests of a part of a burst.
const PART: u64 = 25;
/// From how many refusals on the workers answer: nine tenths of a burst are refused, or nearly so,
/// since a factory may not know yet that a worker has done its last job.
const REFUSED: u64 = BURST * 88 / 100;

/// Sends bursts of requests that are too large for the queue, and returns the time of a request.
/// `workers` has a permit for each request that the workers may answer now.
pub async fn bursts(workers: &Semaphore, pool: impl Pool) -> Vec<Figure> {
    let begin = Instant::now();
    for _ in 0..BURSTS {
        let refused = AtomicU64::new(0);
        let request = async |n| {
            if let Some(answer) = pool.ask(n).await {
                return check("pool", answer, n);
            }
            if refused.fetch_add(1, Ordering::Relaxed) + 1 == REFUSED {
                workers.add_permits(BURST as usize);
            }
        };
        // In parts, since a `join_all` of more than 30 futures allocates for each.
        let parts = (0..BURST).step_by(PART as usize);
        join_all(parts.map(|from| join_all((from..from + PART).map(&request)))).await;
        workers.forget_permits(BURST as usize);
        assert!(refused.into_inner() >= REFUSED, "too few are refused");
    }
    vec![nanoseconds(figures::REFUSAL, BURSTS * BURST, begin)]
}

/// Does the work of one job, and returns its number.
pub fn job(n: u64, work: Duration) -> u64 {
    if !work.is_zero() {
        figures::work(work);
    }
    n
}
