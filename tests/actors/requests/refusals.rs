//! Refusals: the answer of an actor that does not do what it was asked for.

use std::error::Error;

use greenroom::{AskError, Context, Refusal, RefusalKind, Reply, actor, concurrently, sim, spawn};

use crate::support::{Home, elsewhere, in_every_home};

/// Refuses every request, and counts them in the error code.
async fn refuser(mut cx: Context<Reply<u32>>) {
    let mut count = 0;
    while let Some(reply) = cx.recv().await {
        count += 1;
        reply.refuse(Refusal::new("out of paper", "tray 2").with_error_code(count));
    }
}

in_every_home!(
    a_refused_ask_returns_the_refusal,
    a_refusal_without_an_asker_is_dropped,
    a_refusal_may_come_from_another_thread,
    a_refusal_comes_back_through_a_mapped_address,
);

fn a_refused_ask_returns_the_refusal(home: &Home) {
    home.block_on(async {
        let refuser = home.spawn(actor(refuser));
        for count in 1..=3 {
            let error = refuser.ask(|reply| reply).await.unwrap_err();
            let expected = Refusal::new("out of paper", "tray 2").with_error_code(count);
            assert_eq!(error, AskError::Refused(expected));
            assert_eq!(error.to_string(), "refused: out of paper (tray 2)");
        }
    });
}

fn a_refusal_without_an_asker_is_dropped(home: &Home) {
    home.block_on(async {
        let late = home.spawn(actor(|mut cx: Context<Reply<u32>>| async move {
            let reply = cx.recv().await.unwrap();
            // The asker goes before it is refused.
            assert!(cx.recv().await.is_none());
            assert!(!reply.is_wanted());
            reply.refuse(Refusal::new("late", ""));
        }));
        let mut ask = Box::pin(late.ask(|reply| reply));
        assert!(futures::poll!(&mut ask).is_pending());
        drop(ask);
        late.stop();
        late.join().await.unwrap();
    });
}

fn a_refusal_may_come_from_another_thread(home: &Home) {
    home.block_on(async {
        let refuser = home.spawn(actor(|mut cx: Context<Reply<u32>>| async move {
            while let Some(reply) = cx.recv().await {
                elsewhere(move || reply.refuse(Refusal::of(RefusalKind::Busy, ""))).join();
            }
        }));
        let error = refuser.ask(|reply| reply).await.unwrap_err();
        assert_eq!(error, AskError::Refused(Refusal::of(RefusalKind::Busy, "")));
    });
}

fn a_refusal_comes_back_through_a_mapped_address(home: &Home) {
    enum Message {
        Print(Reply<u32>),
    }
    home.block_on(async {
        let printer = home.spawn(actor(|mut cx: Context<Message>| async move {
            while let Some(Message::Print(reply)) = cx.recv().await {
                reply.refuse(Refusal::of(RefusalKind::OutOfService, "no ink"));
            }
        }));
        let error = printer.map(Message::Print).ask(|reply| reply).await;
        let expected = Refusal::of(RefusalKind::OutOfService, "no ink");
        assert_eq!(error, Err(AskError::Refused(expected)));
    });
}

#[test]
fn a_refusal_in_a_split_turn_reaches_its_asker() {
    sim::explore(0..200, |_| async {
        let (first, second) = (spawn!(refuser(_)), spawn!(refuser(_)));
        let both = concurrently((first.ask(|reply| reply), second.ask(|reply| reply))).await;
        let expected = AskError::Refused(Refusal::new("out of paper", "tray 2").with_error_code(1));
        assert_eq!(both, (Err(expected.clone()), Err(expected)));

        let at_once = spawn!(|mut cx: Context<Reply<u32>>| async move {
            let first = cx.recv().await.unwrap();
            let second = cx.recv().await.unwrap();
            second.refuse(Refusal::of(RefusalKind::Busy, ""));
            first.send(1);
        });
        let both = concurrently((at_once.ask(|reply| reply), at_once.ask(|reply| reply))).await;
        let busy = AskError::Refused(Refusal::of(RefusalKind::Busy, ""));
        assert_eq!(both, (Ok(1), Err(busy)));
    });
}

#[test]
fn each_kind_has_its_condition_and_its_text() {
    for (kind, condition) in [
        (RefusalKind::Fault, "fault"),
        (RefusalKind::Aborted, "aborted"),
        (RefusalKind::TimedOut, "timed out"),
        (RefusalKind::Unavailable, "temporarily unavailable"),
        (RefusalKind::Busy, "busy"),
        (RefusalKind::Overloaded, "overloaded"),
        (RefusalKind::OutOfService, "out of service"),
        (RefusalKind::ToBeConfirmed, "to be confirmed"),
        (RefusalKind::NotListening, "not listening"),
        (RefusalKind::NotConnected, "not connected"),
        (RefusalKind::NotAccepted, "not accepted"),
    ] {
        let refusal = Refusal::of(kind, "because");
        assert_eq!((refusal.kind(), refusal.condition()), (kind, condition));
        assert_eq!(refusal.to_string(), format!("{condition} (because)"));
        assert_eq!(Refusal::of(kind, "").to_string(), condition);
        assert_eq!((refusal.error_code(), refusal.exit_status()), (None, None));
    }
}

#[test]
fn a_refusal_has_what_it_was_made_with() {
    let refusal = Refusal::new("jam", "roller 3")
        .with_error_code(-7)
        .with_exit_status(71);
    assert_eq!(
        (refusal.condition(), refusal.explanation()),
        ("jam", "roller 3")
    );
    assert_eq!(
        (refusal.error_code(), refusal.exit_status()),
        (Some(-7), Some(71))
    );
    let plain = Refusal::new("jam", "roller 3");
    assert_eq!((plain.error_code(), plain.exit_status()), (None, None));
    assert_ne!(plain, refusal);
    // A clone that is changed leaves the other one as it is.
    assert_eq!(
        plain.clone().with_error_code(-7).with_exit_status(71),
        refusal
    );
    assert_eq!(plain.error_code(), None);
    assert_eq!(Refusal::new("", "x").to_string(), "fault (x)");
    let boxed: Box<dyn Error + Send + Sync> = Box::new(AskError::Refused(plain));
    assert_eq!(boxed.to_string(), "refused: jam (roller 3)");
}

#[test]
fn an_ask_error_is_two_words_and_its_result_no_larger() {
    let word = size_of::<usize>();
    assert_eq!(size_of::<Refusal>(), word);
    assert_eq!(size_of::<AskError>(), 2 * word);
    assert_eq!(size_of::<Reply<[u8; 100]>>(), word);
}
