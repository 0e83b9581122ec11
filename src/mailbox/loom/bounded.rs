//! Model 8: senders that wait for room, against the reader, a close, and senders that give up.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::loom::thread::spawn;

use super::super::{Batch, Flags, LineEntry, Mailbox, Wake};
use super::{Letter, Post, assert_in_order, take};
use crate::park::Parker;
use crate::tracer::MessageSender;

/// Unparks a thread of the model when woken.
pub(super) struct Bell(Parker);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Bell {
    pub(super) fn new() -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell(Parker::new()));
        (bell.clone(), Waker::from(bell))
    }
}

pub(super) fn pass_on(mailbox: &Mailbox<Letter>, wake: Wake) {
    match wake {
        Wake::Nobody => {}
        Wake::Foreign => mailbox.wake_receiver(),
        Wake::Actor | Wake::Both => panic!("the reader waits in another task"),
    }
}

/// Polls a send once. Returns the entry of the sender if it has to wait.
pub(super) fn begin(
    mailbox: &Mailbox<Letter>,
    letter: Letter,
    waker: &Waker,
) -> Option<LineEntry<Letter>> {
    let (mut letter, mut entry) = (Some(letter), None);
    match mailbox.poll_send(
        &mut letter,
        &mut entry,
        &MessageSender::NONE,
        &mut Context::from_waker(waker),
    ) {
        Poll::Ready(Ok(wake)) => pass_on(mailbox, wake),
        Poll::Ready(Err(_)) => panic!("the mailbox is open"),
        Poll::Pending => {}
    }
    entry
}

/// Blocks until the letter is accepted, or returns false if it is refused.
fn send(mailbox: &Mailbox<Letter>, letter: Letter) -> bool {
    let (bell, waker) = Bell::new();
    let (mut letter, mut entry) = (Some(letter), None);
    loop {
        match mailbox.poll_send(
            &mut letter,
            &mut entry,
            &MessageSender::NONE,
            &mut Context::from_waker(&waker),
        ) {
            Poll::Ready(Ok(wake)) => {
                pass_on(mailbox, wake);
                return true;
            }
            Poll::Ready(Err(_)) => return false,
            Poll::Pending => drop(bell.0.park(None)),
        }
    }
}

/// Blocks until the next letter, or returns `None` if the mailbox is closed.
pub(super) fn receive(mailbox: &Mailbox<Letter>) -> Option<(usize, usize)> {
    let (bell, waker) = Bell::new();
    let mut batch = Batch::EMPTY;
    loop {
        match mailbox.receive(&mut batch) {
            Poll::Ready(letter) => return letter.map(Letter::read),
            Poll::Pending => {}
        }
        if mailbox.wait(&waker) {
            bell.0.park(None);
        }
    }
}

/// Checks the invariants that hold whenever the lock is free.
fn audit(mailbox: &Mailbox<Letter>) {
    mailbox.lock(|flags, contents| {
        let filled = !contents.queue.is_empty();
        assert_eq!(flags.has(Flags::FILLED), filled, "MAILBOX-2");
        let bound = contents.bound().expect("it is bounded");
        assert_eq!(bound.len > 0, filled, "the count is the queue's");
        assert!(bound.len <= bound.capacity, "MAILBOX-3");
        assert!(
            bound.line.is_empty() || flags.has(Flags::WAITED_FOR),
            "MAILBOX-2"
        );
    });
}

/// Creates a mailbox of capacity 1 that contains letter 0, with waiting senders of the next
/// letters.
fn filled(waiting: &[&Waker]) -> (Rc<Mailbox<Letter>>, Rc<Post>, Vec<LineEntry<Letter>>) {
    let (mailbox, post) = (
        Rc::new(Mailbox::with_capacity(Some(1))),
        Rc::new(Post::default()),
    );
    let first = begin(&mailbox, post.letter(0, 0), Waker::noop());
    assert!(first.is_none(), "there is room");
    let wait = |(at, waker): (usize, &&Waker)| begin(&mailbox, post.letter(at + 1, 0), waker);
    let waits = |entry: Option<_>| entry.expect("there is no room");
    let entries = waiting.iter().enumerate().map(wait).map(waits).collect();
    (mailbox, post, entries)
}

/// Waits until the sender is woken, and returns whether its letter was accepted.
pub(super) fn is_notified(
    mailbox: &Mailbox<Letter>,
    entry: LineEntry<Letter>,
    bell: &Bell,
) -> bool {
    bell.0.park(None);
    let mut context = Context::from_waker(Waker::noop());
    match mailbox.poll_send(
        &mut None,
        &mut Some(entry),
        &MessageSender::NONE,
        &mut context,
    ) {
        Poll::Ready(sent) => sent.is_ok(),
        Poll::Pending => panic!("woken for nothing"),
    }
}

