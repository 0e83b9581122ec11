//! Creatures that meet in pairs, by hand on async-executor.

use std::time::Instant;

use async_channel::{Receiver, Sender, unbounded};

use super::{THREADS, collect};
use crate::actors::{News, Place};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

/// The address of a creature.
type Address = Sender<News>;

/// Pairs the creatures that come.
async fn place(inbox: Receiver<Address>) {
    let mut place = Place::default();
    while let Ok(creature) = inbox.recv().await {
        for (creature, news) in place.come(creature) {
            creature.try_send(news).expect("the creature waits");
        }
    }
}

/// Comes to `place` until no meetings are left; then sends its number of meetings to `total`.
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

/// Runs the case `meetings`.
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
