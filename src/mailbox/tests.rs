//! The message queue against a `VecDeque`, for every class of block; the count of queued messages.

pub(super) mod sections;

use std::collections::VecDeque;

use super::queue::{Batch, MessageQueue, Spare, TakenMessage};
use std::task::Poll;

use super::extras::{HookOptions, Hooks, MailboxOptions};
use super::{Conflation, Displacing, Mailbox};
use crate::tracer::MessageSender;

/// A message with a number, of any size and alignment.
trait Message: Sized {
    fn new(number: u64) -> Self;
    fn number(&self) -> u64;
}

macro_rules! message {
    ($name:ident, $bytes:expr $(, $attribute:meta)?) => {
        $(#[$attribute])?
        struct $name([u8; $bytes]);

        impl Message for $name {
            fn new(number: u64) -> Self {
                let mut bytes = [0; $bytes];
                let kept = number.to_le_bytes();
                let len = kept.len().min(bytes.len());
                bytes[..len].copy_from_slice(&kept[..len]);
                $name(bytes)
            }

            fn number(&self) -> u64 {
                assert_eq!(std::ptr::from_ref(self).addr() % align_of::<Self>(), 0);
                let mut kept = [0; 8];
                let len = kept.len().min(self.0.len());
                kept[..len].copy_from_slice(&self.0[..len]);
                u64::from_le_bytes(kept)
            }
        }
    };
}

message!(Nothing, 0);
message!(Byte, 1);
message!(MailboxState, 8);
message!(AlmostABlock, 48);
message!(MoreThanSmall, 49);
message!(AllOfLarge, 1016);
message!(MoreThanLarge, 1017);
message!(Huge, 9000);
message!(MoreThanHuge, 300_000);
message!(Aligned, 64, repr(align(64)));
message!(VeryAligned, 4096, repr(align(4096)));

fn push<M: Message>(queue: &mut MessageQueue<M>, number: u64) {
    let mut message = Some(M::new(number));
    let mut spare = Spare::NONE;
    while !queue.push(&mut message, &mut spare) {
        spare.provide(!queue.is_empty());
    }
}

/// Pushes and pops in random bursts, and compares the queue with the model after each step.
fn same_as_a_deque<M: Message>() {
    let mut random = fastrand::Rng::with_seed(42);
    let bursts = if size_of::<M>() > 1024 { 10 } else { 400 };
    let mut queue = MessageQueue::<M>::EMPTY;
    let mut model = VecDeque::new();
    for burst in 0..bursts {
        for number in 0..random.u64(0..200) {
            let number = number + burst;
            push(&mut queue, number);
            model.push_back(M::new(number).number());
        }
        for _ in 0..random.u64(0..220) {
            assert_eq!(
                queue
                    .take_one()
                    .map(TakenMessage::read)
                    .map(|message| message.number()),
                model.pop_front()
            );
            assert_eq!(queue.is_empty(), model.is_empty());
        }
        assert_eq!(queue.len(), model.len());
    }
    assert_eq!(queue.take().clear(), model.len());
    assert!(queue.take_one().map(TakenMessage::read).is_none());
}

#[test]
fn messages_of_any_size_and_alignment_come_out_in_order() {
    same_as_a_deque::<Nothing>();
    same_as_a_deque::<Byte>();
    same_as_a_deque::<MailboxState>();
    same_as_a_deque::<AlmostABlock>();
    same_as_a_deque::<MoreThanSmall>();
    same_as_a_deque::<AllOfLarge>();
    same_as_a_deque::<MoreThanLarge>();
    same_as_a_deque::<Huge>();
    same_as_a_deque::<Aligned>();
    same_as_a_deque::<VeryAligned>();
    let with_room = std::thread::Builder::new().stack_size(16 * 1024 * 1024);
    let test = with_room.spawn(same_as_a_deque::<MoreThanHuge>);
    test.unwrap().join().unwrap();
}

#[test]
fn a_push_without_room_leaves_the_message_where_it_is() {
    let mut queue = MessageQueue::EMPTY;
    let mut message = Some(7_u64);
    let mut none = Spare::NONE;
    assert!(!queue.push(&mut message, &mut none));
    assert_eq!(message, Some(7));
    push_one(&mut queue, 7);
    assert_eq!(queue.take_one().map(TakenMessage::read), Some(7));
}

fn push_one(queue: &mut MessageQueue<u64>, number: u64) {
    let mut spare = Spare::NONE;
    spare.provide(false);
    assert!(queue.push(&mut Some(number), &mut spare));
}

#[test]
fn len_counts_accepted_messages_until_the_reader_takes_them() {
    for capacity in [None, Some(100)] {
        let mailbox = Mailbox::with_capacity(capacity);
        assert_eq!(mailbox.len(), 0);
        for number in 1..=100_u64 {
            assert!(mailbox.tell(number).is_ok());
            assert_eq!(mailbox.len(), number as usize);
        }
        let mut batch = Batch::EMPTY;
        assert!(matches!(mailbox.receive(&mut batch), Poll::Ready(Some(1))));
        // The reader of an unbounded mailbox takes the whole queue.
        let left = if capacity.is_some() { 99 } else { 0 };
        assert_eq!(mailbox.len(), left);
        let _ = mailbox.close();
        assert!(mailbox.tell(7).is_err());
        assert_eq!(mailbox.len(), left);
        assert_eq!(mailbox.drain().clear(), left);
        assert_eq!(mailbox.len(), 0);
    }
}

#[test]
fn a_bounded_mailbox_returns_large_messages_in_order() {
    let mailbox = Mailbox::with_capacity(Some(3));
    let mut batch = Batch::EMPTY;
    let mut receive = || match mailbox.receive(&mut batch) {
        Poll::Ready(message) => message.map(|message: [u64; 512]| message[511]),
        Poll::Pending => Some(0),
    };
    for number in 1..=3 {
        assert!(mailbox.tell([number; 512]).is_ok());
    }
    assert!(mailbox.tell([4; 512]).is_err(), "there is no room");
    assert_eq!(receive(), Some(1));
    assert!(mailbox.tell([4; 512]).is_ok(), "the read has made room");
    assert_eq!([receive(), receive(), receive()], [2, 3, 4].map(Some));
    assert_eq!(receive(), Some(0), "it is empty");
    assert_eq!(mailbox.len(), 0);
    let _ = mailbox.close();
    assert_eq!(receive(), None);
}

#[test]
fn len_does_not_count_reserved_places() {
    let mailbox = Mailbox::with_capacity(Some(2));
    assert!(mailbox.reserve().is_ok());
    assert_eq!(mailbox.len(), 0);
    assert!(mailbox.fill(7_u32, None).is_ok());
    assert_eq!(mailbox.len(), 1);
}

#[test]
fn two_queues_are_taken_as_one_in_order() {
    for (urgent, plain) in [
        (0, 0),
        (0, 3),
        (3, 0),
        (1, 1),
        (2, 200),
        (200, 2),
        (300, 300),
    ] {
        let (mut first, mut second) = (MessageQueue::EMPTY, MessageQueue::EMPTY);
        (0..urgent).for_each(|number| push::<MailboxState>(&mut first, number));
        (urgent..urgent + plain).for_each(|number| push(&mut second, number));
        let mut all = first.take_before(&mut second);
        assert!(first.is_empty() && second.is_empty());
        assert_eq!(all.len(), (urgent + plain) as usize);
        let numbers = std::iter::from_fn(|| all.pop()).map(|message| message.number());
        assert!(numbers.eq(0..urgent + plain));
    }
}

#[test]
fn a_table_of_keys_forgets_those_that_were_received() {
    let displacing = Displacing {
        conflation: Some(Conflation::new(Box::new(|number: &u64| {
            u128::from(*number)
        }))),
        ..Displacing::default()
    };
    let hooks = HookOptions {
        displacing: Some(displacing),
        ..HookOptions::default()
    };
    let mailbox = Mailbox::new(MailboxOptions {
        hooks: Some(Box::new(Hooks::new(hooks))),
        ..MailboxOptions::of(Some(10))
    });
    let displacing = mailbox.displacing().unwrap();
    let conflation = displacing.conflation.as_ref().unwrap();
    let mut batch = Batch::EMPTY;
    for number in 0..10_000 {
        let put = |mut message| {
            let key = u128::from(number);
            mailbox
                .conflate(conflation, key, &mut message, false, &MessageSender::NONE)
                .ok()
                .unwrap()
        };
        assert!(!put(Some(number)).is_in_place);
        let replaced = put(Some(number));
        assert!(replaced.is_in_place && replaced.displaced.is_some());
        assert!(matches!(mailbox.receive(&mut batch), Poll::Ready(Some(read)) if read == number));
        assert!(conflation.entries() <= 128);
    }
}
