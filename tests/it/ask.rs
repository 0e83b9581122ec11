//! Questions: `ask`, its timeout, and the `Reply` that may travel.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::Context as TaskContext;
use std::time::Duration;

use greenroom::time::{Instant, sleep};
use greenroom::{AskError, Context, Reply, actor};

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

/// Hands every reply out, so that the test decides what becomes of it.
async fn hand_out(mut cx: Context<Reply<u32>>, out: mpsc::Sender<Reply<u32>>) {
    while let Some(reply) = cx.recv().await {
        out.send(reply).unwrap();
    }
}

in_every_home!(
    an_answer_comes_after_what_was_told_before,
    a_question_is_sent_when_it_is_first_polled,
    a_reply_that_is_dropped_gives_no_reply,
    a_reply_may_be_forwarded_to_another_actor,
    a_reply_may_be_answered_later_and_from_any_thread,
    a_reply_outlives_the_actor_that_got_it,
    a_reply_knows_whether_the_asker_is_there,
    an_answer_that_nobody_wants_is_dropped,
    a_closed_actor_gives_closed_and_drops_the_question,
    an_actor_that_ends_or_panics_gives_no_reply,
    many_questions_may_be_open_at_once,
    a_timeout_gives_up_on_an_answer,
    a_timeout_gives_up_on_room_too_and_drops_the_question,
    a_timeout_is_counted_from_the_first_poll,
    the_last_timeout_counts,
    a_zero_timeout_still_sends_the_question,
    an_endless_timeout_waits_for_the_answer,
    an_answer_that_is_there_beats_the_timeout,
    an_ask_that_is_dropped_in_the_line_gives_up_its_place,
    the_asker_is_woken_where_it_was_polled_last,
    an_ask_says_that_it_was_polled_too_often,
);

fn an_answer_comes_after_what_was_told_before(home: &Home) {
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

fn a_question_is_sent_when_it_is_first_polled(home: &Home) {
    home.block_on(async {
        let tally = home.spawn(actor(tally));
        let asked = Gate::default();
        let ask = tally.ask(|reply| {
            asked.open();
            Tally::Total(reply)
        });
        tally.tell(Tally::Add(1)).unwrap();
        assert!(!asked.is_open());
        assert_eq!(ask.await, Ok(1), "told before it was sent");
        assert!(asked.is_open());
        drop(tally.ask(|_: Reply<u64>| -> Tally { unreachable!("it is not polled") }));
    });
}

fn a_reply_that_is_dropped_gives_no_reply(home: &Home) {
    home.block_on(async {
        let drops_it = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
            while let Some(reply) = cx.recv().await {
                assert!(reply.is_wanted());
                drop(reply);
            }
        }));
        assert_eq!(drops_it.ask(|reply| reply).await, Err(AskError::NoReply));
        assert_eq!(drops_it.ask(|reply| reply).await, Err(AskError::NoReply));
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
    // It is this thread that will answer.
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

fn a_reply_knows_whether_the_asker_is_there(home: &Home) {
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

fn an_answer_that_nobody_wants_is_dropped(home: &Home) {
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
    // Answered, and then the asker goes away without looking.
    let mut ask = handle.ask(|reply| reply);
    assert!(poll_once(&mut ask).is_pending());
    received(&replies).send(drops.one());
    assert_eq!(drops.count(), 1);
    drop(ask);
    assert_eq!(drops.count(), 2);
}

fn a_closed_actor_gives_closed_and_drops_the_question(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let handle = home.spawn(actor(async |mut cx: Context<(Reply<u32>, _)>| {
            cx.recv().await;
        }));
        handle.stop();
        let question = drops.one();
        let answer = handle.ask(|reply| (reply, question)).await;
        assert_eq!(answer, Err(AskError::Closed));
        assert_eq!(drops.count(), 1);
    });
}

fn an_actor_that_ends_or_panics_gives_no_reply(home: &Home) {
    home.block_on(async {
        let ends = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
            drop(cx.recv().await)
        }));
        assert_eq!(ends.ask(|reply| reply).await, Err(AskError::NoReply));
        let panics = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
            let _reply = cx.recv().await;
            panic!("bomb in a handler");
        }));
        assert_eq!(panics.ask(|reply| reply).await, Err(AskError::NoReply));
        assert!(panics.join().await.is_err());
    });
    // Delivered, and never handled.
    let held = home.hold();
    let ends = home.spawn(actor(async |_cx: Context<Reply<u32>>| ()));
    let mut ask = ends.ask(|reply| reply);
    assert!(poll_once(&mut ask).is_pending());
    drop(held);
    assert_eq!(home.block_on(ask), Err(AskError::NoReply));
}

