//! Large messages by value, on greenroom.

use greenroom::{Context, spawn};

use crate::crowds::Share;
use crate::figures::Figure;
use crate::large::{Bytes, large};
use crate::sizes::ROOM;

/// Adds the ends of each message to its share.
async fn reader<const N: usize>(mut cx: Context<Bytes<N>>, mut share: Share) {
    while let Some(bytes) = cx.recv().await {
        share.add(bytes.ends());
    }
}

/// Runs a case with `count` messages of `N` bytes.
pub async fn messages<const N: usize>(count: u64) -> Vec<Figure> {
    large(count, async |share| {
        let actor = spawn!(reader::<N>(_, share), capacity = ROOM);
        for n in 0..count {
            assert!(actor.send(Bytes::of(n)).await.is_ok(), "the actor lives");
        }
        actor
    })
    .await
}
