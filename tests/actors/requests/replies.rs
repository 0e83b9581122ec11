//! Replies that are answered from elsewhere, and replies behind a shared reference.

use std::sync::{Arc, Barrier};

use greenroom::{AskDetail, AskError, Context, Refusal, Reply, actor};

use crate::support::{
    CountingWaker, Drops, Home, WATCH, drive, elsewhere, in_every_home, panic_of, poll_once, within,
};

in_every_home!(
    an_answer_completes_when_its_reply_is_settled,
    a_reply_behind_a_shared_reference_is_taken_once,
    a_reply_without_its_right_is_not_wanted_and_settles_nothing,
);

fn an_answer_completes_when_its_reply_is_settled(home: &Home) {
    home.block_on(async {
        let (sent, answer) = Reply::pair();
        assert!(sent.is_wanted());
        elsewhere(move || sent.send(42)).join();
        assert_eq!(answer.await, Ok(42));

        let (refused, answer) = Reply::<u32>::pair();
        refused.refuse(Refusal::new("closed on Sundays", ""));
        let refusal = Refusal::new("closed on Sundays", "");
        assert_eq!(answer.await, Err(AskError::Refused(refusal)));

        let (dropped, answer) = Reply::<u32>::pair();
        let (answer, ()) = futures::join!(answer, async { drop(dropped) });
        assert_eq!(answer, Err(AskError::NoReply(AskDetail::default())));

        let (unwanted, answer) = Reply::<u32>::pair();
        drop(answer);
        assert!(!unwanted.is_wanted());
        unwanted.send(42);
    });
}

fn a_reply_behind_a_shared_reference_is_taken_once(home: &Home) {
    home.block_on(async {
        let shares = home.spawn(actor(|mut cx: Context<Reply<u32>>| async move {
            let reply = Arc::new(cx.recv().await.unwrap());
            let (first, second) = (reply.clone(), reply.clone());
            let take = |reply: Arc<Reply<u32>>, number| {
                greenroom::spawn(async move {
                    let reply = reply.take();
                    reply.map(|reply| reply.send(number)).is_some()
                })
            };
            let (first, second) = (take(first, 1), take(second, 2));
            let taken = [first.await, second.await];
            assert!(taken[0] != taken[1], "one of them takes it");
            assert!(reply.take().is_none());
            if taken[0] { 1 } else { 2 }
        }));
        let answer = shares.ask(|reply| reply).await;
        assert_eq!(answer, Ok(shares.join().await.unwrap()));
    });
}

fn a_reply_without_its_right_is_not_wanted_and_settles_nothing(home: &Home) {
    home.block_on(async {
        let (original, mut answer) = Reply::pair();
        let taken = original.take().unwrap();
        assert!(!original.is_wanted());
        assert!(taken.is_wanted());
        original.send(1);
        assert!(poll_once(&mut answer).is_pending());
        taken.send(2);
        assert_eq!(answer.await, Ok(2));
    });
}

#[test]
fn an_answer_wakes_the_task_that_polled_it_last() {
    let (reply, mut answer) = Reply::pair();
    let ((first, waker), (second, last)) = (CountingWaker::new(), CountingWaker::new());
    for waker in [&waker, &last] {
        let mut cx = std::task::Context::from_waker(waker);
        let polled = std::future::Future::poll(std::pin::Pin::new(&mut answer), &mut cx);
        assert!(polled.is_pending());
    }
    reply.send(1);
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(drive(&mut answer), Ok(1));
    let (text, ..) = panic_of(|| poll_once(&mut answer));
    assert_eq!(text, "an answer polled after it was ready");
}

#[test]
fn an_answer_that_is_not_wanted_is_dropped() {
    let drops = Drops::default();
    let (sent, answer) = Reply::pair();
    drop(answer);
    sent.send(drops.one());
    assert_eq!(drops.count(), 1);
    let (sent, answer) = Reply::pair();
    sent.send(drops.one());
    drop(answer);
    assert_eq!(drops.count(), 2);
}

#[test]
fn looks_and_takes_of_many_threads_leave_one_answer() {
    within(WATCH, || {
        for round in 0..300 {
            let (reply, answer) = Reply::pair();
            let (reply, start) = (Arc::new(reply), Arc::new(Barrier::new(3)));
            let threads = (0..3).map(|thread| {
                let (reply, start) = (reply.clone(), start.clone());
                std::thread::spawn(move || {
                    start.wait();
                    if thread == round % 3 {
                        while reply.is_wanted() {
                            std::thread::yield_now();
                        }
                    } else if let Some(reply) = reply.take() {
                        reply.send(thread);
                        return 1;
                    }
                    0
                })
            });
            let threads: Vec<_> = threads.collect();
            let taken: usize = threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum();
            assert_eq!(taken, 1);
            assert_ne!(drive(answer).unwrap(), round % 3);
        }
    });
}
