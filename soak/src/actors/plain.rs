//! Actors with unbounded mailboxes, which are started, stopped and killed.

use fastrand::Rng;
use greenroom::{Handle, actor};

use super::word::{Word, ask, reader, tell};
use crate::book::Book;

pub static PLAIN: Book = Book::new("plain actors");

/// The actors of a task, and how many bursts it sends.
const ACTORS: usize = 16;
const BURSTS: usize = 1500;

/// One burst of so many ends with a kill.
const KILL: u32 = 40;

/// The longest burst.
const MOST: u64 = 200;

type Plain = Handle<Word, ()>;

fn start() -> (Plain, u64) {
    let builder = actor(|cx| reader(cx, None)).on_undelivered(Word::undelivered);
    (builder.spawn(), 0)
}

/// Sends bursts of words, with a question behind each of them.
pub async fn load(mut rng: Rng) {
    let mut actors: Vec<_> = (0..ACTORS).map(|_| start()).collect();
    for _ in 0..BURSTS {
        let at = rng.usize(..ACTORS);
        let (actor, number) = &mut actors[at];
        for _ in 0..rng.u64(1..=MOST) {
            *number += 1;
            tell(actor, Word::numbered(&PLAIN, 0, *number));
        }
        if rng.u32(..KILL) != 0 {
            ask(actor, &PLAIN).await;
            continue;
        }
        // It may have a word in hand, and a question may come before it ends, or after.
        let address = actor.address();
        let asks = greenroom::spawn(async move { ask(&address, &PLAIN).await });
        PLAIN.fault(1);
        actor.kill();
        tell(actor, Word::new(&PLAIN));
        asks.await;
        actors[at] = start();
    }
    for (actor, _) in actors {
        actor.stop();
        tell(&actor, Word::new(&PLAIN));
        let _ = actor.join().await;
    }
}
