//! Models of an ask and its reply: the asker observes exactly one outcome.

use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};

use ::loom::sync::Arc;
use ::loom::thread::spawn;

use super::{AskState, Reply};
use crate::actor::ask::Answer;
use crate::error::{AskDetail, AskError, Refusal};
use crate::info::{TaskInfo, TypeNames};
use crate::lock::OneshotEnd;
use crate::park::Parker;
use crate::runtime::deadlock::{self, AskList};
use crate::sync::Process;

/// A waker that unparks the thread of the asker.
struct Asker(Parker);

impl Wake for Asker {
    fn wake(self: StdArc<Self>) {
        self.0.unpark();
    }
}

fn question() -> (Reply<Arc<usize>>, Answer<Arc<usize>>) {
    with_slot(AskState::Open(None))
}

fn with_slot(slot: AskState<Arc<usize>>) -> (Reply<Arc<usize>>, Answer<Arc<usize>>) {
    let (theirs, ours) = OneshotEnd::pair(slot);
    (Reply::new(theirs), Answer::new(ours, Process::current()))
}

/// Returns an ask that is listed for deadlock detection, with both ends and the list.
fn listed_question() -> (StdArc<AskList>, Reply<Arc<usize>>, Answer<Arc<usize>>) {
    let listed = StdArc::new(AskList::alone());
    let asked = TaskInfo::of_actor(1, None, TypeNames::of::<(), ()>, 0);
    let edge = deadlock::Edge::of_ask(deadlock::Who::Other("a task"), asked);
    let listing = listed.list(edge, None, false);
    let (reply, answer) = with_slot(AskState::new(Some(listing)));
    (listed, reply, answer)
}

/// Polls until ready, as a waiting thread does, with a new waker for each poll.
fn wait(answer: &mut Answer<Arc<usize>>) -> Result<Arc<usize>, AskError> {
    loop {
        let asker = StdArc::new(Asker(Parker::new()));
        let waker = Waker::from(asker.clone());
        match answer.poll_now(&mut Context::from_waker(&waker)) {
            Poll::Ready(heard) => return heard,
            Poll::Pending => asker.0.park(None),
        };
    }
}

/// Checks that the asker receives the answer, through the waker that it left last, and that nothing
/// leaks.
#[test]
fn model_09_asker_receives_the_answer_once() {
    ::loom::model(|| {
        let (reply, mut answer) = question();
        let answering = spawn(move || reply.send(Arc::new(7)));
        // An early poll leaves a waker that is replaced later.
        let early = answer.poll_now(&mut Context::from_waker(Waker::noop()));
        let heard = match early {
            Poll::Ready(heard) => heard,
            Poll::Pending => wait(&mut answer),
        };
        assert_eq!(heard.map(|answer| *answer), Ok(7));
        answering.join().unwrap();
    });
}

/// Checks that dropping the reply wakes the asker.
#[test]
fn model_09_dropped_reply_wakes_the_asker() {
    ::loom::model(|| {
        let (reply, mut answer) = question();
        let dropping = spawn(move || drop(reply));
        assert_eq!(
            wait(&mut answer).map(drop),
            Err(AskError::NoReply(AskDetail::default()))
        );
        dropping.join().unwrap();
    });
}

/// Drops the asker while it is answered. Loom checks that the answer does not leak.
#[test]
fn model_09_dropped_asker_keeps_no_answer() {
    ::loom::model(|| {
        let (reply, mut answer) = question();
        let answering = spawn(move || {
            let wanted = reply.is_wanted();
            reply.send(Arc::new(7));
            wanted
        });
        let early = answer.poll_now(&mut Context::from_waker(Waker::noop()));
        drop(answer);
        let _ = answering.join().unwrap();
        if let Poll::Ready(heard) = early {
            assert_eq!(heard.map(|answer| *answer), Ok(7));
        }
    });
}

/// Refuses a request while the asker waits, or is dropped.
#[test]
fn model_09_asker_receives_a_refusal_once() {
    ::loom::model(|| {
        let (reply, mut answer) = question();
        let refusing = spawn(move || reply.refuse(Refusal::new("out of paper", "")));
        let early = answer.poll_now(&mut Context::from_waker(Waker::noop()));
        let heard = match early {
            Poll::Ready(heard) => heard,
            Poll::Pending => wait(&mut answer),
        };
        let expected = AskError::Refused(Refusal::new("out of paper", ""));
        assert_eq!(heard.map(drop), Err(expected));
        refusing.join().unwrap();
    });
    ::loom::model(|| {
        let (reply, answer) = question();
        let refusing = spawn(move || reply.refuse(Refusal::new("out of paper", "")));
        drop(answer);
        refusing.join().unwrap();
    });
}

/// Races an end by deadlock with an answer. The asker is woken, observes one of them, and both
/// sides agree which.
#[test]
fn model_09_deadlock_and_answer_give_one_outcome() {
    ::loom::model(|| {
        let (asks, reply, mut answer) = listed_question();
        let ending = spawn({
            let asks = asks.clone();
            move || deadlock::end(&asks.waiting(), &[])
        });
        let answering = spawn(move || reply.send(Arc::new(7)));
        let heard = wait(&mut answer);
        answering.join().unwrap();
        let ended = ending.join().unwrap() == 1;
        let deadlock = matches!(heard, Err(AskError::Deadlock(_)));
        assert_eq!(ended, deadlock, "there is one outcome");
        assert!(deadlock || heard.map(|answer| *answer) == Ok(7));
        drop(answer);
        assert_eq!(deadlock::end(&asks.waiting(), &[]), 0);
    });
}

/// Checks that an end by deadlock wakes the asker, through the waker that it left last.
#[test]
fn model_09_deadlock_wakes_the_asker() {
    ::loom::model(|| {
        let (asks, reply, mut answer) = listed_question();
        let ending = spawn(move || deadlock::end(&asks.waiting(), &[]));
        let heard = wait(&mut answer);
        assert!(matches!(heard, Err(AskError::Deadlock(_))));
        assert!(!reply.is_wanted());
        reply.send(Arc::new(7));
        assert_eq!(ending.join().unwrap(), 1);
    });
}

/// Drops the asker while a deadlock ends it. The ask ends at most once and leaves the list.
#[test]
fn model_09_dropped_asker_is_ended_at_most_once() {
    ::loom::model(|| {
        let (asks, reply, mut answer) = listed_question();
        let ending = spawn({
            let asks = asks.clone();
            move || deadlock::end(&asks.waiting(), &[])
        });
        let early = answer.poll_now(&mut Context::from_waker(Waker::noop()));
        drop(answer);
        assert!(!reply.is_wanted());
        let ended = ending.join().unwrap() == 1;
        assert!(ended || early.is_pending());
        assert_eq!(deadlock::end(&asks.waiting(), &[]), 0);
    });
}
