//! Creatures that meet in pairs, by hand on tokio.

use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::collect;
use crate::actors::{News, Place};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

/// How a creature is told the news.
type Address = UnboundedSender<News>;

/// Pairs those who come.
async fn place(mut inbox: UnboundedReceiver<Address>) {
    let mut place = Place::default();
    while let Some(creature) = inbox.recv().await {
        for (creature, news) in place.come(creature) {
            creature.send(news).expect("the creature waits");
        }
    }
}

/// Comes to `place` until all is over; then it tells `total` how often it met another one.
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

/// The figure of `meetings`.
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
