//! Creatures that meet in pairs, on kameo.

use std::convert::Infallible;
use std::time::Instant;

use kameo::actor::{Actor, ActorRef};
use kameo::message::{Context, Message};

use super::{Add, Collector, spawn};
use crate::actors::{News, Place, Sum};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

plain_actors!(Pairing, Creature);

/// An actor that pairs the creatures that come.
struct Pairing(Place<ActorRef<Creature>>);

struct Come(ActorRef<Creature>);

impl Message<Come> for Pairing {
    type Reply = ();

    async fn handle(&mut self, Come(creature): Come, _: &mut Context<Self, ()>) {
        for (creature, news) in self.0.come(creature) {
            creature.tell(news).await.expect("the creature waits");
        }
    }
}

/// An actor that comes to the place until no meetings are left; then it sends its number of
/// meetings.
struct Creature {
    place: ActorRef<Pairing>,
    total: ActorRef<Collector>,
    meetings: u64,
}

impl Message<News> for Creature {
    type Reply = ();

    async fn handle(&mut self, news: News, cx: &mut Context<Self, ()>) {
        match news {
            News::Met => {
                self.meetings += 1;
                let told = self.place.tell(Come(cx.actor_ref().clone())).await;
                told.expect("the place is open");
            }
            News::Over => {
                let told = self.total.tell(Add(self.meetings)).await;
                told.expect("the collector waits for all");
            }
        }
    }
}

/// Runs the case `meetings`.
pub async fn meetings() -> Vec<Figure> {
    let (sum, met) = Sum::of(CREATURES);
    let (total, place) = (spawn(Collector(sum)), spawn(Pairing(Place::default())));
    let begin = Instant::now();
    for _ in 0..CREATURES {
        let creature = spawn(Creature {
            place: place.clone(),
            total: total.clone(),
            meetings: 0,
        });
        let told = place.tell(Come(creature)).await;
        told.expect("the place is open");
    }
    let met = met.await.expect("all tell it");
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
