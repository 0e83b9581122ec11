//! Creatures that meet in pairs, on acto.

use std::time::Instant;

use acto::{AcTokioRuntime, ActoHandle, ActoRef, ActoRuntime};

use super::{Cell, collect, message};
use crate::actors::{News, Place};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

/// Pairs the creatures that come.
async fn place(mut cell: Cell<ActoRef<News>>) {
    let mut place = Place::default();
    while let Some(creature) = message(&mut cell).await {
        for (creature, news) in place.come(creature) {
            assert!(creature.send(news), "the creature waits");
        }
    }
}

/// Comes to `place` until no meetings are left; then sends its number of meetings to `total`.
async fn creature(mut cell: Cell<News>, place: ActoRef<ActoRef<News>>, total: ActoRef<u64>) {
    let (own, mut meetings) = (cell.me(), 0);
    loop {
        assert!(place.send(own.clone()), "the place is open");
        match message(&mut cell).await {
            Some(News::Met) => meetings += 1,
            Some(News::Over) | None => break,
        }
    }
    assert!(total.send(meetings), "the collector waits for all");
}

/// Runs the case `meetings`.
pub async fn meetings(runtime: AcTokioRuntime) -> Vec<Figure> {
    let total = runtime.spawn_actor("total", |cell| collect(cell, CREATURES));
    let place = runtime.spawn_actor("place", place).me;
    let begin = Instant::now();
    for _ in 0..CREATURES {
        let (place, total) = (place.clone(), total.me.clone());
        runtime.spawn_actor("creature", |cell| creature(cell, place, total));
    }
    let met = total.handle.join().await.expect("no panic");
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
