//! Creatures that meet in pairs, on xtra.

use std::time::Instant;

use xtra::prelude::*;

use super::{Add, Collector, spawn, tell};
use crate::actors::{News, Place, Sum};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

plain_actors!(Pairing, Creature);

/// An actor that pairs the creatures that come.
struct Pairing(Place<Address<Creature>>);

struct Come(Address<Creature>);

impl Handler<Come> for Pairing {
    type Return = ();

    async fn handle(&mut self, Come(creature): Come, _: &mut Context<Self>) {
        for (creature, news) in self.0.come(creature) {
            tell(&creature, news).await;
        }
    }
}

/// An actor that comes to the place until no meetings are left; then it sends its number of
/// meetings.
struct Creature {
    place: Address<Pairing>,
    total: Address<Collector>,
    meetings: u64,
}

impl Handler<News> for Creature {
    type Return = ();

    async fn handle(&mut self, news: News, cx: &mut Context<Self>) {
        match news {
            News::Met => {
                self.meetings += 1;
                let own = cx.mailbox().address().try_upgrade();
                tell(&self.place, Come(own.expect("the driver keeps an address"))).await;
            }
            News::Over => tell(&self.total, Add(self.meetings)).await,
        }
    }
}

/// Runs the case `meetings`.
pub async fn meetings() -> Vec<Figure> {
    let (sum, met) = Sum::of(CREATURES);
    let (total, place) = (spawn(Collector(sum)), spawn(Pairing(Place::default())));
    let begin = Instant::now();
    let mut held = Vec::new();
    for _ in 0..CREATURES {
        let creature = spawn(Creature {
            place: place.clone(),
            total: total.clone(),
            meetings: 0,
        });
        tell(&place, Come(creature.clone())).await;
        held.push(creature);
    }
    let met = met.await.expect("all tell it");
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