/// Checks that a sender that finds the mailbox full gets the room that the reader frees meanwhile.
#[test]
fn model_08_a_sender_that_waits_gets_the_place_that_is_freed() {
    ::loom::model(|| {
        let (mailbox, post, _) = filled(&[]);
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || assert!(send(&mailbox, post.letter(1, 0)), "the mailbox is open")
        });
        let first = receive(&mailbox).expect("the mailbox is open");
        audit(&mailbox);
        let read = [first, receive(&mailbox).expect("the mailbox is open")];
        sender.join().unwrap();
        audit(&mailbox);
        assert_in_order(&read, &[1, 1]);
        assert_eq!(post.under_way(), 0, "each letter is dropped by its reader");
    });
}

/// Checks that a sender that gives up, before or after the grant, does not delay the senders behind
/// it.
#[test]
fn model_08_a_sender_that_gives_up_passes_its_place_on() {
    ::loom::model(|| {
        let (bell, waker) = Bell::new();
        let (mailbox, post, entries) = filled(&[Waker::noop(), &waker]);
        let [first, second] = entries
            .try_into()
            .unwrap_or_else(|_| unreachable!("two wait"));
        let impatient = spawn({
            let mailbox = mailbox.clone();
            move || mailbox.give_up(first).is_none()
        });
        let mut batch = Batch::EMPTY;
        let mut read = vec![take(&mailbox, &mut batch).expect("the mailbox is filled")];
        audit(&mailbox);
        let accepted = impatient.join().unwrap();
        read.extend(std::iter::from_fn(|| take(&mailbox, &mut batch)));
        assert!(is_notified(&mailbox, second, &bell), "the mailbox is open");
        audit(&mailbox);
        assert_in_order(&read, &[1, usize::from(accepted), 1]);
        assert_eq!(
            post.under_way(),
            0,
            "each letter is dropped by its reader or sender"
        );
    });
}

/// Checks that a sender that is neither polled again nor dropped delays no other sender. Its letter
/// is delivered.
#[test]
fn model_08_a_sender_never_polled_again_delays_no_other_sender() {
    ::loom::model(|| {
        let (mailbox, post, forgotten) = filled(&[Waker::noop()]);
        let patient = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || assert!(send(&mailbox, post.letter(2, 0)), "the mailbox is open")
        });
        let mut batch = Batch::EMPTY;
        let mut read = vec![take(&mailbox, &mut batch).expect("the mailbox is filled")];
        read.push(take(&mailbox, &mut batch).expect("the next one's letter was taken"));
        read.push(receive(&mailbox).expect("the mailbox is open"));
        patient.join().unwrap();
        assert_in_order(&read, &[1, 1, 1]);
        assert_eq!(post.under_way(), 0, "each letter is dropped by its reader");
        for entry in forgotten {
            assert!(mailbox.give_up(entry).is_none(), "the mailbox took it");
        }
    });
}

/// Checks that a close wakes a waiting sender, which gets its letter back unless that was accepted.
#[test]
fn model_08_a_close_wakes_a_sender_that_waits() {
    ::loom::model(|| {
        let (bell, waker) = Bell::new();
        let (mailbox, post, entries) = filled(&[&waker]);
        let closer = spawn({
            let mailbox = mailbox.clone();
            move || pass_on(&mailbox, mailbox.close())
        });
        let mut batch = Batch::EMPTY;
        let mut read = vec![take(&mailbox, &mut batch).expect("the mailbox is filled")];
        read.extend(take(&mailbox, &mut batch));
        let accepted = entries
            .into_iter()
            .all(|entry| is_notified(&mailbox, entry, &bell));
        closer.join().unwrap();
        read.extend(std::iter::from_fn(|| take(&mailbox, &mut batch)));
        audit(&mailbox);
        assert_in_order(&read, &[1, usize::from(accepted)]);
        assert_eq!(
            post.under_way(),
            0,
            "each letter is dropped by its reader or sender"
        );
    });
}

/// Checks that a close also refuses a sender that is about to wait.
#[test]
fn model_08_a_close_refuses_a_sender_that_is_about_to_wait() {
    ::loom::model(|| {
        let (mailbox, post, _) = filled(&[]);
        let patient = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || send(&mailbox, post.letter(1, 0))
        });
        pass_on(&mailbox, mailbox.close());
        assert!(!patient.join().unwrap(), "there was no room");
        audit(&mailbox);
        assert_eq!(mailbox.drain().clear(), 1, "the accepted letter is drained");
        assert_eq!(
            post.under_way(),
            0,
            "each letter is dropped by its reader or sender"
        );
    });
}