fn many_questions_may_be_open_at_once(home: &Home) {
    home.block_on(async {
        let tally = home.spawn(actor(tally));
        tally.tell(Tally::Add(1)).unwrap();
        let asks = (0..500).map(|_| tally.ask(Tally::Total));
        let answers = futures::future::join_all(asks).await;
        assert!(answers.into_iter().all(|answer| answer == Ok(1)));
    });
}

fn a_timeout_gives_up_on_an_answer(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let ask = handle.ask(|reply| reply).timeout(Duration::from_millis(1));
    assert_eq!(home.block_on(ask), Err(AskError::TimedOut));
    let reply = received(&replies);
    assert!(!reply.is_wanted());
    reply.send(1);
    // The same without any runtime around the asker.
    let ask = handle.ask(|reply| reply).timeout(Duration::from_millis(1));
    assert_eq!(drive(ask), Err(AskError::TimedOut));
}

fn a_timeout_gives_up_on_room_too_and_drops_the_question(home: &Home) {
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
    // Not in the runtime, whose timers are held with its workers.
    assert_eq!(drive(ask), Err(AskError::TimedOut));
    assert_eq!(drops.count(), 1, "the question was dropped with the ask");
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
        // Not a wait for something: it makes sure that the time is over, had it begun.
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

fn a_zero_timeout_still_sends_the_question(home: &Home) {
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

fn an_answer_that_is_there_beats_the_timeout(home: &Home) {
    let (out, replies) = mpsc::channel();
    let handle = home.spawn(actor(|cx| hand_out(cx, out)));
    let patience = Duration::from_millis(50);
    let mut ask = handle.ask(|reply| reply).timeout(patience);
    if home.block_on(poll_here(&mut ask)).is_ready() {
        return; // This thread was away for the whole time.
    }
    received(&replies).send(1);
    home.block_on(async { sleep(2 * patience).await });
    assert_eq!(home.block_on(ask), Ok(1));
}

fn an_ask_that_is_dropped_in_the_line_gives_up_its_place(home: &Home) {
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

fn the_asker_is_woken_where_it_was_polled_last(home: &Home) {
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

fn an_ask_says_that_it_was_polled_too_often(home: &Home) {
    let tally = home.spawn(actor(tally));
    let mut ask = tally.ask(Tally::Total);
    assert_eq!(home.block_on(&mut ask), Ok(0));
    let (text, ..) = panic_of(|| poll_once(&mut ask));
    assert!(text.contains("`ask` polled after it was ready"), "{text}");
}

/// An address of an actor that takes nothing any more.
fn closed<M: Send + 'static>() -> greenroom::Address<M> {
    let (address, split) = actor(async |_cx: Context<M>| {}).split();
    drop(split);
    address
}

#[test]
fn a_reply_that_outlives_a_refused_question_is_not_wanted() {
    let kept = Arc::new(Mutex::new(None));
    let address = closed();
    let keep = kept.clone();
    let asked = drive(address.ask(move |reply: Reply<u32>| {
        *keep.lock().unwrap() = Some(reply);
        keep
    }));
    assert_eq!(asked, Err(AskError::Closed));
    let reply = kept.lock().unwrap().take().expect("it was kept");
    assert!(!reply.is_wanted());
    reply.send(5);
}

#[test]
fn a_reply_that_outlives_a_question_that_panics_is_not_wanted() {
    let kept = Mutex::new(None);
    let address = closed::<Reply<u32>>();
    panic_of(|| {
        drive(address.ask(|reply: Reply<u32>| {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            panic!("bomb in a question")
        }))
    });
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(!kept.expect("it was kept").is_wanted());
}

#[test]
fn an_answer_to_a_refused_question_may_panic_in_its_drop() {
    struct Answers(Option<Reply<Bomb>>, Drops);
    impl Drop for Answers {
        fn drop(&mut self) {
            self.0.take().unwrap().send(Bomb::new(true, &self.1));
        }
    }
    keep_bombs_quiet();
    let drops = Drops::default();
    let asked = drive(closed().ask(|reply| Answers(Some(reply), drops.clone())));
    assert!(matches!(asked, Err(AskError::Closed)));
    assert_eq!(drops.count(), 1);
}
