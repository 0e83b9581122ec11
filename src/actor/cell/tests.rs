//! The size of a cell, and the distance between the parts that different threads write.

use std::future::Future;
use std::mem::offset_of;
use std::sync::Arc;

use super::{ActorCell, Context};

async fn tally(mut cx: Context<u64>, from: u64) -> u64 {
    let mut sum = from;
    while let Some(number) = cx.recv().await {
        sum += number;
    }
    sum
}

/// Returns the size of the cell of such an actor, the size of its future, and the offset of its
/// reader, in bytes.
fn measure<Fut: Future>(_: impl Fn(Context<u64>, u64) -> Fut) -> [usize; 3] {
    type Of<Fut, T> = ActorCell<u64, Arc<()>, u64, Fut, T>;
    let reader = offset_of!(Of<Fut, Fut::Output>, reader);
    [size_of::<Of<Fut, Fut::Output>>(), size_of::<Fut>(), reader]
}

#[test]
#[cfg(target_pointer_width = "64")]
fn an_actor_takes_88_bytes_and_its_future() {
    let [cell, future, _] = measure(tally);
    assert_eq!(cell, 88 + future);
}

#[test]
fn reader_is_a_cache_line_away_from_the_senders_word() {
    let [_, _, reader] = measure(tally);
    assert!(
        reader >= 64,
        "the reader is {reader} bytes behind the word, which comes first"
    );
}
