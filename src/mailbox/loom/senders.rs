//! Models 1, 2, 6 and 7: each message is read once and in order, or refused, or dropped.

use std::rc::Rc;
use std::task::Poll;

use ::loom::thread::spawn;

use super::super::{Batch, Mailbox};
use super::{Post, assert_in_order, take};

/// Runs one sender for each element, which sends that many letters, against a reader that polls
/// `looks` times before they have finished.
fn reads_all_in_order(letters_of: &'static [usize], looks: usize) {
    ::loom::model(move || {
        let (mailbox, post) = (
            Rc::new(Mailbox::with_capacity(None)),
            Rc::new(Post::default()),
        );
        let senders = letters_of.iter().enumerate().map(|(from, &letters)| {
            let (mailbox, post) = (mailbox.clone(), post.clone());
            spawn(move || {
                for number in 0..letters {
                    assert!(
                        mailbox.tell(post.letter(from, number)).is_ok(),
                        "the mailbox is open"
                    );
                }
            })
        });
        let senders: Vec<_> = senders.collect();
        let reader = spawn({
            let mailbox = mailbox.clone();
            move || {
                let mut batch = Batch::EMPTY;
                let read = (0..looks).filter_map(|_| take(&mailbox, &mut batch));
                (read.collect::<Vec<_>>(), batch)
            }
        });
        for sender in senders {
            sender.join().unwrap();
        }
        let (mut read, mut batch) = reader.join().unwrap();
        read.extend(std::iter::from_fn(|| take(&mailbox, &mut batch)));
        assert_in_order(&read, letters_of);
        assert_eq!(post.under_way(), 0, "each letter is dropped by its reader");
    });
}

/// Checks that the letters of two senders are all read.
#[test]
fn model_01_two_senders_of_one_message_are_both_read() {
    reads_all_in_order(&[1, 1], 2);
}

/// Checks that the letters of three senders are all read, if the reader starts after them.
#[test]
fn model_01_three_senders_of_one_message_are_all_read() {
    reads_all_in_order(&[1, 1, 1], 0);
}

/// Checks that the letters of each sender are read in the order sent.
#[test]
fn model_02_two_senders_of_two_messages_are_read_in_order() {
    reads_all_in_order(&[2, 2], 1);
}

/// Checks that the reader receives every accepted message before it sees the close. No message is
/// accepted after the close, and a refused one is returned.
#[test]
fn model_06_a_close_loses_no_message_that_was_accepted() {
    ::loom::model(|| {
        let (mailbox, post) = (
            Rc::new(Mailbox::with_capacity(None)),
            Rc::new(Post::default()),
        );
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || [0, 1].map(|number| mailbox.tell(post.letter(0, number)).is_ok())
        });
        let closer = spawn({
            let mailbox = mailbox.clone();
            move || {
                let _ = mailbox.close();
            }
        });
        let reader = spawn({
            let mailbox = mailbox.clone();
            move || {
                let (mut batch, mut read) = (Batch::EMPTY, Vec::new());
                let received = mailbox.receive(&mut batch);
                let closed = matches!(received, Poll::Ready(None));
                if let Poll::Ready(Some(letter)) = received {
                    read.push(letter.read());
                }
                (batch, read, closed)
            }
        });
        closer.join().unwrap();
        let accepted = sender.join().unwrap();
        let (mut batch, mut read, closed) = reader.join().unwrap();
        if !closed {
            read.extend(std::iter::from_fn(|| take(&mailbox, &mut batch)));
        }
        assert!(accepted[0] || !accepted[1], "a close is final");
        assert_in_order(&read, &[accepted.map(usize::from).iter().sum()]);
        assert_eq!(
            post.under_way(),
            0,
            "each letter is dropped by its reader or sender"
        );
    });
}

/// Checks that a drain after the close takes every accepted message. Later ones are refused,
/// although their sender still has the mailbox.
#[test]
fn model_07_a_drain_after_the_close_takes_every_accepted_message() {
    ::loom::model(|| {
        let (mailbox, post) = (
            Rc::new(Mailbox::with_capacity(None)),
            Rc::new(Post::default()),
        );
        let send = |number| mailbox.tell(post.letter(0, number));
        assert!(send(0).is_ok(), "the mailbox is open");
        let late = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || {
                let sent = [1, 2].map(|number| mailbox.tell(post.letter(1, number)).is_ok());
                sent.into_iter().filter(|&accepted| accepted).count()
            }
        });
        let _ = mailbox.close();
        let dropped = mailbox.drain().clear();
        let accepted = 1 + late.join().unwrap();
        assert_eq!(dropped, accepted, "what was accepted is drained");
        assert_eq!(post.under_way(), 0, "each letter is dropped once");
        drop(mailbox);
        assert_eq!(post.under_way(), 0, "each letter is dropped once");
    });
}
