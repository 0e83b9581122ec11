//! What a link does with frames that no honest node sends.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::frame::{FrameError, LENGTH, LinkFrame, StreamEnd, Window, first};
use super::{BACKLOG, Link, LinkOwner, OutgoingHandle, Target, lock};
use crate::ask::RemoteAsk;
use crate::error::RemoteAskError;
use crate::fuzzing::{ACTOR, Desk, FRAME, Kept, Note};
use crate::remote::Remote;

impl Remote for Note {
    const KIND: &'static str = "note/1";
}

/// More than an actor here grants.
const WIDE: Window = Window {
    messages: 1 << 20,
    bytes: 1 << 20,
};

/// Gives a frame to a link.
fn take(link: &Arc<Link>, frame: &LinkFrame<'_>, payload: &[u8]) -> Result<(), FrameError> {
    let bytes = frame.encode();
    link.frame(&[&bytes[LENGTH..], payload].concat())
}

/// Returns the heads of the frames that went out since the last call.
fn went(wire: &Kept) -> Vec<String> {
    let bytes = std::mem::take(&mut *lock(&wire.0));
    let mut rest = &bytes[..];
    let mut heads = Vec::new();
    while let Some(frame) = first(rest, FRAME).unwrap() {
        heads.push(format!("{:?}", LinkFrame::decode(frame).unwrap().0));
        rest = &rest[LENGTH + frame.len()..];
    }
    heads
}

fn open(link: &Arc<Link>, stream: u64) {
    let kind = "note/1".into();
    take(
        link,
        &LinkFrame::Open {
            stream,
            actor: ACTOR,
            kind,
            window: WIDE,
        },
        &[],
    )
    .unwrap();
}

/// Encodes a note whose reply has this number.
fn note(text: &str, ask: u64) -> Vec<u8> {
    postcard::to_allocvec(&(text, ask)).unwrap()
}

#[test]
fn a_message_is_taken_and_answered() {
    let (desk, link, wire) = Desk::link();
    open(&link, 1);
    take(&link, &LinkFrame::Message { stream: 1 }, &note("answer", 5)).unwrap();
    assert_eq!(went(&wire), ["Answer { ask: 5 }"]);
    take(&link, &LinkFrame::Message { stream: 1 }, &note("kept", 6)).unwrap();
    assert_eq!(link.status().answering, 1);
    take(&link, &LinkFrame::Unwanted { ask: 6 }, &[]).unwrap();
    let note = lock(&desk.taken).pop().unwrap();
    assert!(!note.reply.is_wanted());
}

#[test]
fn an_ask_whose_number_is_used_again_is_unwanted() {
    let (desk, link, wire) = Desk::link();
    open(&link, 1);
    for text in ["first", "second"] {
        take(&link, &LinkFrame::Message { stream: 1 }, &note(text, 5)).unwrap();
    }
    let notes = std::mem::take(&mut *lock(&desk.taken));
    let wanted: Vec<bool> = notes.iter().map(|note| note.reply.is_wanted()).collect();
    assert_eq!(wanted, [false, true]);
    went(&wire);
    notes
        .into_iter()
        .for_each(|note| note.reply.send("x".into()));
    assert_eq!(went(&wire), ["Answer { ask: 5 }"]);
}

#[test]
fn frames_that_belong_to_nothing_are_counted_and_dropped() {
    let (desk, link, wire) = Desk::link();
    let credit = LinkFrame::Credit {
        stream: 1,
        messages: 9,
        bytes: 9,
    };
    let strays = [
        (LinkFrame::Message { stream: 1 }, &note("x", 0)[..]),
        (LinkFrame::Answer { ask: 1 }, &[1, b'x']),
        (credit, &[]),
        (LinkFrame::Close { stream: 3 }, &[]),
    ];
    for (frame, payload) in &strays {
        take(&link, frame, payload).unwrap();
    }
    assert_eq!(desk.counts.stray.get(), strays.len() as u64);
    assert!(went(&wire).is_empty());
    assert!(lock(&desk.taken).is_empty());
}

