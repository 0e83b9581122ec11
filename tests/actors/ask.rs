//! Requests: `ask`, its timeout, and the `Reply`, which can be sent elsewhere.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::Context as TaskContext;
use std::time::Duration;

use greenroom::time::{Instant, sleep};
use greenroom::{AskDetail, AskError, Context, Reply, actor};

use crate::support::{
    Bomb, CountingWaker, Drops, Gate, Home, drive, drive_elsewhere, elsewhere, in_every_home,
    keep_bombs_quiet, panic_of, poll_here, poll_once, received,
};

enum Tally {
    Add(u64),
    Total(Reply<u64>),
}

async fn tally(mut cx: Context<Tally>) -> u64 {
    let mut total = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Tally::Add(number) => total += number,
            Tally::Total(reply) => reply.send(total),
        }
    }
    total
}

/// Sends every reply to the test, which decides how to use it.
async fn hand_out(mut cx: Context<Reply<u32>>, out: mpsc::Sender<Reply<u32>>) {
    while let Some(reply) = cx.recv().await {
        out.send(reply).unwrap();
    }
}

in_every_home!(
    an_ask_is_answered_after_all_messages_told_before,
    an_ask_is_sent_when_it_is_first_polled,
    dropping_the_reply_fails_the_ask_with_no_reply,
    a_reply_may_be_forwarded_to_another_actor,
    a_reply_may_be_answered_later_and_from_any_thread,
    a_reply_outlives_the_actor_that_got_it,
    a_reply_knows_whether_the_asker_still_waits,
    an_unwanted_answer_is_dropped,
    an_ask_to_a_closed_actor_fails_with_closed_and_drops_the_request,
    an_ask_fails_with_no_reply_if_the_actor_ends_or_panics,
    many_asks_may_be_pending_at_once,
    an_ask_times_out_while_it_waits_for_an_answer,
    an_ask_that_times_out_while_it_waits_for_room_drops_its_request,
    a_timeout_is_counted_from_the_first_poll,
    the_last_timeout_counts,
    a_zero_timeout_still_sends_the_request,
    an_endless_timeout_waits_for_the_answer,
    an_answer_that_has_arrived_beats_the_timeout,
    a_dropped_ask_that_waited_for_room_leaves_the_line,
    an_answer_wakes_the_waker_that_polled_the_ask_last,
    an_ask_polled_after_it_was_ready_panics,
);

fn an_ask_is_answered_after_all_messages_told_before(home: &Home) {
    home.block_on(async {
        let tally = home.spawn(actor(tally));
        for number in 0..100 {
            tally.tell(Tally::Add(number)).unwrap();
        }
        assert_eq!(tally.ask(Tally::Total).await, Ok(4950));
        assert_eq!(tally.address().ask(Tally::Total).await.unwrap(), 4950);
        assert_eq!(tally.join().await.unwrap(), 4950);
    });
}

fn an_ask_is_sent_when_it_is_first_polled(home: &Home) {
    home.block_on(async {
        let tally = home.spawn(actor(tally));
        let asked = Gate::default();
        let ask = tally.ask(|reply| {
            asked.open();
            Tally::Total(reply)
        });
        tally.tell(Tally::Add(1)).unwrap();
        assert!(!asked.is_open());
        assert_eq!(ask.await, Ok(1), "the tell comes before the request");
        assert!(asked.is_open());
        drop(tally.ask(|_: Reply<u64>| -> Tally { unreachable!("the request is never polled") }));
    });
}

fn dropping_the_reply_fails_the_ask_with_no_reply(home: &Home) {
    home.block_on(async {
        let drops_it = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
            while let Some(reply) = cx.recv().await {
                assert!(reply.is_wanted());
                drop(reply);
            }
        }));
        assert_eq!(
            drops_it.ask(|reply| reply).await,
            Err(AskError::NoReply(AskDetail::default()))
        );
        assert_eq!(
            drops_it.ask(|reply| reply).await,
            Err(AskError::NoReply(AskDetail::default()))
        );
        drops_it.join().await.unwrap();
    });
}

