//! The messages of an actor that begins anew: they stay, but for the one in hand.

use futures::future::join_all;
use greenroom::supervise::Restarts;
use greenroom::{AskCause, Context, Reply, actor};

use super::{HOUR, Order, ever, lost, never, obedient, text_of};
use crate::support::{Gate, Home, Log, in_every_home, keep_bombs_quiet, poll_here};

in_every_home!(
    waiting_messages_stay_in_order,
    messages_that_were_taken_come_before_those_that_wait,
    the_message_in_hand_is_not_retried,
    an_asker_is_told_of_the_panic_even_before_the_back_off,
    replies_that_an_incarnation_has_kept_are_lost_with_it,
    an_asker_is_told_although_the_context_is_elsewhere,
    a_question_that_waits_is_answered_by_the_next_incarnation,
    waiting_senders_stay_in_the_line_and_the_bound_stays,
    a_reserved_place_is_filled_after_the_restart,
    what_the_last_incarnation_leaves_is_undelivered_in_order,
    nothing_is_undelivered_before_the_end,
    questions_that_are_left_at_the_end_have_the_last_panic_as_cause,
    a_question_that_a_returned_incarnation_held_is_lost_at_once,
    the_other_addresses_stay,
);

fn waiting_messages_stay_in_order(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let (mut obeys, log) = obedient();
            if let Some(capacity) = capacity {
                obeys = obeys.capacity(capacity);
            }
            // All of them are there when the actor begins, so an unbounded one takes one batch.
            let held = home.hold();
            let obeys = home.spawn(obeys.restart(ever()));
            for number in 1..=4 {
                obeys.tell(Order::Log(number)).unwrap();
                obeys.tell(Order::Panic("bomb")).unwrap();
            }
            obeys.tell(Order::Log(5)).unwrap();
            drop(held);
            assert_eq!(obeys.join().await.unwrap(), 4);
            assert_eq!(log.take(), [1, 2, 3, 4, 5]);
        }
    });
}

fn messages_that_were_taken_come_before_those_that_wait(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let (begun, end) = (Gate::default(), Gate::default());
        let held = home.hold();
        let obeys = home.spawn(obeys.restart(ever()));
        obeys.tell(Order::Wait(begun.clone(), end.clone())).unwrap();
        obeys.tell(Order::Panic("bomb")).unwrap();
        obeys.tell(Order::Log(1)).unwrap();
        drop(held);
        begun.wait().await;
        obeys.tell(Order::Log(2)).unwrap();
        obeys.tell(Order::Panic("bomb")).unwrap();
        obeys.tell(Order::Log(3)).unwrap();
        end.open();
        assert_eq!(obeys.join().await.unwrap(), 2);
        assert_eq!(log.take(), [1, 2, 3]);
    });
}

fn the_message_in_hand_is_not_retried(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let odd = actor(|mut cx: Context<u32>| async move {
            while let Some(number) = cx.recv().await {
                own.add(number);
                greenroom::yield_now().await;
                if number % 2 == 1 {
                    panic!("bomb");
                }
            }
        });
        let odd = home.spawn(odd.restart(ever()));
        for number in 1..=6 {
            odd.tell(number).unwrap();
        }
        odd.join().await.unwrap();
        assert_eq!(log.take(), [1, 2, 3, 4, 5, 6]);
    });
}

fn an_asker_is_told_of_the_panic_even_before_the_back_off(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, _) = obedient();
        let obeys = home.spawn(obeys.restart(ever().delays(never())));
        let answer = obeys.ask(|reply| Order::Lose("bomb 7", reply)).await;
        let why = AskCause::Panicked("bomb 7".into());
        assert_eq!(lost(answer), (Some(obeys.id()), why));
        obeys.kill();
        obeys.closed().await;
    });
}