#[test]
fn a_stream_that_cannot_be_opened_ends_with_the_reason() {
    let (_desk, link, wire) = Desk::link();
    let refused = |stream, actor, kind: &'static str| {
        take(
            &link,
            &LinkFrame::Open {
                stream,
                actor,
                kind: kind.into(),
                window: WIDE,
            },
            &[],
        )
        .unwrap();
        went(&wire).pop().unwrap_or_default()
    };
    assert!(refused(1, 1, "note/1").contains("Unknown"));
    assert!(refused(2, ACTOR, "note/2").contains("WrongKind(\"note/1\")"));
    for number in 0..4 {
        assert_eq!(refused(3 + number, ACTOR + number, "note/1"), "");
    }
    assert!(refused(3, ACTOR + 4, "note/1").contains("the stream 3 is open already"));
    // A window is given once.
    assert!(refused(9, ACTOR, "note/1").contains("a stream to this actor is open already"));
    assert!(refused(9, ACTOR + 4, "note/1").contains("TooMany { limit: 4 }"));
}

#[test]
fn a_sender_that_exceeds_its_window_loses_the_stream() {
    let (_desk, link, wire) = Desk::link();
    open(&link, 1);
    for _ in 0..8 {
        take(&link, &LinkFrame::Message { stream: 1 }, &note("full", 0)).unwrap();
    }
    assert!(went(&wire).is_empty());
    take(&link, &LinkFrame::Message { stream: 1 }, &note("full", 0)).unwrap();
    let ended = went(&wire).pop().unwrap();
    assert!(
        ended.contains("9 messages are under way, more than 8"),
        "{ended}"
    );
    assert_eq!(link.status().incoming, 0);
}

/// NodeCounts how often it wakes.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_wait_for_room_ends_with_its_stream() {
    let (desk, link, _wire) = Desk::link();
    let message = LinkFrame::Message { stream: 1 };
    let ends: [&dyn Fn(); 3] = [
        &|| take(&link, &LinkFrame::Close { stream: 1 }, &[]).unwrap(),
        &|| link.actor_ended(ACTOR),
        &|| link.down(),
    ];
    for end in ends {
        open(&link, 1);
        take(&link, &message, &note("full", 0)).unwrap();
        let mut task = lock(&desk.tasks).pop().unwrap();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        assert!(task.as_mut().poll(&mut context).is_pending());
        end();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(task.as_mut().poll(&mut context).is_ready());
    }
}

#[test]
fn credit_is_given_back_in_portions() {
    let (_desk, link, wire) = Desk::link();
    open(&link, 1);
    for _ in 0..4 {
        take(&link, &LinkFrame::Message { stream: 1 }, &note("x", 0)).unwrap();
    }
    let (messages, bytes) = (2, 2 * (LENGTH + 2 + note("x", 0).len()) as u32);
    let credit = format!(
        "{:?}",
        LinkFrame::Credit {
            stream: 1,
            messages,
            bytes
        }
    );
    assert_eq!(went(&wire), [credit.clone(), credit]);
}

#[test]
fn frames_that_are_cut_off_or_too_long_are_errors() {
    let (_desk, link, _wire) = Desk::link();
    let kind = "note/1".into();
    let whole = LinkFrame::Open {
        stream: 300,
        actor: ACTOR,
        kind,
        window: WIDE,
    }
    .encode();
    let whole = &whole[LENGTH..];
    for length in 0..whole.len() {
        assert!(link.frame(&whole[..length]).is_err(), "{length} bytes");
    }
    assert!(link.frame(&[whole, &[0]].concat()).is_err());
    assert!(link.frame(&[99]).is_err());
    let too_large = first(&[0, 0, 1, 0, 9], FRAME).unwrap_err();
    assert_eq!(
        too_large,
        FrameError::TooLarge {
            bytes: 65536,
            limit: FRAME as u64
        }
    );
    assert_eq!(first(&[5, 0, 0, 0, 9], FRAME), Ok(None));
    assert_eq!(first(&[1, 0, 0], FRAME), Ok(None));
}

