//! The process `cramped`: it has few addresses of memory, and allocates until it aborts.
//!
//! Before that it answers, so each life shows that the one before has left nothing that harms it.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::{Context, Reply, Runtime, spawn};

use crate::life;
use crate::report::Tallies;
use crate::system::{self, Scarce};

/// The asks that were answered before memory gets scarce.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

const ASKS: u64 = 10_000;

/// What the process may have in addition, in bytes.
const ROOM: u64 = 256 << 20;

/// The bytes of a message.
const LARGE: usize = 60_000;

enum CrampedLoad {
    Keep(Vec<u8>),
    Echo(u64, Reply<u64>),
}

/// Keeps everything.
async fn hoard(mut cx: Context<CrampedLoad>) {
    let mut kept = Vec::new();
    while let Some(load) = cx.recv().await {
        match load {
            CrampedLoad::Keep(bytes) => kept.push(bytes),
            CrampedLoad::Echo(number, reply) => reply.send(number),
        }
    }
}

/// Answers, and then allocates until it aborts.
pub fn live() {
    let runtime = Runtime::builder().workers(2).build();
    let runtime = runtime.expect("a runtime");
    let hoard = runtime.block_on(async { spawn!(hoard(_)) });
    runtime.block_on(async {
        for number in 0..ASKS {
            let answer = hoard.ask(|reply| CrampedLoad::Echo(number, reply)).await;
            if answer != Ok(number) {
                life::wrong(format!("cramped: {answer:?} is the answer to {number}"));
            }
            ANSWERED.fetch_add(1, Ordering::Relaxed);
        }
    });
    life::begin(tallies);
    crate::report::Report::Counts(tallies()).say();
    let addresses = system::kib("self", "VmSize").unwrap_or_default() << 10;
    // What it was is not needed any more.
    let _ = Scarce::Core.limit(0);
    if Scarce::Memory.limit(addresses + ROOM).is_err() {
        life::wrong("the limit of memory cannot be set");
    }
    runtime.block_on(async {
        let floods = (0..4).map(|_| {
            let hoard = hoard.address();
            spawn_flood(hoard)
        });
        let floods: Vec<_> = floods.collect();
        for flood in floods {
            flood.await;
        }
    });
}

fn spawn_flood(hoard: greenroom::Address<CrampedLoad>) -> greenroom::Task<()> {
    greenroom::spawn(async move {
        loop {
            // Without pages behind it, so the machine lacks no memory.
            let bytes = Vec::with_capacity(LARGE);
            if hoard.tell(CrampedLoad::Keep(bytes)).is_err() {
                return;
            }
            if hoard
                .ask(|reply| CrampedLoad::Echo(0, reply))
                .await
                .is_err()
            {
                return;
            }
        }
    })
}

fn tallies() -> Tallies {
    let answered = ANSWERED.load(Ordering::Relaxed);
    Tallies::from([("answered".to_owned(), answered)])
}
