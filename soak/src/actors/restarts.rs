//! Actors that panic and begin anew: by themselves, and as children of a supervisor.

use std::time::Duration;

use fastrand::Rng;
use greenroom::supervise::{Restarts, Strategy, Supervisor};
use greenroom::{Address, actor};

use super::word::{Word, ask, reader, tell};
use crate::book::Book;

pub static RESTARTED: Book = Book::new("restarted actors");

/// Bursts to each kind of actor.
const BURSTS: usize = 200;
const MOST: u64 = 60;

/// One word of so many is a bomb.
const BOMB: u32 = 500;

const CHILDREN: u64 = 3;

/// No limit of restarts.
const HOUR: Duration = Duration::from_secs(3600);

pub async fn load(mut rng: Rng) {
    alone(&mut rng).await;
    for strategy in [Strategy::OneForOne, Strategy::OneForAll] {
        supervised(&mut rng, strategy).await;
    }
}

async fn alone(rng: &mut Rng) {
    let rules = Restarts::on_fault().intensity(u32::MAX, HOUR);
    let builder = actor(|cx| reader(cx, None)).restart(rules).capacity(64);
    let actor = builder.on_undelivered(Word::undelivered).spawn();
    for _ in 0..BURSTS {
        burst(rng, &actor).await;
    }
    actor.stop();
    let _ = actor.join().await;
}

async fn supervised(rng: &mut Rng, strategy: Strategy) {
    let tree = Supervisor::builder().strategy(strategy);
    let tree = tree.intensity(u32::MAX, HOUR).spawn().expect("a runtime");
    let children = (0..CHILDREN).map(|_| {
        let rules = Restarts::on_fault().intensity(u32::MAX, HOUR);
        let child = actor(|cx| reader(cx, None)).restart(rules).capacity(64);
        let child = child.on_undelivered(Word::undelivered);
        tree.start(child).expect("the supervisor is not stopped")
    });
    let children: Vec<_> = children.collect();
    for _ in 0..BURSTS {
        let child = rng.choice(&children).expect("there are children");
        burst(rng, child).await;
    }
    tree.stop();
    let _ = tree.join().await;
}

/// Sends a burst of words, in which bombs may be.
async fn burst(rng: &mut Rng, to: &Address<Word>) {
    for _ in 0..rng.u64(1..=MOST) {
        let is_bomb = rng.u32(..BOMB) == 0;
        if is_bomb {
            // The word in hand of each sibling, which begins anew as well.
            RESTARTED.fault(CHILDREN - 1);
        }
        tell(
            to,
            match is_bomb {
                true => Word::bomb(&RESTARTED),
                false => Word::new(&RESTARTED),
            },
        );
    }
    ask(to, &RESTARTED).await;
}
