//! Large messages by value, by hand on tokio.

use tokio::sync::mpsc::{self, Receiver};

use crate::crowds::Share;
use crate::figures::Figure;
use crate::large::{Bytes, large};
use crate::sizes::ROOM;

/// Adds the ends of each message to its share.
async fn reader<const N: usize>(mut inbox: Receiver<Bytes<N>>, mut share: Share) {
    while let Some(bytes) = inbox.recv().await {
        share.add(bytes.ends());
    }
}

/// Runs a case with `count` messages of `N` bytes.
pub async fn messages<const N: usize>(count: u64) -> Vec<Figure> {
    large(count, async |share| {
        let (address, inbox) = mpsc::channel(ROOM);
        tokio::spawn(reader::<N>(inbox, share));
        for n in 0..count {
            assert!(address.send(Bytes::of(n)).await.is_ok(), "the actor lives");
        }
        address
    })
    .await
}
