//! Creatures that meet in pairs, by hand on async-executor.

use std::time::Instant;

use async_channel::{Receiver, Sender, unbounded};

use super::{THREADS, collect};
use crate::actors::{News, Place};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

/// How a creature is told the news.
type Address = Sender<News>;

/// Pairs those who come.
async fn place(inbox: Receiver<Address>) {
    let mut place = Place::default();
    while let Ok(creature) = inbox.recv().await {
        for (creature, news) in place.come(creature) {
            creature.try_send(news).expect("the creature waits");
        }
    }
}

/// Comes to `place` until all is over; then it tells `total` how often it met another one.
async fn creature(place: Sender<Address>, total: Sender<u64>) {
    let ((own, inbox), mut meetings) = (unbounded(), 0);
    loop {
        place.try_send(own.clone()).expect("the place is open");
        match inbox.recv().await {
            Ok(News::Met) => meetings += 1,
            Ok(News::Over) | Err(_) => break,
        }
    }
    total
        .try_send(meetings)
        .expect("the collector waits for all");
}

/// The figure of `meetings`.
pub async fn meetings() -> Vec<Figure> {
    let (total, totals) = unbounded();
    let (address, inbox) = unbounded();
    THREADS.spawn(place(inbox)).detach();
    let begin = Instant::now();
    for _ in 0..CREATURES {
        let creature = creature(address.clone(), total.clone());
        THREADS.spawn(creature).detach();
    }
    let met = collect(totals, CREATURES).await;
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
