//! What an asker is told about the actor that gives no answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use greenroom::{
    AskCause, AskDetail, AskError, Context, Detached, Fault, Refusal, Reply, Runtime, actor,
};

use crate::support::{
    Gate, Home, WATCH, drive, drive_elsewhere, in_every_home, keep_bombs_quiet, names, poll_here,
    poll_once, within,
};

in_every_home!(
    a_closed_mailbox_tells_how_its_actor_ended,
    a_handler_that_drops_a_reply_is_named,
    a_panic_is_the_cause_of_every_reply_that_it_loses,
    a_panic_that_the_handler_catches_is_no_cause,
    a_kill_is_the_cause_of_every_reply_that_it_loses,
    an_actor_that_returns_leaves_the_questions_in_its_mailbox,
    a_reply_that_a_task_drops_names_the_actor_that_was_asked,
    the_end_of_another_holder_is_the_cause,
    a_kill_while_another_actor_unwinds_is_its_own_cause,
    a_panic_without_a_text_has_an_empty_one,
    a_loss_after_a_caught_panic_ends_the_earlier_ask,
);

/// Returns the name of the actor and the cause in an error without a reply.
fn no_reply<T: std::fmt::Debug>(answer: Result<T, AskError>) -> (Option<String>, AskCause) {
    match answer {
        Err(AskError::NoReply(detail)) => parts(&detail),
        other => panic!("there is a reply: {other:?}"),
    }
}

fn closed<T: std::fmt::Debug>(answer: Result<T, AskError>) -> (Option<String>, AskCause) {
    match answer {
        Err(AskError::Closed(detail)) => parts(&detail),
        other => panic!("the mailbox was open: {other:?}"),
    }
}

fn parts(detail: &AskDetail) -> (Option<String>, AskCause) {
    let name = detail.actor().and_then(|actor| actor.name());
    (name.map(Into::into), detail.why().clone())
}

fn named(name: &str, cause: AskCause) -> (Option<String>, AskCause) {
    (Some(name.into()), cause)
}

fn a_closed_mailbox_tells_how_its_actor_ended(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let gate = Gate::default();
        let waits = gate.clone();
        let stops = actor(|cx: Context<Reply<()>>| async move {
            waits.wait().await;
            drop(cx);
        });
        let stops = home.spawn(stops.name("stops"));
        stops.stop();
        let answer = stops.ask(|reply| reply).await;
        assert_eq!(closed(answer), named("stops", AskCause::Stopped));
        gate.open();
        let address = stops.address();
        stops.join().await.unwrap();
        let answer = address.ask(|reply| reply).await;
        assert_eq!(closed(answer), named("stops", AskCause::Ended));

        let panics = actor(|_cx: Context<Reply<()>>| async { panic!("bomb 1") });
        let panics = home.spawn(panics.name("panics"));
        panics.closed().await;
        let answer = panics.ask(|reply| reply).await;
        assert_eq!(
            closed(answer),
            named("panics", AskCause::Panicked("bomb 1".into()))
        );

        let killed = actor(|mut cx: Context<Reply<()>>| async move { drop(cx.recv().await) });
        let killed = home.spawn(killed.name("killed"));
        killed.kill();
        killed.closed().await;
        let answer = killed.ask(|reply| reply).await;
        assert_eq!(closed(answer), named("killed", AskCause::Killed));
    });
}

fn a_handler_that_drops_a_reply_is_named(home: &Home) {
    home.block_on(async {
        let drops = actor(|mut cx: Context<Reply<()>>| async move {
            while let Some(reply) = cx.recv().await {
                drop(reply);
            }
        });
        let drops = home.spawn(drops.name("drops"));
        let error = drops.ask(|reply| reply).await.unwrap_err();
        assert_eq!(
            names(&error.to_string()),
            "no reply: drops dropped the reply"
        );
        let AskError::NoReply(detail) = &error else {
            panic!("there is no reply");
        };
        assert_eq!(detail.actor().unwrap().id(), drops.id());
        assert_eq!(*detail.why(), AskCause::ReplyDropped);
    });
}

fn a_panic_is_the_cause_of_every_reply_that_it_loses(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        // One reply is a local variable, one is moved into the panicking call, one was received
        // before, and one stays in the mailbox.
        let panics = actor(|mut cx: Context<Reply<()>>| async move {
            let kept = vec![cx.recv().await];
            let _local = cx.recv().await;
            let moved = cx.recv().await;
            let call = move |_reply| panic!("bomb {}", 42);
            let _: () = call(moved);
            drop(kept);
        });
        let panics = home.spawn(panics.name("panics"));
        let asks = (0..4).map(|_| panics.ask(|reply| reply));
        for answer in futures::future::join_all(asks).await {
            assert_eq!(
                no_reply(answer),
                named("panics", AskCause::Panicked("bomb 42".into()))
            );
        }
    });
}

