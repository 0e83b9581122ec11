//! Creatures that meet in pairs, on ractor.

use std::time::Instant;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{Collector, Handled, spawn};
use crate::actors::{News, Place, Sum};
use crate::figures::{self, Figure, check, rate};
use crate::sizes::{CREATURES, MEETINGS};

/// The address of a creature.
type Address = ActorRef<News>;

/// An actor that pairs the creatures that come.
struct Pairing;

impl Actor for Pairing {
    type Msg = Address;
    type State = Place<Address>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<Address>,
        (): (),
    ) -> Result<Place<Address>, ActorProcessingErr> {
        Ok(Place::default())
    }

    async fn handle(
        &self,
        _: ActorRef<Address>,
        creature: Address,
        place: &mut Place<Address>,
    ) -> Handled {
        for (creature, news) in place.come(creature) {
            creature.cast(news)?;
        }
        Ok(())
    }
}

/// An actor that comes to the place until no meetings are left; then it sends its number of
/// meetings.
struct Creature {
    place: ActorRef<Address>,
    total: ActorRef<u64>,
}

impl Actor for Creature {
    type Msg = News;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: Address, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(&self, myself: Address, news: News, meetings: &mut u64) -> Handled {
        match news {
            News::Met => {
                *meetings += 1;
                self.place.cast(myself)?;
            }
            News::Over => self.total.cast(*meetings)?,
        }
        Ok(())
    }
}

/// Runs the case `meetings`.
pub async fn meetings() -> Vec<Figure> {
    let (sum, met) = Sum::of(CREATURES);
    let (total, place) = (spawn(Collector, sum).await, spawn(Pairing, ()).await);
    let begin = Instant::now();
    for _ in 0..CREATURES {
        let (to, total) = (place.clone(), total.clone());
        let creature = spawn(Creature { place: to, total }, ()).await;
        place.cast(creature).expect("the place is open");
    }
    let met = met.await.expect("all tell it");
    check("creatures that met", met, 2 * MEETINGS);
    vec![rate(figures::MEETINGS, MEETINGS, begin)]
}
