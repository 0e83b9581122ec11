//! Creatures that meet in pairs, on greenroom.

use std::time::Instant;

use greenroom::{Address, Context, spawn};

use super::collect;
use crate::actors::{News, Place};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

/// Pairs the creatures that come.
async fn place(mut cx: Context<Address<News>>) {
    let mut place = Place::default();
    while let Some(creature) = cx.recv().await {
        for (creature, news) in place.come(creature) {
            creature.tell(news).expect("the creature waits");
        }
    }
}

/// Comes to `place` until no meetings are left; then sends its number of meetings to `total`.
async fn creature(mut cx: Context<News>, place: Address<Address<News>>, total: Address<u64>) {
    let (own, mut meetings) = (cx.address(), 0);
    loop {
        assert!(place.tell(own.clone()).is_ok(), "the place is open");
        match cx.recv().await {
            Some(News::Met) => meetings += 1,
            Some(News::Over) | None => break,
        }
    }
    total.tell(meetings).expect("the collector waits for all");
}

/// Runs the case `meetings`.
pub async fn meetings() -> Vec<Figure> {
    let total = spawn!(collect(_, CREATURES));
    let place = spawn!(place(_));
    let begin = Instant::now();
    let creatures =
        (0..CREATURES).map(|_| spawn!(creature(_, place.address(), total.address())).detach());
    creatures.for_each(drop);
    let met = total.join().await.expect("no panic");
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
