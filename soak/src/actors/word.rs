//! The message of the actors here, and how it is sent so that its book knows what becomes of it.

use std::time::Duration;

use greenroom::{Address, Context, Reply, yield_now};

use crate::book::{Book, Letter};
use crate::life;

pub struct Word {
    pub letter: Letter,
    /// Who has sent it, below [`SENDERS`].
    pub sender: usize,
    /// Its number among those of this sender to this actor, from 1. It is 0 if order does not matter.
    pub number: u64,
    /// Its reader panics.
    pub is_bomb: bool,
    pub reply: Option<Reply<u64>>,
}

/// How many senders of numbered words an actor has at most.
pub const SENDERS: usize = 4;

/// Every so many words, the reader waits with the word in hand.
const WAIT: u64 = 61;

impl Word {
    pub fn new(book: &'static Book) -> Self {
        Word {
            letter: book.message(),
            sender: 0,
            number: 0,
            is_bomb: false,
            reply: None,
        }
    }

    pub fn numbered(book: &'static Book, sender: usize, number: u64) -> Self {
        Word {
            sender,
            number,
            ..Word::new(book)
        }
    }

    pub fn bomb(book: &'static Book) -> Self {
        Word {
            is_bomb: true,
            ..Word::new(book)
        }
    }

    pub fn question(letter: Letter, reply: Reply<u64>) -> Self {
        Word {
            letter,
            sender: 0,
            number: 0,
            is_bomb: false,
            reply: Some(reply),
        }
    }

    /// Counts it as undelivered. Its reply, if it has one, is dropped.
    pub fn undelivered(self) {
        self.letter.undelivered();
    }

    pub fn displaced(self) {
        self.letter.displaced();
    }
}

/// Handles words until it is stopped. It may wait a bit with each of them.
pub async fn reader(mut cx: Context<Word>, wait: Option<Duration>) {
    let mut last = [0; SENDERS];
    let mut count = 0;
    while let Some(mut word) = cx.recv().await {
        word.letter.take();
        count += 1;
        if word.is_bomb {
            word.letter.book().fault(1);
            life::inject_panic();
        }
        if word.number != 0 {
            if word.number <= last[word.sender] {
                word.letter.book().out_of_order();
            }
            last[word.sender] = word.number;
        }
        match wait {
            Some(time) => greenroom::time::sleep(time).await,
            None if count % WAIT == 0 => yield_now().await,
            None => {}
        }
        word.letter.handled();
        if let Some(reply) = word.reply {
            reply.send(count);
        }
    }
}

/// Tells a word, which comes back if there is no room.
pub fn tell(to: &Address<Word>, word: Word) {
    if let Err(error) = to.tell(word) {
        error.into_inner().letter.refused();
    }
}

/// Sends a word, and waits for room.
pub async fn send(to: &Address<Word>, word: Word) {
    if let Err(error) = to.send(word).await {
        error.into_inner().letter.refused();
    }
}

/// Asks, and waits for the answer.
pub async fn ask(to: &Address<Word>, book: &'static Book) {
    let letter = book.question();
    book.asked(&to.ask(move |reply| Word::question(letter, reply)).await);
}

/// Asks, and waits for the answer for so long.
pub async fn ask_in_time(to: &Address<Word>, book: &'static Book, time: Duration) {
    let letter = book.question();
    let asked = to.ask(move |reply| Word::question(letter, reply));
    book.asked(&asked.timeout(time).await);
}
