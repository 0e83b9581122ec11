//! Loom models of the mailbox: many senders, one reader, and the turns of its actor.

mod bounded;
mod displaced;
mod loans;
mod reserved;
mod rest;
mod senders;
mod undelivered;
mod urgent;
mod wakes;

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;

use super::{Batch, Mailbox};
use crate::sync::UnsafeCell;

/// A message that records its sender. The models count letters, so a lost one or a second drop is
/// found.
struct Letter {
    from: usize,
    number: usize,
    /// Fails the model if the read of a letter is not ordered after its write.
    text: UnsafeCell<usize>,
    post: Rc<Post>,
}

/// The counts of letters written and dropped.
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

    /// Returns how many letters were written and not dropped yet.
    fn under_way(&self) -> usize {
        let under_way = self.written.get().checked_sub(self.dropped.get());
        under_way.expect("a letter was dropped twice")
    }
}

impl Letter {
    /// Returns the sender and the letter's number among those of that sender.
    #[expect(unsafe_code, reason = "the cell is the letter's own")]
    fn read(self) -> (usize, usize) {
        // SAFETY: the owner of the letter owns its text.
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
        Poll::Ready(letter) => letter.map(Letter::read),
        Poll::Pending => None,
    }
}

/// Asserts that each of these letters was read once, and those of one sender in the order sent.
fn assert_in_order(read: &[(usize, usize)], letters_of: &[usize]) {
    for (sender, &letters) in letters_of.iter().enumerate() {
        let of_sender = read.iter().filter(|(from, _)| *from == sender);
        let numbers: Vec<_> = of_sender.map(|&(_, number)| number).collect();
        assert_eq!(numbers, (0..letters).collect::<Vec<_>>(), "once, in order");
    }
}
