//! Large messages by value, on acto.

use acto::{AcTokioRuntime, ActoRuntime, MailboxSize};

use super::{Cell, message};
use crate::crowds::Share;
use crate::figures::Figure;
use crate::large::{Bytes, large};
use crate::sizes::ROOM;

/// Adds the ends of each message to its share.
async fn reader<const N: usize>(mut cell: Cell<Bytes<N>>, mut share: Share) {
    while let Some(bytes) = message(&mut cell).await {
        share.add(bytes.ends());
    }
}

/// Runs a case with `count` messages of `N` bytes.
pub async fn messages<const N: usize>(runtime: AcTokioRuntime, count: u64) -> Vec<Figure> {
    let runtime = runtime.with_mailbox_size(ROOM);
    large(count, async |share| {
        let actor = runtime.spawn_actor("reader", |cell| reader::<N>(cell, share));
        for n in 0..count {
            assert!(actor.me.send_wait(Bytes::of(n)).await, "the actor lives");
        }
        actor
    })
    .await
}