fn a_panic_that_the_handler_catches_is_no_cause(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let catches = actor(|mut cx: Context<Reply<()>>| async move {
            while let Some(reply) = cx.recv().await {
                let call = AssertUnwindSafe(move || {
                    let _reply = reply;
                    panic!("bomb that is caught")
                });
                let _: Result<(), _> = catch_unwind(call);
            }
        });
        let catches = home.spawn(catches.name("catches"));
        for _ in 0..3 {
            let answer = catches.ask(|reply| reply).await;
            assert_eq!(no_reply(answer), named("catches", AskCause::ReplyDropped));
        }
    });
}

fn a_kill_is_the_cause_of_every_reply_that_it_loses(home: &Home) {
    home.block_on(async {
        let (kept, gate) = (Gate::default(), Gate::default());
        let has_kept = kept.clone();
        let killed = actor(|mut cx: Context<Reply<()>>| async move {
            let _reply = cx.recv().await;
            has_kept.open();
            gate.wait().await;
        });
        let killed = home.spawn(killed.name("killed"));
        let asks = (0..3).map(|_| killed.ask(|reply| reply));
        let kill = async {
            kept.wait().await;
            killed.kill();
        };
        let (answers, ()) = futures::join!(futures::future::join_all(asks), kill);
        for answer in answers {
            assert_eq!(no_reply(answer), named("killed", AskCause::Killed));
        }
    });
}

fn an_actor_that_returns_leaves_the_questions_in_its_mailbox(home: &Home) {
    home.block_on(async {
        let gate = Gate::default();
        let waits = gate.clone();
        let ends = actor(|cx: Context<Reply<()>>| async move {
            waits.wait().await;
            drop(cx);
        });
        let ends = home.spawn(ends.name("ends"));
        let asks = (0..3).map(|_| Box::pin(ends.ask(|reply| reply)));
        let mut asks: Vec<_> = asks.collect();
        for ask in &mut asks {
            assert!(futures::poll!(ask).is_pending());
        }
        gate.open();
        for ask in asks {
            assert_eq!(no_reply(ask.await), named("ends", AskCause::Ended));
        }
    });
}

fn a_reply_that_a_task_drops_names_the_actor_that_was_asked(home: &Home) {
    home.block_on(async {
        let passes = actor(|mut cx: Context<Reply<()>>| async move {
            while let Some(reply) = cx.recv().await {
                drive_elsewhere(async move { drop(reply) }).join();
            }
        });
        let passes = home.spawn(passes.name("passes"));
        let answer = passes.ask(|reply| reply).await;
        assert_eq!(no_reply(answer), named("passes", AskCause::ReplyDropped));
    });
}

fn the_end_of_another_holder_is_the_cause(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let second = actor(|mut cx: Context<Reply<()>>| async move {
            let _reply = cx.recv().await;
            panic!("bomb in the second");
        });
        let second = home.spawn(second.name("second"));
        let to = second.address();
        let first = actor(|mut cx: Context<Reply<()>>| async move {
            while let Some(reply) = cx.recv().await {
                to.tell(reply).unwrap();
            }
        });
        let first = home.spawn(first.name("first"));
        let answer = first.ask(|reply| reply).await;
        let cause = AskCause::Panicked("bomb in the second".into());
        assert_eq!(no_reply(answer), named("second", cause));
        assert!(matches!(second.join().await, Err(Fault::Panicked(_))));
    });
}

fn a_kill_while_another_actor_unwinds_is_its_own_cause(home: &Home) {
    /// Kills an actor when it is dropped.
    struct Kills(greenroom::Address<Reply<()>>);
    impl Drop for Kills {
        fn drop(&mut self) {
            self.0.kill();
        }
    }
    keep_bombs_quiet();
    home.block_on(async {
        let idle = actor(|cx: Context<Reply<()>>| async move {
            let _unread = cx;
            std::future::pending::<()>().await
        });
        let killed = home.spawn(idle.name("b"));
        let kills = Kills(killed.address());
        let panics = actor(|mut cx: Context<Reply<()>>| async move {
            let _kills = kills;
            let _reply = cx.recv().await;
            panic!("bomb in a");
        });
        let panics = home.spawn(panics.name("a"));
        let mut second = Box::pin(killed.ask(|reply| reply));
        assert!(futures::poll!(&mut second).is_pending());
        let first = panics.ask(|reply| reply).await;
        let cause = AskCause::Panicked("bomb in a".into());
        assert_eq!(no_reply(first), named("a", cause));
        assert_eq!(no_reply(second.await), named("b", AskCause::Killed));
    });
}