/// Returns a stream to an actor of the peer, over this link.
fn stream(desk: &Arc<Desk>, link: &Arc<Link>) -> OutgoingHandle {
    let window = Window {
        messages: 2,
        bytes: 1000,
    };
    let kind = "note/1".into();
    let stream = desk.outgoing(Target {
        node: "peer".into(),
        incarnation: 1,
        actor: 3,
        kind,
        window,
    });
    stream.bind(link);
    stream
}

fn ask(
    text: &'static str,
    stream: &OutgoingHandle,
) -> impl Future<Output = Result<String, RemoteAskError>> {
    let stream = stream.clone();
    async move {
        RemoteAsk::new(&stream, |reply| Note {
            text: text.into(),
            reply,
        })
        .await
    }
}

fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[test]
fn a_stream_end_fails_the_asks_that_were_not_taken() {
    let (desk, link, wire) = Desk::link();
    let stream = stream(&desk, &link);
    let (mut first, mut second) = (pin!(ask("a", &stream)), pin!(ask("b", &stream)));
    assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
    assert_eq!(went(&wire).len(), 3);
    let why = StreamEnd::Closed;
    take(
        &link,
        &LinkFrame::Ended {
            stream: 1,
            taken: 1,
            why,
        },
        &[],
    )
    .unwrap();
    assert_eq!(poll(second), Some(Err(RemoteAskError::Closed)));
    assert!(poll(first.as_mut()).is_none());
    take(&link, &LinkFrame::Answer { ask: 1 }, &[1, b'x']).unwrap();
    assert_eq!(poll(first), Some(Ok("x".into())));
}

#[test]
fn an_answer_counts_once() {
    let (desk, link, _wire) = Desk::link();
    let stream = stream(&desk, &link);
    let mut asked = pin!(ask("a", &stream));
    assert!(poll(asked.as_mut()).is_none());
    for text in [b'x', b'y'] {
        take(&link, &LinkFrame::Answer { ask: 1 }, &[1, text]).unwrap();
    }
    assert_eq!(poll(asked), Some(Ok("x".into())));
    assert_eq!(desk.counts.stray.get(), 1);
}

#[test]
fn an_ask_that_is_dropped_is_unwanted() {
    let (desk, link, wire) = Desk::link();
    let stream = stream(&desk, &link);
    {
        let mut asked = pin!(ask("a", &stream));
        assert!(poll(asked.as_mut()).is_none());
        went(&wire);
    }
    assert_eq!(went(&wire), ["Unwanted { ask: 1 }"]);
    assert_eq!(link.status().asks, 0);
}

#[test]
fn credit_beyond_the_window_is_not_used() {
    let (desk, link, wire) = Desk::link();
    let stream = stream(&desk, &link);
    let (messages, bytes) = (u32::MAX, u32::MAX);
    take(
        &link,
        &LinkFrame::Credit {
            stream: 1,
            messages,
            bytes,
        },
        &[],
    )
    .unwrap();
    let mut asks: Vec<_> = (0..9).map(|_| Box::pin(ask("a", &stream))).collect();
    assert!(asks.iter_mut().all(|ask| poll(ask.as_mut()).is_none()));
    let sent = went(&wire)
        .iter()
        .filter(|head| head.starts_with("Message"))
        .count();
    assert_eq!(sent, 2);
}

#[test]
fn credit_that_a_permit_still_holds_does_not_keep_the_stream() {
    let (desk, link, wire) = Desk::link();
    let stream = stream(&desk, &link);
    went(&wire);
    let kept = std::ops::Deref::deref(&stream).clone();
    let permit = kept.try_permit().unwrap();
    let (messages, bytes) = (1, 0);
    let credit = LinkFrame::Credit {
        stream: 1,
        messages,
        bytes,
    };
    take(&link, &credit, &[]).unwrap();
    drop(permit);
    drop(stream);
    assert_eq!(went(&wire), ["Close { stream: 1 }"]);
}