fn replies_that_an_incarnation_has_kept_are_lost_with_it(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, _) = obedient();
        let obeys = home.spawn(obeys.restart(ever().delays(never())));
        let asks = (0..3).map(|_| obeys.request(Order::Keep));
        let asks = join_all(asks.map(std::future::IntoFuture::into_future));
        let panics = async { obeys.send(Order::Panic("bomb of the keeper")).await };
        let (answers, told) = futures::join!(asks, panics);
        told.unwrap();
        for answer in answers {
            let why = AskCause::Panicked("bomb of the keeper".into());
            assert_eq!(lost(answer), (Some(obeys.id()), why));
        }
        obeys.kill();
    });
}

fn an_asker_is_told_although_the_context_is_elsewhere(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let contexts = Log::default();
        let escapes = contexts.clone();
        let panics = actor(move |mut cx: Context<Reply<u64>>| async move {
            let reply = cx.recv().await;
            if cx.incarnation_number() == 0 {
                escapes.add(cx);
                panic!("bomb 9");
            }
            reply.unwrap().send(cx.incarnation_number());
        });
        let panics = home.spawn(panics.restart(ever()));
        let answer = panics.ask(|reply| reply).await;
        let why = AskCause::Panicked("bomb 9".into());
        assert_eq!(lost(answer), (Some(panics.id()), why));
        let mut second = panics.ask(|reply| reply);
        assert!(poll_here(&mut second).await.is_pending());
        drop(contexts.take());
        assert_eq!(second.await, Ok(1));
    });
}

fn a_question_that_waits_is_answered_by_the_next_incarnation(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, _) = obedient();
        let held = home.hold();
        let obeys = home.spawn(obeys.restart(ever()));
        for _ in 0..3 {
            obeys.tell(Order::Panic("bomb")).unwrap();
        }
        let mut number = obeys.ask(Order::Number);
        assert!(poll_here(&mut number).await.is_pending());
        drop(held);
        assert_eq!(number.await, Ok(3));
        obeys.join().await.unwrap();
    });
}

fn waiting_senders_stay_in_the_line_and_the_bound_stays(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let held = home.hold();
        let obeys = home.spawn(obeys.capacity(2).restart(ever()));
        obeys.tell(Order::Panic("bomb")).unwrap();
        obeys.tell(Order::Panic("bomb")).unwrap();
        let mut sends: Vec<_> = (1..=6).map(|n| obeys.send(Order::Log(n))).collect();
        for send in &mut sends {
            assert!(poll_here(send).await.is_pending());
        }
        drop(held);
        assert!(join_all(sends).await.into_iter().all(|sent| sent.is_ok()));
        assert_eq!(obeys.ask(Order::Number).await, Ok(2));
        assert_eq!(log.take(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(obeys.capacity(), Some(2));
        let (begun, end) = (Gate::default(), Gate::default());
        obeys.tell(Order::Wait(begun.clone(), end.clone())).unwrap();
        begun.wait().await;
        obeys.tell(Order::Log(7)).unwrap();
        obeys.tell(Order::Log(8)).unwrap();
        assert!(obeys.tell(Order::Log(9)).is_err(), "it is full");
        end.open();
        obeys.join().await.unwrap();
        assert_eq!(log.take(), [7, 8]);
    });
}

fn a_reserved_place_is_filled_after_the_restart(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(2)] {
            let (mut obeys, log) = obedient();
            if let Some(capacity) = capacity {
                obeys = obeys.capacity(capacity);
            }
            let obeys = home.spawn(obeys.restart(ever()));
            let place = obeys.reserve().await.unwrap();
            let answer = obeys.ask(|reply| Order::Lose("bomb", reply)).await;
            lost(answer);
            assert_eq!(obeys.ask(Order::Number).await, Ok(1));
            // The reserved place counts as accepted, so the closed actor is restarted.
            obeys.tell(Order::Panic("bomb")).unwrap();
            obeys.stop();
            place.send(Order::Log(1));
            assert_eq!(obeys.join().await.unwrap(), 2);
            assert_eq!(log.take(), [1]);
        }
    });
}