fn a_reply_may_be_forwarded_to_another_actor(home: &Home) {
    home.block_on(async {
        let tally = home.spawn(actor(tally));
        let behind = tally.address();
        let front = home.spawn(actor(async move |mut cx: Context<Reply<u64>>| {
            while let Some(reply) = cx.recv().await {
                behind.tell(Tally::Total(reply)).unwrap();
            }
        }));
        tally.tell(Tally::Add(42)).unwrap();
        assert_eq!(front.ask(|reply| reply).await, Ok(42));
        front.join().await.unwrap();
    });
}

fn a_reply_may_be_answered_later_and_from_any_thread(home: &Home) {
    // This thread answers, which the runtime cannot see: `keep_alive` prevents a false deadlock.
    let _answers = home.runtime.keep_alive();
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let address = handle.address();
    let asker = drive_elsewhere(async move { address.ask(|reply| reply).await });
    let reply = received(&replies);
    let answers = elsewhere(move || {
        assert!(reply.is_wanted());
        reply.send(7);
    });
    assert_eq!(asker.join(), Ok(7));
    answers.join();
}

fn a_reply_outlives_the_actor_that_got_it(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    home.block_on(async {
        let mut ask = handle.ask(|reply| reply);
        assert!(poll_here(&mut ask).await.is_pending());
        handle.stop();
        handle.closed().await;
        assert!(poll_here(&mut ask).await.is_pending());
        received(&replies).send(1);
        assert_eq!(ask.await, Ok(1));
    });
}

fn a_reply_knows_whether_the_asker_still_waits(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let mut ask = handle.ask(|reply| reply);
    assert!(poll_once(&mut ask).is_pending());
    let reply = received(&replies);
    assert!(reply.is_wanted());
    assert!(poll_once(&mut ask).is_pending());
    assert!(reply.is_wanted());
    drop(ask);
    assert!(!reply.is_wanted());
    reply.send(1);
}

fn an_unwanted_answer_is_dropped(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(async move |mut cx: Context<Reply<_>>| {
        while let Some(reply) = cx.recv().await {
            out.send(reply).unwrap();
        }
    }));
    let drops = Drops::default();
    let mut ask = handle.ask(|reply| reply);
    assert!(poll_once(&mut ask).is_pending());
    drop(ask);
    received(&replies).send(drops.one());
    assert_eq!(drops.count(), 1);
    // Answered; then the asker is dropped without reading the answer.
    let mut ask = handle.ask(|reply| reply);
    assert!(poll_once(&mut ask).is_pending());
    received(&replies).send(drops.one());
    assert_eq!(drops.count(), 1);
    drop(ask);
    assert_eq!(drops.count(), 2);
}

fn an_ask_to_a_closed_actor_fails_with_closed_and_drops_the_request(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let handle = home.spawn(actor(async |mut cx: Context<(Reply<u32>, _)>| {
            cx.recv().await;
        }));
        handle.stop();
        let question = drops.one();
        let answer = handle.ask(|reply| (reply, question)).await;
        assert_eq!(answer, Err(AskError::Closed(AskDetail::default())));
        assert_eq!(drops.count(), 1);
    });
}

fn an_ask_fails_with_no_reply_if_the_actor_ends_or_panics(home: &Home) {
    home.block_on(async {
        let ends = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
            drop(cx.recv().await)
        }));
        assert_eq!(
            ends.ask(|reply| reply).await,
            Err(AskError::NoReply(AskDetail::default()))
        );
        let panics = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
            let _reply = cx.recv().await;
            panic!("bomb in a handler");
        }));
        assert_eq!(
            panics.ask(|reply| reply).await,
            Err(AskError::NoReply(AskDetail::default()))
        );
        assert!(panics.join().await.is_err());
    });
    // Delivered, but never handled.
    let held = home.hold();
    let ends = home.spawn(actor(async |_cx: Context<Reply<u32>>| ()));
    let mut ask = ends.ask(|reply| reply);
    assert!(poll_once(&mut ask).is_pending());
    drop(held);
    assert_eq!(
        home.block_on(ask),
        Err(AskError::NoReply(AskDetail::default()))
    );
}