fn a_panic_without_a_text_has_an_empty_one(home: &Home) {
    home.block_on(async {
        let panics = actor(|mut cx: Context<Reply<()>>| async move {
            let _reply = cx.recv().await;
            std::panic::resume_unwind(Box::new(5));
        });
        let panics = home.spawn(panics.name("x"));
        let Err(AskError::NoReply(detail)) = panics.ask(|reply| reply).await else {
            panic!("there is no reply");
        };
        assert_eq!(*detail.why(), AskCause::Panicked(String::new()));
        assert_eq!(names(&detail.to_string()), "x panicked");
        panics.closed().await;
        let Err(AskError::Closed(detail)) = panics.ask(|reply| reply).await else {
            panic!("the mailbox is open");
        };
        assert_eq!(names(&detail.to_string()), "x panicked");
    });
}

/// Drops a reply while a panic unwinds that is caught here.
fn lose_in_a_panic(reply: Reply<u32>) {
    let call = AssertUnwindSafe(move || {
        let _reply = reply;
        panic!("bomb that is caught")
    });
    let _: Result<(), _> = catch_unwind(call);
}

fn a_loss_after_a_caught_panic_ends_the_earlier_ask(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (second, mut answer) = Reply::<u32>::pair();
        let catches = actor(|mut cx: Context<Reply<u32>>| async move {
            let first = cx.recv().await.unwrap();
            lose_in_a_panic(second);
            drop(first);
            poll_once(&mut answer).is_ready()
        });
        let catches = home.spawn(catches.name("catches"));
        let answer = catches.ask(|reply| reply).await;
        assert_eq!(no_reply(answer), named("catches", AskCause::ReplyDropped));
        let is_ended = catches.join().await.unwrap();
        assert!(is_ended);
    });
}

#[test]
fn a_reply_of_a_caught_panic_is_lost_before_its_thread_blocks() {
    keep_bombs_quiet();
    within(WATCH, || {
        greenroom::run(async {
            let catches = actor(|_cx: Context<()>| async move {
                let (lost, answer) = Reply::<u32>::pair();
                lose_in_a_panic(lost);
                Runtime::current().block_on(answer)
            });
            let catches = catches.on(Detached).spawn();
            let answer = catches.join().await.unwrap();
            assert_eq!(no_reply(answer), (None, AskCause::ReplyDropped));
        });
    });
}

#[test]
fn a_shutdown_is_the_cause_of_the_replies_that_it_loses() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).grace(Duration::ZERO);
        let runtime = runtime.build().unwrap();
        let kept = Gate::default();
        let has_kept = kept.clone();
        let stuck = actor(|mut cx: Context<Reply<()>>| async move {
            let _reply = cx.recv().await;
            has_kept.open();
            std::future::pending::<()>().await
        });
        let stuck = stuck.name("stuck").on(&runtime).spawn();
        let asks = (0..2).map(|_| stuck.request(|reply| reply));
        let mut asks = futures::future::join_all(asks.collect::<Vec<_>>());
        let asked = Gate::default();
        let has_asked = asked.clone();
        let answers = drive_elsewhere(async move {
            assert!(poll_here(&mut asks).await.is_pending());
            has_asked.open();
            asks.await
        });
        asked.pass();
        kept.pass();
        drive(runtime.shutdown());
        for answer in answers.join() {
            assert_eq!(no_reply(answer), named("stuck", AskCause::Cancelled));
        }
    });
}

#[test]
fn details_are_equal_and_one_pointer_in_size() {
    let (lost, answer) = Reply::<u32>::pair();
    drop(lost);
    let error = futures::executor::block_on(answer).unwrap_err();
    assert_eq!(error, AskError::NoReply(AskDetail::default()));
    assert_ne!(error, AskError::Closed(AskDetail::default()));
    assert_eq!(error.to_string(), "no reply: its holder dropped the reply");
    let AskError::NoReply(detail) = error else {
        panic!("there is no reply");
    };
    assert!(detail.actor().is_none());
    let pointer = size_of::<usize>();
    assert_eq!(size_of::<AskDetail>(), pointer);
    assert_eq!(size_of::<Reply<u32>>(), pointer);
    assert_eq!(size_of::<Refusal>(), pointer);
    assert_eq!(size_of::<AskError>(), 2 * pointer);
}
