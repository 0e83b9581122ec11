//! A market of jobs that block, panic and are cancelled, with a board that is often full.

use std::time::Duration;

use fastrand::Rng;
use greenroom::market::{Job, JobError, JobHandle, Market};

use crate::book::{AskOutcome, Book};
use crate::life;

pub static MARKET: Book = Book::new("market");

const WORKERS: usize = 4;
const ROOM: usize = 64;
const KEYS: u64 = 8;

/// Bursts of a task, and the jobs at once in each.
const BURSTS: usize = 60;
const MOST: usize = 64;

/// One job of so many panics, and another one is cancelled.
const BOMB: u32 = 500;
const CANCELLED: u32 = 10;

#[derive(Clone)]
pub struct JobBoard(Market<u64>);

impl JobBoard {
    pub fn new() -> Self {
        let market = Market::builder().max_workers(WORKERS).capacity(ROOM);
        let market = market.idle(super::IDLE).build();
        JobBoard(market.expect("a runtime"))
    }

    /// Returns how many workers had no thread.
    pub fn failed_starts(&self) -> u64 {
        self.0.status().failed_starts
    }

    pub async fn load(self, mut rng: Rng) {
        for _ in 0..BURSTS {
            let mut jobs = Vec::new();
            for _ in 0..rng.usize(1..=MOST) {
                jobs.extend(self.offer(&mut rng).await);
            }
            for job in jobs {
                if rng.u32(..CANCELLED) == 0 {
                    job.cancel();
                }
                MARKET.told(match job.await {
                    Ok(()) => AskOutcome::Answered,
                    Err(JobError::Panicked(_)) => AskOutcome::NoReply,
                    Err(_) => AskOutcome::Refused,
                });
            }
        }
    }

    /// Offers a job, half of them only if there is room.
    async fn offer(&self, rng: &mut Rng) -> Option<JobHandle<()>> {
        let mut letter = MARKET.question();
        let (is_bomb, key) = (rng.u32(..BOMB) == 0, rng.u64(..KEYS));
        let blocks = rng.u32(..200) == 0;
        let job = Job::new(move || {
            letter.take();
            if is_bomb {
                MARKET.fault(1);
                life::inject_panic();
            }
            if blocks {
                std::thread::sleep(Duration::from_micros(200));
            }
            letter.handled();
        });
        let job = job.key(key).priority(rng.u32(..3));
        let offered = match rng.bool() {
            true => self.0.try_offer(job).map_err(drop),
            false => self.0.offer(job).await.map_err(drop),
        };
        if offered.is_err() {
            MARKET.told(AskOutcome::Refused);
        }
        offered.ok()
    }

    pub async fn end(self) {
        self.0.drain().await;
    }
}
