//! This example is the program of the Seppuku Job Market: jobs of players, of which one at a time is
//! served for each player.
//!
//! ```text
//!  producers ──> board ──> workers, which come for jobs and end without
//!     ^── full: they wait; the player has a job: not added
//! ```
//!
//! A job has a kind, which says what it does, and what is known of its request. Here a single worker
//! is held up until all jobs are on the board, so that their order is seen: the higher priority goes
//! first, then the older job. It prints:
//!
//! ```text
//! player 3: a job is added
//! player 9: a job is added
//! player 4: a job is added
//! player 3: a job is not added, since one is in the market
//! player 5: a job is added
//! player 6: a job is added
//! operating: 5 jobs wait, 0 workers are idle, 1 is active, the board is full
//! Completing: job counter 3 priority 2 for player 4 from IP:P 2130706433:10004
//! Completing: job counter 1 priority 0 for player 3 from IP:P 2130706433:10003
//! player 5 has a new account, with a key of 512 bytes
//! Completing: job counter 6 priority 0 for player 6 from IP:P 2130706433:10006
//! player 3: served, so another job may follow
//! Completing: job counter 7 priority 0 for player 3 from IP:P 2130706433:10003
//! stopped: 0 jobs wait, 0 workers are left, 6 jobs of players were done
//! ```

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::mpsc;

use greenroom::market::{Job, JobHandle, Market, TryOfferError};

/// What a job does.
#[derive(Default)]
enum Kind {
    #[default]
    DoNothing,
    Print,
    /// The key of the player.
    CreateAccount(Vec<u8>),
}

/// A job: what is known of the request, and what is to be done.
#[derive(Default)]
struct Data {
    player: u64,
    ip: u32,
    /// The port from which the request has come.
    port: u16,
    counter: u16,
    priority: u32,
    kind: Kind,
}

impl Data {
    fn of(player: u16, counter: u16, kind: Kind) -> Data {
        Data {
            player: player.into(),
            ip: Ipv4Addr::LOCALHOST.into(),
            port: 10_000 + player,
            counter,
            kind,
            ..Data::default()
        }
    }

    fn complete(self) {
        match self.kind {
            Kind::DoNothing => {}
            Kind::Print => println!(
                "Completing: job counter {} priority {} for player {} from IP:P {}:{}",
                self.counter, self.priority, self.player, self.ip, self.port
            ),
            Kind::CreateAccount(key) => println!(
                "player {} has a new account, with a key of {} bytes",
                self.player,
                key.len()
            ),
        }
    }
}

/// Makes a job for the market, whose key is the player.
fn job(data: Data) -> Job<u64, impl FnOnce() + Send> {
    let (player, priority) = (data.player, data.priority);
    Job::new(|| data.complete()).key(player).priority(priority)
}

/// Adds a job, unless its player has one in the market.
fn add(market: &Market<u64>, data: Data) -> Option<JobHandle<()>> {
    let player = data.player;
    match market.try_offer(job(data)) {
        Ok(job) => {
            println!("player {player}: a job is added");
            Some(job)
        }
        Err(TryOfferError::KeyBusy(_)) => {
            println!("player {player}: a job is not added, since one is in the market");
            None
        }
        Err(other) => {
            println!("player {player}: a job is not added: {other}");
            None
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let market = Market::builder().max_workers(1).capacity(5).build()?;
    let (open, opened) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let holds = market.try_offer(Job::new(move || {
        begin.send(()).is_ok() && opened.recv().is_err() // until `open` is dropped
    }))?;
    begun.recv()?;

    let urgent = Data {
        priority: 2,
        ..Data::of(4, 3, Kind::Print)
    };
    let jobs = [
        Data::of(3, 1, Kind::Print),
        Data::of(9, 2, Kind::DoNothing),
        urgent,
        Data::of(3, 4, Kind::Print),
        Data::of(5, 5, Kind::CreateAccount(vec![0; 512])),
        Data::of(6, 6, Kind::Print),
    ];
    let jobs: Vec<_> = jobs.into_iter().map(|data| add(&market, data)).collect();
    let status = market.status();
    assert!(status.is_operating && status.is_full);
    println!(
        "operating: {} jobs wait, {} workers are idle, {} is active, the board is full",
        status.waiting, status.idle, status.running
    );

    drop(open);
    assert!(holds.await?);
    let mut done = 0;
    for job in jobs.into_iter().flatten() {
        job.await?;
        done += 1;
    }
    println!("player 3: served, so another job may follow");
    // Unlike `try_offer`, this would wait for room.
    market
        .offer(job(Data::of(3, 7, Kind::Print)))
        .await?
        .await?;
    done += 1;

    market.stop();
    market.stopped().await;
    let status = market.status();
    let left = status.created - status.died;
    println!(
        "stopped: {} jobs wait, {left} workers are left, {done} jobs of players were done",
        status.waiting
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    greenroom::run(run())
}
