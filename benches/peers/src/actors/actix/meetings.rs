//! Creatures that meet in pairs, on actix.

use std::sync::Arc;
use std::time::Instant;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};

use super::{Add, Arbiters, Collector};
use crate::actors::{News, Place, Sum};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

plain_actors!(Pairing, Creature);
messages! {
    Come => (),
    News => (),
}

/// An actor that pairs the creatures that come.
struct Pairing(Place<Addr<Creature>>);

struct Come(Addr<Creature>);

impl Handler<Come> for Pairing {
    type Result = ();

    fn handle(&mut self, Come(creature): Come, _: &mut Context<Self>) {
        for (creature, news) in self.0.come(creature) {
            creature.do_send(news);
        }
    }
}

/// An actor that comes to the place until no meetings are left; then it sends its number of
/// meetings.
struct Creature {
    place: Addr<Pairing>,
    total: Addr<Collector>,
    meetings: u64,
}

impl Handler<News> for Creature {
    type Result = ();

    fn handle(&mut self, news: News, context: &mut Context<Self>) {
        match news {
            News::Met => {
                self.meetings += 1;
                self.place.do_send(Come(context.address()));
            }
            News::Over => self.total.do_send(Add(self.meetings)),
        }
    }
}

/// Runs the case `meetings`.
pub async fn meetings(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let (sum, met) = Sum::of(CREATURES);
    let total = arbiters.start(Collector(sum));
    let place = arbiters.start(Pairing(Place::default()));
    // An actor without an address may end with a message still in its mailbox.
    let (begin, mut held) = (Instant::now(), Vec::new());
    for _ in 0..CREATURES {
        let creature = arbiters.start(Creature {
            place: place.clone(),
            total: total.clone(),
            meetings: 0,
        });
        place.do_send(Come(creature.clone()));
        held.push(creature);
    }
    let met = met.await.expect("all tell it");
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