fn many_asks_may_be_pending_at_once(home: &Home) {
    home.block_on(async {
        let tally = home.spawn(actor(tally));
        tally.tell(Tally::Add(1)).unwrap();
        let asks = (0..500).map(|_| tally.ask(Tally::Total));
        let answers = futures::future::join_all(asks).await;
        assert!(answers.into_iter().all(|answer| answer == Ok(1)));
    });
}

fn an_ask_times_out_while_it_waits_for_an_answer(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let ask = handle.ask(|reply| reply).timeout(Duration::from_millis(1));
    assert_eq!(home.block_on(ask), Err(AskError::TimedOut));
    let reply = received(&replies);
    assert!(!reply.is_wanted());
    reply.send(1);
    // The same without a runtime around the asker.
    let ask = handle.ask(|reply| reply).timeout(Duration::from_millis(1));
    assert_eq!(drive(ask), Err(AskError::TimedOut));
}

fn an_ask_that_times_out_while_it_waits_for_room_drops_its_request(home: &Home) {
    let held = home.hold();
    let drops = Drops::default();
    let handle = home.spawn(
        actor(async |mut cx: Context<(Option<Reply<u32>>, _)>| {
            let mut handled = 0;
            while cx.recv().await.is_some() {
                handled += 1;
            }
            handled
        })
        .capacity(1),
    );
    handle.tell((None, drops.one())).unwrap();
    let question = drops.one();
    let ask = handle
        .ask(|reply| (Some(reply), question))
        .timeout(Duration::from_millis(1));
    // Outside the runtime, whose timers are blocked with its workers.
    assert_eq!(drive(ask), Err(AskError::TimedOut));
    assert_eq!(drops.count(), 1, "the request was dropped with the ask");
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), 1);
    assert_eq!(drops.count(), 2);
}

fn a_timeout_is_counted_from_the_first_poll(home: &Home) {
    let (out, _replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let patience = Duration::from_millis(300);
    home.block_on(async {
        let made = Instant::now();
        let mut ask = handle.ask(|reply| reply).timeout(patience);
        // Not a wait for an event: it ensures that the timeout would be over if it counted from the
        // creation.
        sleep(patience).await;
        assert!(poll_here(&mut ask).await.is_pending());
        assert_eq!(ask.await, Err(AskError::TimedOut));
        assert!(made.elapsed() >= 2 * patience);
    });
}

fn the_last_timeout_counts(home: &Home) {
    let (out, _replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let (short, long) = (Duration::from_millis(1), Duration::from_secs(1_000_000));
    let ask = handle.ask(|reply| reply).timeout(long).timeout(short);
    assert_eq!(home.block_on(ask), Err(AskError::TimedOut));
}

fn a_zero_timeout_still_sends_the_request(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let held = home.hold();
    let ask = handle.ask(|reply| reply).timeout(Duration::ZERO);
    assert_eq!(home.block_on(ask), Err(AskError::TimedOut));
    drop(held);
    assert!(!received(&replies).is_wanted());
}

fn an_endless_timeout_waits_for_the_answer(home: &Home) {
    home.block_on(async {
        let tally = home.spawn(actor(tally));
        for endless in [
            Duration::MAX,
            Duration::from_secs(u64::MAX),
            Duration::from_secs(1 << 40),
        ] {
            assert_eq!(tally.ask(Tally::Total).timeout(endless).await, Ok(0));
        }
    });
}

fn an_answer_that_has_arrived_beats_the_timeout(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let patience = Duration::from_millis(50);
    let mut ask = handle.ask(|reply| reply).timeout(patience);
    if home.block_on(poll_here(&mut ask)).is_ready() {
        return; // This thread was not scheduled for the whole time.
    }
    received(&replies).send(1);
    home.block_on(async { sleep(2 * patience).await });
    assert_eq!(home.block_on(ask), Ok(1));
}

fn a_dropped_ask_that_waited_for_room_leaves_the_line(home: &Home) {
    let held = home.hold();
    let drops = Drops::default();
    let handle = home.spawn(
        actor(async |mut cx: Context<(u32, Option<Reply<u32>>, _)>| {
            let mut order = Vec::new();
            while let Some((number, reply, _)) = cx.recv().await {
                order.push(number);
                if let Some(reply) = reply {
                    reply.send(number);
                }
            }
            order
        })
        .capacity(1),
    );
    handle.tell((0, None, drops.one())).unwrap();
    let mut asks: Vec<_> = (1..4)
        .map(|number| {
            let counted = drops.one();
            Box::pin(handle.ask(move |reply| (number, Some(reply), counted)))
        })
        .collect();
    asks.iter_mut()
        .for_each(|ask| assert!(poll_once(ask).is_pending()));
    drop(asks.remove(1));
    assert_eq!(drops.count(), 1);
    drop(held);
    let answers = home.block_on(futures::future::join_all(asks));
    assert_eq!(answers, [Ok(1), Ok(3)]);
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1, 3]);
}

