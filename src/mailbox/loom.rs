//! Models of the mailbox: many senders, one reader, and the run of the actor that it belongs to.

mod bounded;
mod reserved;
mod rest;
mod senders;
mod wakes;

use std::cell::Cell;
use std::rc::Rc;

use super::{Batch, Mailbox, Received};
use crate::sync::UnsafeCell;

/// A message that knows who sent it, and of which every copy is missed and no second drop allowed.
struct Letter {
    from: usize,
    number: usize,
    /// Fails the model if the one who reads it does not see what the one who wrote it did.
    text: UnsafeCell<usize>,
    post: Rc<Post>,
}

/// How many letters there are.
#[derive(Default)]
struct Post {
    written: Cell<usize>,
    dropped: Cell<usize>,
}

impl Post {
    fn letter(self: &Rc<Self>, from: usize, number: usize) -> Letter {
        self.written.set(self.written.get() + 1);
        Letter {
            from,
            number,
            text: UnsafeCell::new(number),
            post: self.clone(),
        }
    }

    /// How many letters are neither lost nor dropped.
    fn under_way(&self) -> usize {
        let under_way = self.written.get().checked_sub(self.dropped.get());
        under_way.expect("a letter was dropped twice")
    }
}

impl Letter {
    /// Who sent it, and which of theirs it is.
    #[expect(unsafe_code, reason = "the cell is the letter's own")]
    fn read(self) -> (usize, usize) {
        // SAFETY: whoever has the letter has its text.
        let number = self.text.with_mut(|text| unsafe { *text });
        assert_eq!(number, self.number, "the letter is as it was written");
        (self.from, number)
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        self.post.dropped.set(self.post.dropped.get() + 1);
    }
}

/// Takes one letter, if there is one.
fn take(mailbox: &Mailbox<Letter>, batch: &mut Batch<Letter>) -> Option<(usize, usize)> {
    match mailbox.receive(batch) {
        Received::Message(letter) => Some(letter.read()),
        Received::Empty | Received::Closed => None,
    }
}

/// Each of these senders' letters was read once, in the order in which they were sent.
fn assert_in_order(read: &[(usize, usize)], letters_of: &[usize]) {
    for (sender, &letters) in letters_of.iter().enumerate() {
        let of_sender = read.iter().filter(|(from, _)| *from == sender);
        let numbers: Vec<_> = of_sender.map(|&(_, number)| number).collect();
        assert_eq!(numbers, (0..letters).collect::<Vec<_>>(), "once, in order");
    }
}
