//! The process `actors`: everything that happens within one process.
//!
//! The load comes in rounds. When the tasks of a round have ended and the runtime is quiescent, no
//! message is under way, and each book is to be even.

mod bounded;
mod keyed;
mod loopers;
mod markets;
mod plain;
mod restarts;
mod spools;
mod word;

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use greenroom::{Runtime, Task};

use crate::book::Book;
use crate::pace::{MESSAGES, Pace};
use crate::report::Tallies;
use crate::{life, system};

/// The books of all parts.
static BOOKS: [&Book; 11] = [
    &plain::PLAIN,
    &bounded::BOUNDED,
    &bounded::DISPLACING,
    &bounded::CONFLATING,
    &bounded::URGENT,
    &bounded::SLOW,
    &restarts::RESTARTED,
    &spools::SPOOL,
    &markets::MARKET,
    &loopers::LOOPER,
    &keyed::KEYED,
];

/// How often the process was quiet, and its books were compared.
static QUIET: AtomicU64 = AtomicU64::new(0);

/// How often the market had no thread for a worker.
static FAILED_STARTS: AtomicU64 = AtomicU64::new(0);

/// Blocking threads end soon, so that threads start all the time.
const IDLE: Duration = Duration::from_millis(20);

/// Runs to the order to end.
pub fn live(seed: u64) {
    let obeys = system::obey_thread_limit();
    life::begin(tallies);
    if !obeys {
        life::wrong("no limit of threads has an effect on this process");
    }
    let runtime = Runtime::builder()
        .workers(2)
        .blocking_idle(IDLE)
        // Panics of actors are injected here. Any other one has called the panic hook.
        .on_fault(|_| {});
    let runtime = runtime.build().expect("a runtime");
    let lasting = runtime.block_on(async { Lasting::new() });
    let mut rng = Rng::with_seed(seed);
    let mut pace = Pace::new(MESSAGES);
    let (mut before, mut sentences) = (0, Vec::new());
    while !life::ends() {
        runtime.block_on(round(&mut rng, &lasting));
        runtime.run_until_quiescent();
        sentences = uneven();
        sentences.iter().for_each(life::wrong);
        QUIET.fetch_add(1, Ordering::Relaxed);
        FAILED_STARTS.store(lasting.market.failed_starts(), Ordering::Relaxed);
        let sent = BOOKS.iter().map(|book| book.read().sent()).sum();
        runtime.block_on(pace.done(sent - before));
        before = sent;
    }
    drop(sentences);
    runtime.block_on(lasting.end());
    runtime.run_until_quiescent();
    life::end(uneven());
}

/// What lives as long as the process.
struct Lasting {
    spool: spools::SpoolOfAll,
    market: markets::JobBoard,
    keyed: keyed::KeyedShelf,
}

impl Lasting {
    fn new() -> Self {
        Lasting {
            spool: spools::SpoolOfAll::new(),
            market: markets::JobBoard::new(),
            keyed: keyed::KeyedShelf::new(),
        }
    }

    async fn end(self) {
        self.spool.end().await;
        self.market.end().await;
        self.keyed.end().await;
    }
}

/// Runs the tasks of a round.
async fn round(rng: &mut Rng, lasting: &Lasting) {
    let mut tasks: Vec<Task<()>> = Vec::new();
    let mut add = |task: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        tasks.push(greenroom::spawn(task));
    };
    for _ in 0..2 {
        add(Box::pin(plain::load(rng.fork())));
        add(Box::pin(bounded::load(rng.fork())));
        add(Box::pin(restarts::load(rng.fork())));
        add(Box::pin(lasting.spool.clone().load(rng.fork())));
        add(Box::pin(lasting.market.clone().load(rng.fork())));
        add(Box::pin(loopers::load(rng.fork())));
        add(Box::pin(lasting.keyed.clone().load(rng.fork())));
    }
    for task in tasks {
        task.await;
    }
}

fn uneven() -> Vec<String> {
    BOOKS.iter().flat_map(|book| book.read().uneven()).collect()
}

fn tallies() -> Tallies {
    let mut tallies = Tallies::new();
    for book in BOOKS {
        book.read().add_to(&mut tallies);
    }
    let mut add = |name: &str, count: &AtomicU64| {
        tallies.insert(name.to_owned(), count.load(Ordering::Relaxed));
    };
    add("quiet points", &QUIET);
    add("failed starts", &FAILED_STARTS);
    tallies
}
