//! Markets: which jobs are accepted, which one goes next, how workers come and go, and how all ends.

mod accepting;
mod choosing;
mod ends;
mod model;
mod moments;
mod users;
mod workers;

use greenroom::Runtime;
use greenroom::market::{self, Job, JobError, JobHandle, Market, OfferError, TryOfferError};

use crate::support::scenarios::{everywhere, on_threads, simulated};
use crate::support::{Gate, Log, WATCH, poll_once, within};

/// Builds a market with so many workers.
fn market(workers: usize) -> Market<u32> {
    Market::builder().max_workers(workers).build().unwrap()
}

/// Offers a job, for which there must be room, that waits at a gate. Returns when it has begun.
async fn blocked(market: &Market<u32>, job: Option<u32>) -> (Gate, JobHandle<()>) {
    let (begun, gate) = (Gate::default(), Gate::default());
    let (tells, waits) = (begun.clone(), gate.clone());
    let work = Job::new(move || {
        tells.open();
        // In a simulation other steps go on meanwhile.
        Runtime::current().block_on(waits.wait());
    });
    let work = match job {
        Some(key) => work.key(key),
        None => work,
    };
    let handle = market.try_offer(work).unwrap();
    begun.wait().await;
    (gate, handle)
}
