//! Model 3, and more of model 8: permits among messages, against a close and the line.

use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use ::loom::thread::spawn;

use super::super::Mailbox;
use super::bounded::{begin, is_notified, pass_on, receive};
use super::{Letter, Post, assert_in_order};

/// Checks that the messages of one sender stay in order, with permits or not, whatever
/// another sender does at the same time.
#[test]
fn model_03_messages_and_reserved_places_of_one_sender_stay_in_order() {
    ::loom::model(|| {
        let (mailbox, post) = (
            Rc::new(Mailbox::with_capacity(Some(3))),
            Rc::new(Post::default()),
        );
        let other = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || {
                pass_on(
                    &mailbox,
                    mailbox.tell(post.letter(1, 0)).expect("it is open"),
                )
            }
        });
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || {
                mailbox.reserve().expect("it is open");
                pass_on(
                    &mailbox,
                    mailbox
                        .fill(post.letter(0, 0), None)
                        .ok()
                        .expect("the mailbox was not drained"),
                );
                pass_on(
                    &mailbox,
                    mailbox.tell(post.letter(0, 1)).expect("it is open"),
                );
            }
        });
        let read = [(); 3].map(|()| receive(&mailbox).expect("it is open"));
        sender.join().unwrap();
        other.join().unwrap();
        assert_in_order(&read, &[2, 1]);
        assert_eq!(post.under_way(), 0, "each letter is dropped once");
    });
}

/// Checks that a closed mailbox ends once its last permit is used, and not before.
#[test]
fn model_08_a_closed_mailbox_ends_after_its_last_place_is_filled() {
    ::loom::model(|| {
        let (mailbox, post) = (
            Rc::new(Mailbox::with_capacity(None)),
            Rc::new(Post::default()),
        );
        mailbox.reserve().expect("it is open");
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || {
                pass_on(
                    &mailbox,
                    mailbox
                        .fill(post.letter(0, 0), None)
                        .ok()
                        .expect("the mailbox was not drained"),
                )
            }
        });
        pass_on(&mailbox, mailbox.close());
        let read = receive(&mailbox).expect("a permit was given before the close");
        assert!(receive(&mailbox).is_none(), "no other message comes");
        sender.join().unwrap();
        assert_in_order(&[read], &[1]);
        assert_eq!(post.under_way(), 0, "the letter is dropped once");
    });
}

/// Checks that a closed mailbox also ends once its last permit is given up.
#[test]
fn model_08_a_closed_mailbox_ends_after_its_last_place_is_given_up() {
    ::loom::model(|| {
        let mailbox: Rc<Mailbox<Letter>> = Rc::new(Mailbox::with_capacity(None));
        mailbox.reserve().expect("it is open");
        let sender = spawn({
            let mailbox = mailbox.clone();
            move || pass_on(&mailbox, mailbox.give_up_permit::<false>())
        });
        pass_on(&mailbox, mailbox.close());
        assert!(receive(&mailbox).is_none(), "no message came");
        sender.join().unwrap();
    });
}

/// Checks that a sender that gives up its permit, before or after the grant, does not delay the next
/// one.
#[test]
fn model_08_a_place_that_is_given_up_goes_to_the_next_in_line() {
    ::loom::model(|| {
        let (mailbox, post) = (
            Rc::new(Mailbox::with_capacity(Some(1))),
            Rc::new(Post::default()),
        );
        assert!(begin(&mailbox, post.letter(0, 0), Waker::noop()).is_none());
        let mut entry = None;
        let mut cx = Context::from_waker(Waker::noop());
        assert!(
            mailbox
                .poll_reserve::<false>(&mut entry, &mut cx)
                .is_pending()
        );
        let (bell, waker) = super::bounded::Bell::new();
        let next = begin(&mailbox, post.letter(1, 0), &waker).expect("there is no room");
        let reader = spawn({
            let mailbox = mailbox.clone();
            move || [receive(&mailbox), receive(&mailbox)].map(|read| read.expect("it is open"))
        });
        match mailbox.poll_reserve::<false>(&mut entry, &mut cx) {
            Poll::Ready(granted) => {
                granted.expect("it is open");
                pass_on(&mailbox, mailbox.give_up_permit::<false>());
            }
            Poll::Pending => pass_on(
                &mailbox,
                mailbox.leave_line::<false>(entry.take().expect("the sender waits")),
            ),
        }
        assert!(
            is_notified(&mailbox, next, &bell),
            "the next sender is accepted"
        );
        assert_in_order(&reader.join().unwrap(), &[1, 1]);
        assert_eq!(post.under_way(), 0, "each letter is dropped by its reader");
    });
}