fn an_answer_wakes_the_waker_that_polled_the_ask_last(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let ((first, one), (second, two)) = (CountingWaker::new(), CountingWaker::new());
    let mut ask = handle.ask(|reply| reply);
    for waker in [one, two] {
        let polled = std::pin::Pin::new(&mut ask);
        assert!(
            polled
                .poll(&mut TaskContext::from_waker(&waker))
                .is_pending()
        );
    }
    let reply = received(&replies);
    assert_eq!((first.count(), second.count()), (0, 0));
    reply.send(1);
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(poll_once(&mut ask), std::task::Poll::Ready(Ok(1)));
}

fn an_ask_polled_after_it_was_ready_panics(home: &Home) {
    let tally = home.spawn(actor(tally));
    let mut ask = tally.ask(Tally::Total);
    assert_eq!(home.block_on(&mut ask), Ok(0));
    let (text, ..) = panic_of(|| poll_once(&mut ask));
    assert!(text.contains("`ask` polled after it was ready"), "{text}");
}

/// Returns an address of an actor that accepts no messages.
fn closed<M: Send + 'static>() -> greenroom::Address<M> {
    let (address, split) = actor(async |_cx: Context<M>| {}).split();
    drop(split);
    address
}

#[test]
fn a_reply_that_outlives_a_refused_request_is_unwanted() {
    let kept = Arc::new(Mutex::new(None));
    let address = closed();
    let keep = kept.clone();
    let asked = drive(address.ask(move |reply: Reply<u32>| {
        *keep.lock().unwrap() = Some(reply);
        keep
    }));
    assert_eq!(asked, Err(AskError::Closed(AskDetail::default())));
    let reply = kept.lock().unwrap().take().expect("the reply was kept");
    assert!(!reply.is_wanted());
    reply.send(5);
}

#[test]
fn a_reply_that_outlives_a_request_that_panics_is_unwanted() {
    let kept = Mutex::new(None);
    let address = closed::<Reply<u32>>();
    panic_of(|| {
        drive(address.ask(|reply: Reply<u32>| {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            panic!("bomb in a question")
        }))
    });
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(!kept.expect("the reply was kept").is_wanted());
}

#[test]
fn an_answer_to_a_refused_request_may_panic_in_its_drop() {
    struct Answers(Option<Reply<Bomb>>, Drops);
    impl Drop for Answers {
        fn drop(&mut self) {
            self.0.take().unwrap().send(Bomb::new(true, &self.1));
        }
    }
    keep_bombs_quiet();
    let drops = Drops::default();
    let asked = drive(closed().ask(|reply| Answers(Some(reply), drops.clone())));
    assert!(matches!(asked, Err(AskError::Closed(_))));
    assert_eq!(drops.count(), 1);
}
