//! Bounded mailboxes with every overflow, with and without keys, against a list.
//!
//! One thread sends, receives and uses permits in a random order. After each step the mailbox has
//! taken, refused and displaced the same messages as the list.

use std::task::Poll;

use greenroom::{Context, Overflow, actor};

use crate::support::{Draws, Log, WATCH, poll_once, tenth_in_debug, within};

const SEEDS: usize = tenth_in_debug(20_000);

/// A key, and the number of the message.
type Letter = (usize, u32);

/// A mailbox as a list.
struct Letters {
    overflow: Overflow,
    has_keys: bool,
    capacity: usize,
    waiting: Vec<Letter>,
    permits: usize,
    displaced: Vec<Letter>,
}

impl Letters {
    /// Puts the letter in, with a permit or if there is room. Returns whether it did.
    fn put(&mut self, letter: Letter, has_permit: bool) -> bool {
        let same = self.waiting.iter().position(|(key, _)| *key == letter.0);
        self.permits -= usize::from(has_permit);
        if let Some(index) = same.filter(|_| self.has_keys) {
            let replaced = std::mem::replace(&mut self.waiting[index], letter);
            self.displaced.push(replaced);
            return true;
        }
        let taken = has_permit || self.has_room();
        if taken {
            self.waiting.push(letter);
        }
        taken
    }

    /// Returns whether there is room, for which the oldest letter may give way.
    fn has_room(&mut self) -> bool {
        if self.waiting.len() + self.permits < self.capacity {
            return true;
        }
        let gives_way = self.overflow == Overflow::Oldest && !self.waiting.is_empty();
        if gives_way {
            self.displaced.push(self.waiting.remove(0));
        }
        gives_way
    }
}

/// Takes random steps.
fn run(mut draws: Draws) {
    let mut list = Letters {
        overflow: [Overflow::Wait, Overflow::Newest, Overflow::Oldest][draws.below(3)],
        has_keys: draws.below(2) == 1,
        capacity: [1, 2, 3, 7, 100][draws.below(5)],
        waiting: Vec::new(),
        permits: 0,
        displaced: Vec::new(),
    };
    let keys = [1, 3, 10, 1000][draws.below(4)];
    let (displaced, contexts) = (Log::default(), Log::default());
    let (log, gives) = (displaced.clone(), contexts.clone());
    let reader = actor(async move |cx: Context<Letter>| {
        gives.add(cx);
        std::future::pending::<()>().await;
    });
    let reader = reader.capacity(list.capacity).overflow(list.overflow);
    let mut reader = reader.on_displaced(move |letter| log.add(letter));
    if list.has_keys {
        reader = reader.conflate(|letter: &Letter| letter.0);
    }
    let (address, reader) = reader.split();
    let mut reader = Box::pin(reader);
    assert!(poll_once(&mut reader).is_pending());
    let mut cx = contexts.take().pop().unwrap();
    let mut permits = Vec::new();
    for number in 0..200 {
        let letter = (draws.below(keys), number);
        match draws.below(8) {
            0..3 => assert_eq!(address.tell(letter).is_ok(), list.put(letter, false)),
            3 => match poll_once(&mut address.send(letter)) {
                Poll::Ready(sent) => assert_eq!(sent.is_ok(), list.put(letter, false)),
                // Dropped, it leaves the line.
                Poll::Pending => {
                    assert!(list.overflow == Overflow::Wait && !list.put(letter, false));
                }
            },
            4 => match poll_once(&mut Box::pin(address.reserve())) {
                Poll::Ready(Ok(permit)) => {
                    assert!(list.has_room());
                    list.permits += 1;
                    permits.push(permit);
                }
                Poll::Ready(Err(full)) => assert!(full.is_full() && !list.has_room()),
                Poll::Pending => assert!(list.overflow == Overflow::Wait && !list.has_room()),
            },
            5 => {
                if let Some(permit) = permits.pop() {
                    match draws.below(2) {
                        0 => list.permits -= 1,
                        _ => {
                            list.put(letter, true);
                            permit.send(letter);
                        }
                    }
                }
            }
            _ => {
                let next = (!list.waiting.is_empty()).then(|| list.waiting.remove(0));
                assert_eq!(cx.try_recv(), next);
            }
        }
        assert_eq!(displaced.take(), std::mem::take(&mut list.displaced));
        assert_eq!(address.len(), list.waiting.len());
    }
}

#[test]
fn each_mailbox_does_what_a_list_does() {
    within(WATCH, || {
        for seed in 0..SEEDS as u64 {
            let run = std::panic::catch_unwind(|| run(Draws::of(seed, 0)));
            assert!(run.is_ok(), "seed {seed}");
        }
    });
}