fn what_the_last_incarnation_leaves_is_undelivered_in_order(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(20)] {
            let (mut obeys, log) = obedient();
            if let Some(capacity) = capacity {
                obeys = obeys.capacity(capacity);
            }
            let undelivered = log.clone();
            let obeys = obeys.on_undelivered(move |order| match order {
                Order::Log(number) => undelivered.add(100 + number),
                _ => undelivered.add(0),
            });
            let (begun, end) = (Gate::default(), Gate::default());
            let held = home.hold();
            let obeys = home.spawn(obeys.restart(Restarts::on_fault().intensity(2, HOUR)));
            for number in 1..=2 {
                obeys.tell(Order::Log(number)).unwrap();
                obeys.tell(Order::Panic("bomb")).unwrap();
            }
            obeys.tell(Order::Wait(begun.clone(), end.clone())).unwrap();
            obeys.tell(Order::Panic("bomb 3")).unwrap();
            obeys.tell(Order::Log(3)).unwrap();
            obeys.tell(Order::Panic("bomb")).unwrap();
            drop(held);
            begun.wait().await;
            obeys.tell(Order::Log(4)).unwrap();
            end.open();
            assert_eq!(text_of(obeys.join().await), "bomb 3");
            assert_eq!(log.take(), [1, 2, 103, 0, 104]);
        }
    });
}

fn nothing_is_undelivered_before_the_end(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let undelivered = log.clone();
        let obeys = obeys.on_undelivered(move |_| undelivered.add(0));
        let obeys = home.spawn(obeys.restart(ever()));
        for number in 1..=10 {
            obeys.tell(Order::Panic("bomb")).unwrap();
            obeys.tell(Order::Log(number)).unwrap();
        }
        assert_eq!(obeys.ask(Order::Number).await, Ok(10));
        obeys.join().await.unwrap();
        assert_eq!(log.take(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });
}

fn questions_that_are_left_at_the_end_have_the_last_panic_as_cause(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, _) = obedient();
        let held = home.hold();
        let obeys = home.spawn(obeys.restart(Restarts::on_fault().intensity(1, HOUR)));
        let mut asks: Vec<_> = ["bomb 1", "bomb 2", "bomb 3"]
            .map(|text| obeys.ask(move |reply| Order::Lose(text, reply)))
            .into();
        for ask in &mut asks {
            assert!(poll_here(ask).await.is_pending());
        }
        drop(held);
        let answers = join_all(asks).await;
        let whys: Vec<_> = answers.into_iter().map(|answer| lost(answer).1).collect();
        let panicked = ["bomb 1", "bomb 2", "bomb 2"];
        assert_eq!(whys, panicked.map(|text| AskCause::Panicked(text.into())));
        assert_eq!(text_of(obeys.join().await), "bomb 2");
    });
}

fn a_question_that_a_returned_incarnation_held_is_lost_at_once(home: &Home) {
    home.block_on(async {
        let returns = |mut cx: Context<Reply<()>>| async move { cx.recv().await };
        let returns = actor(returns).restart(Restarts::always().delays(never()));
        let returns = home.spawn(returns);
        // The result with the reply is kept until the next incarnation begins.
        let address = returns.address();
        let mut asked = address.ask(|reply| reply);
        assert!(poll_here(&mut asked).await.is_pending());
        returns.stop();
        let result = returns.join().await.unwrap();
        result.unwrap().send(());
        assert_eq!(asked.await, Ok(()));

        let drops = |mut cx: Context<Reply<()>>| async move { drop(cx.recv().await) };
        let drops = home.spawn(actor(drops).restart(Restarts::always().delays(never())));
        let answer = drops.ask(|reply| reply).await;
        assert_eq!(lost(answer).1, AskCause::ReplyDropped);
        drops.kill();
    });
}

fn the_other_addresses_stay(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, log) = obedient();
        let obeys = home.spawn(obeys.restart(ever()));
        let (other, weak) = (obeys.address(), obeys.downgrade());
        let mut closed = Box::pin(other.closed());
        lost(obeys.ask(|reply| Order::Lose("bomb", reply)).await);
        assert!(poll_here(&mut closed).await.is_pending());
        assert!(!other.is_closed());
        other.tell(Order::Log(1)).unwrap();
        weak.upgrade().unwrap().tell(Order::Log(2)).unwrap();
        obeys.stop();
        closed.await;
        assert_eq!(log.take(), [1, 2]);
    });
}
