//! The number of critical sections that an operation takes: what contends, and no instruction count
//! shows.
//!
//! The counts are exact, since one thread uses the mailbox.

use std::cell::Cell;
use std::task::{Context, Poll, Waker};

use super::super::{Batch, LineEntry, Mailbox};
use crate::tracer::MessageSender;

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
}

/// Counts a critical section of this thread.
pub(in super::super) fn count() {
    COUNT.set(COUNT.get() + 1);
}

/// Returns the number of critical sections of `f`.
fn sections(f: impl FnOnce()) -> u32 {
    let before = COUNT.get();
    f();
    COUNT.get() - before
}

/// Polls a send of `number` once. Returns the entry of the sender if it waits.
fn send(mailbox: &Mailbox<u64>, number: u64) -> Option<LineEntry<u64>> {
    let (mut message, mut entry) = (Some(number), None);
    let mut context = Context::from_waker(Waker::noop());
    let sent = mailbox.poll_send(&mut message, &mut entry, &MessageSender::NONE, &mut context);
    assert_eq!(sent.is_pending(), entry.is_some());
    entry
}

fn receive(mailbox: &Mailbox<u64>, number: u64) {
    let mut batch = Batch::EMPTY;
    let received = mailbox.receive(&mut batch);
    assert!(matches!(received, Poll::Ready(Some(found)) if found == number));
}

/// Returns a bounded mailbox of 100 that is full.
fn full() -> Mailbox<u64> {
    let mailbox = Mailbox::with_capacity(Some(100));
    (0..100).for_each(|number| assert!(send(&mailbox, number).is_none()));
    mailbox
}

#[test]
fn a_full_mailbox_of_100_is_read_in_100_critical_sections() {
    let mailbox = full();
    assert_eq!(
        sections(|| (0..100).for_each(|number| receive(&mailbox, number))),
        100
    );
}

#[test]
fn a_hundred_messages_are_sent_in_a_critical_section_each_and_one_for_each_further_block() {
    // A first block of a few messages, and then one of 127.
    assert_eq!(sections(|| drop(full())), 101);
}

#[test]
fn a_sender_without_room_takes_two_critical_sections_to_wait() {
    let mailbox = full();
    let mut entry = None;
    assert_eq!(sections(|| entry = send(&mailbox, 100)), 2);
    let _ = mailbox.close();
    mailbox.refuse_line();
    assert_eq!(entry.and_then(|entry| mailbox.give_up(entry)), Some(100));
}

#[test]
fn a_read_that_lets_a_sender_in_takes_two_critical_sections() {
    let mailbox = full();
    let entries = [100, 101].map(|number| send(&mailbox, number).expect("there is no room"));
    assert_eq!(sections(|| receive(&mailbox, 0)), 2);
    assert_eq!(sections(|| receive(&mailbox, 1)), 2);
    assert_eq!(sections(|| receive(&mailbox, 2)), 1);
    for entry in entries {
        assert_eq!(mailbox.give_up(entry), None, "the mailbox took it");
    }
}

#[test]
fn the_reader_of_an_unbounded_mailbox_takes_a_hundred_messages_in_one_critical_section() {
    let mailbox = Mailbox::with_capacity(None);
    (0..100_u64).for_each(|number| assert!(mailbox.tell(number).is_ok()));
    let mut batch = Batch::EMPTY;
    let read = sections(|| {
        for number in 0..100 {
            let received = mailbox.receive(&mut batch);
            assert!(matches!(received, Poll::Ready(Some(found)) if found == number));
        }
    });
    assert_eq!(read, 1);
}