#[test]
fn behind_a_backlog_senders_wait_and_credit_is_held_back() {
    let (desk, link, wire) = Desk::link();
    let stream = stream(&desk, &link);
    open(&link, 1);
    went(&wire);
    wire.1.store(BACKLOG, Ordering::Relaxed);
    let mut asked = pin!(ask("a", &stream));
    assert!(poll(asked.as_mut()).is_none());
    for _ in 0..2 {
        take(&link, &LinkFrame::Message { stream: 1 }, &note("x", 0)).unwrap();
    }
    assert!(went(&wire).is_empty());
    wire.1.store(0, Ordering::Relaxed);
    link.drained();
    assert!(poll(asked.as_mut()).is_none());
    let heads = went(&wire);
    assert!(heads[0].starts_with("Credit"), "{heads:?}");
    assert!(heads[1].starts_with("Message"), "{heads:?}");
}

#[test]
fn a_stream_without_addresses_is_closed_when_all_was_taken() {
    let (desk, link, wire) = Desk::link();
    let stream = stream(&desk, &link);
    let asked = Box::pin(ask("a", &stream));
    let (mut first, mut second) = (asked, Box::pin(ask("b", &stream)));
    assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
    went(&wire);
    drop((first, second));
    drop(stream.clone());
    assert_eq!(went(&wire).len(), 2, "each question is unwanted");
    let kept = std::ops::Deref::deref(&stream).clone();
    drop(stream);
    assert_eq!(went(&wire), ["ReturnCredit { stream: 1 }"]);

    // An address that comes now has no new window, and no credit to want back.
    let again = kept.handle().expect("messages are under way");
    assert!(again.try_permit().is_err());
    drop(again);
    assert!(went(&wire).is_empty());

    let credit = |messages| {
        let (stream, bytes) = (1, 10);
        let credit = LinkFrame::Credit {
            stream,
            messages,
            bytes,
        };
        take(&link, &credit, &[]).unwrap();
    };
    credit(1);
    assert!(went(&wire).is_empty());
    credit(1);
    assert_eq!(went(&wire), ["Close { stream: 1 }"]);
    assert_eq!(link.status().outgoing, 0);
    assert!(kept.handle().is_none());
}

#[test]
fn wanted_credit_is_given_back_as_soon_as_all_was_taken() {
    let (_desk, link, wire) = Desk::link();
    open(&link, 1);
    let message = LinkFrame::Message { stream: 1 };
    let return_credit = LinkFrame::ReturnCredit { stream: 1 };
    take(&link, &message, &note("x", 0)).unwrap();
    take(&link, &return_credit, &[]).unwrap();
    let credit = went(&wire).pop().unwrap();
    assert!(
        credit.starts_with("Credit { stream: 1, messages: 1,"),
        "{credit}"
    );
    // It was wanted once.
    take(&link, &message, &note("x", 0)).unwrap();
    assert!(went(&wire).is_empty());

    take(&link, &message, &note("full", 0)).unwrap();
    went(&wire);
    take(&link, &return_credit, &[]).unwrap();
    assert!(went(&wire).is_empty(), "a message waits for room");
}

#[derive(serde::Deserialize)]
struct Bomb(#[expect(dead_code, reason = "it is only decoded")] u8);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("it is to be used");
    }
}

#[test]
fn a_value_that_panics_when_it_is_refused_is_an_error() {
    let (_desk, link, _wire) = Desk::link();
    let why = super::decode::<Bomb>(&link, &[1, 2]).err().unwrap();
    assert_eq!(why, "1 bytes follow its end");
}

#[test]
fn a_traced_message_is_taken_behind_its_context() {
    let (_desk, link, wire) = Desk::link();
    open(&link, 1);
    let traced = LinkFrame::TracedMessage { stream: 1 };
    let context = postcard::to_allocvec("a context").unwrap();
    let message = [&context[..], &note("answer", 5)].concat();
    take(&link, &traced, &message).unwrap();
    assert_eq!(went(&wire), ["Answer { ask: 5 }"]);
    // A length that is longer than what follows.
    take(&link, &traced, &[100, b'x']).unwrap();
    let went = went(&wire);
    assert!(
        went[0].contains("Undecodable(\"its context is malformed"),
        "{went:?}"
    );
}
