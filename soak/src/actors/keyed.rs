//! Keyed actors, which come and go: when they are idle, beyond the limit, removed, or by a panic.

use std::time::Duration;

use fastrand::Rng;
use greenroom::actor;
use greenroom::registry::{Keyed, KeyedAskError};

use super::word::{Word, reader};
use crate::book::{AskOutcome, Book};

pub static KEYED: Book = Book::new("keyed actors");

/// More keys than there may be actors.
const KEYS: u64 = 400;
const LIMIT: usize = 300;
const ROOM: usize = 32;
const IDLE: Duration = Duration::from_millis(30);

const BURSTS: usize = 1000;
const MOST: u64 = 40;

/// One word of so many is a bomb, and after one burst of so many an actor is removed.
const BOMB: u32 = 2000;
const REMOVED: u32 = 20;

#[derive(Clone)]
pub struct KeyedShelf(Keyed<u64, Word>);

impl KeyedShelf {
    pub fn new() -> Self {
        let make = |_key| {
            let builder = actor(|cx| reader(cx, None)).capacity(ROOM);
            builder.on_undelivered(Word::undelivered)
        };
        let keyed = Keyed::builder(make).idle(IDLE).limit(LIMIT);
        // A panic of an actor is its result.
        KeyedShelf(keyed.on_end(|_, _| {}).build().expect("a runtime"))
    }

    pub async fn load(self, mut rng: Rng) {
        for _ in 0..BURSTS {
            let key = rng.u64(..KEYS);
            for _ in 0..rng.u64(1..=MOST) {
                let word = match rng.u32(..BOMB) {
                    0 => Word::bomb(&KEYED),
                    _ => Word::new(&KEYED),
                };
                if let Err(error) = self.0.tell(&key, word) {
                    error.into_inner().letter.refused();
                }
            }
            let letter = KEYED.question();
            let asked = self.0.ask(&key, move |reply| Word::question(letter, reply));
            match asked.await {
                Ok(_) => KEYED.told(AskOutcome::Answered),
                Err(KeyedAskError::Ask(error)) => KEYED.asked::<()>(&Err(error)),
                Err(_) => KEYED.told(AskOutcome::Refused),
            }
            if rng.u32(..REMOVED) == 0 {
                self.0.remove(&rng.u64(..KEYS));
            }
        }
    }

    pub async fn end(self) {
        self.0.stop();
        self.0.ended().await;
    }
}
