//! Creatures that meet in pairs, by hand on tokio.

use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::collect;
use crate::actors::{News, Place};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

/// The address of a creature.
type Address = UnboundedSender<News>;

/// Pairs the creatures that come.
async fn place(mut inbox: UnboundedReceiver<Address>) {
    let mut place = Place::default();
    while let Some(creature) = inbox.recv().await {
        for (creature, news) in place.come(creature) {
            creature.send(news).expect("the creature waits");
        }
    }
}

/// Comes to `place` until no meetings are left; then sends its number of meetings to `total`.
async fn creature(place: UnboundedSender<Address>, total: UnboundedSender<u64>) {
    let ((own, mut inbox), mut meetings) = (unbounded_channel(), 0);
    loop {
        place.send(own.clone()).expect("the place is open");
        match inbox.recv().await {
            Some(News::Met) => meetings += 1,
            Some(News::Over) | None => break,
        }
    }
    total.send(meetings).expect("the collector waits for all");
}

/// Runs the case `meetings`.
pub async fn meetings() -> Vec<Figure> {
    let (total, totals) = unbounded_channel();
    let (address, inbox) = unbounded_channel();
    tokio::spawn(place(inbox));
    let begin = Instant::now();
    for _ in 0..CREATURES {
        tokio::spawn(creature(address.clone(), total.clone()));
    }
    let met = collect(totals, CREATURES).await;
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
