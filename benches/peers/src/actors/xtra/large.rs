//! Large messages by value, on xtra.

use xtra::prelude::*;

use super::tell;
use crate::crowds::Share;
use crate::figures::Figure;
use crate::large::{Bytes, large};
use crate::sizes::ROOM;

plain_actors!(Reader);

/// An actor that adds the ends of each message to its share.
struct Reader(Share);

impl<const N: usize> Handler<Bytes<N>> for Reader {
    type Return = ();

    async fn handle(&mut self, bytes: Bytes<N>, _: &mut Context<Self>) {
        self.0.add(bytes.ends());
    }
}

/// Runs a case with `count` messages of `N` bytes.
pub async fn messages<const N: usize>(count: u64) -> Vec<Figure> {
    large(count, async |share| {
        let actor = xtra::spawn_tokio(Reader(share), Mailbox::bounded(ROOM));
        for n in 0..count {
            tell(&actor, Bytes::<N>::of(n)).await;
        }
        actor
    })
    .await
}
