//! Large messages by value, on kameo.

use std::convert::Infallible;

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::mailbox;
use kameo::message::{Context, Message};

use crate::crowds::Share;
use crate::figures::Figure;
use crate::large::{Bytes, large};
use crate::sizes::ROOM;

plain_actors!(Reader);

/// An actor that adds the ends of each message to its share.
struct Reader(Share);

impl<const N: usize> Message<Bytes<N>> for Reader {
    type Reply = ();

    async fn handle(&mut self, bytes: Bytes<N>, _: &mut Context<Self, ()>) {
        self.0.add(bytes.ends());
    }
}

/// Runs a case with `count` messages of `N` bytes.
pub async fn messages<const N: usize>(count: u64) -> Vec<Figure> {
    large(count, async |share| {
        let actor = Reader::spawn_with_mailbox(Reader(share), mailbox::bounded(ROOM));
        for n in 0..count {
            actor
                .tell(Bytes::<N>::of(n))
                .await
                .expect("the actor lives");
        }
        actor
    })
    .await
}
