//! A spool of workers, some of which panic and are replaced, and which has less room than comes.

use std::time::Duration;

use fastrand::Rng;
use greenroom::spool::Spool;
use greenroom::{Context, Reply, actor};

use crate::book::{Book, Letter};
use crate::life;

pub static SPOOL: Book = Book::new("spool");

const WORKERS: usize = 4;
const ROOM: usize = 24;

/// Bursts of a task, and the requests at once in each.
const BURSTS: usize = 150;
const MOST: usize = 40;

/// One request of so many lets its worker panic.
const BOMB: u32 = 3000;

/// The question, and whether it is a bomb.
struct SpoolErrand {
    letter: Letter,
    is_bomb: bool,
}

#[derive(Clone)]
pub struct SpoolOfAll(Spool<SpoolErrand, ()>);

async fn worker(mut cx: Context<(SpoolErrand, Reply<()>)>) {
    while let Some((mut errand, reply)) = cx.recv().await {
        errand.letter.take();
        if errand.is_bomb {
            SPOOL.fault(1);
            life::inject_panic();
        }
        errand.letter.handled();
        reply.send(());
    }
}

impl SpoolOfAll {
    pub fn new() -> Self {
        let make = |_| {
            let undelivered =
                |(errand, _reply): (SpoolErrand, Reply<()>)| errand.letter.undelivered();
            actor(worker).on_undelivered(undelivered).spawn()
        };
        let spool = Spool::builder(make).workers(WORKERS).capacity(ROOM);
        // A process that is stopped for a while gives no worker up.
        let spool = spool
            .responsiveness(None)
            .stand_down(Duration::from_millis(100));
        SpoolOfAll(spool.spawn().expect("a runtime"))
    }

    pub async fn load(self, mut rng: Rng) {
        for _ in 0..BURSTS {
            let requests = (0..rng.usize(1..=MOST)).map(|_| {
                let letter = SPOOL.question();
                let is_bomb = rng.u32(..BOMB) == 0;
                self.0.request(SpoolErrand { letter, is_bomb })
            });
            let requests: Vec<_> = requests.collect();
            for outcome in greenroom::concurrently(requests).await {
                SPOOL.asked(&outcome);
            }
        }
    }

    pub async fn end(self) {
        self.0.stop();
        // A worker that has died last is no fault of the end.
        let _ = self.0.join().await;
    }
}
