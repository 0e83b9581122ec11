//! When it is over: stops, kills, shutdowns, and actors without addresses.

use greenroom::supervise::Restarts;
use greenroom::time::Instant;
use greenroom::{AskCause, Context, Fault, Runtime, actor, sim};

use super::{HOUR, Order, ever, lost, never, obedient, text_of};
use crate::support::{
    Drops, Gate, Home, Log, drive, in_every_home, keep_bombs_quiet, poll_here, poll_once,
};

in_every_home!(
    a_stopped_actor_is_restarted_while_accepted_messages_are_left,
    a_closed_and_empty_actor_ends_with_its_result,
    a_stop_ends_a_delay_at_once_if_nothing_is_left,
    a_stop_by_the_old_incarnation_itself_is_final,
    a_delay_ends_when_the_last_place_of_a_stopped_actor_is_given_up,
    an_actor_without_addresses_that_is_stopped_in_a_delay_ends_at_once,
    a_kill_ends_a_running_incarnation,
    a_kill_during_a_delay_is_final,
    a_kill_while_the_context_is_elsewhere_is_final,
    a_kill_by_the_incarnation_itself_is_final,
    a_kill_drops_a_context_in_its_own_mailbox,
    a_shutdown_ends_a_delay_at_once_if_nothing_is_left,
    a_shutdown_ends_the_delay_of_an_actor_without_addresses,
    a_shutdown_restarts_while_accepted_messages_are_left,
    join_gives_the_last_result,
    a_fault_that_is_not_joined_is_reported_once,
);

/// Waits until the actor has told of a panic and done its turn, so that it is in its delay.
///
/// Between the answer and the end of the turn the actor is not in its delay yet. A simulation and a
/// home with one thread end the turn before they run another task.
async fn fail(home: &Home, obeys: &greenroom::Address<Order>) {
    lost(obeys.ask(|reply| Order::Lose("bomb", reply)).await);
    // Two workers may still be in the turn.
    for _ in 0..10 {
        home.spawn_task(greenroom::yield_now()).await;
    }
}

fn a_stopped_actor_is_restarted_while_accepted_messages_are_left(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let (mut obeys, log) = obedient();
            if let Some(capacity) = capacity {
                obeys = obeys.capacity(capacity);
            }
            let (begun, end) = (Gate::default(), Gate::default());
            let obeys = home.spawn(obeys.restart(ever()));
            obeys.tell(Order::Wait(begun.clone(), end.clone())).unwrap();
            for number in 1..=3 {
                obeys.tell(Order::Panic("bomb")).unwrap();
                obeys.tell(Order::Log(number)).unwrap();
            }
            begun.wait().await;
            obeys.stop();
            assert!(obeys.tell(Order::Log(4)).is_err(), "it is closed");
            end.open();
            assert_eq!(obeys.join().await.unwrap(), 3);
            assert_eq!(log.take(), [1, 2, 3]);
        }
    });
}

fn a_closed_and_empty_actor_ends_with_its_result(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for rules in [Restarts::on_fault(), Restarts::always()] {
            let (obeys, log) = obedient();
            let (begun, end) = (Gate::default(), Gate::default());
            let obeys = home.spawn(obeys.restart(rules));
            obeys.tell(Order::Panic("bomb 1")).unwrap();
            obeys.tell(Order::Wait(begun.clone(), end.clone())).unwrap();
            obeys.tell(Order::Log(1)).unwrap();
            obeys.tell(Order::Panic("bomb 2")).unwrap();
            begun.wait().await;
            obeys.stop();
            end.open();
            assert_eq!(text_of(obeys.join().await), "bomb 2");
            assert_eq!(log.take(), [1]);
        }
        let (obeys, _) = obedient();
        let obeys = home.spawn(obeys.restart(Restarts::always()));
        obeys.stop();
        assert_eq!(obeys.join().await.unwrap(), 0);
    });
}

fn a_stop_ends_a_delay_at_once_if_nothing_is_left(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let (mut obeys, log) = obedient();
            if let Some(capacity) = capacity {
                obeys = obeys.capacity(capacity);
            }
            let obeys = home.spawn(obeys.restart(ever().delays(never())));
            fail(home, &obeys).await;
            obeys.stop();
            obeys.closed().await;
            assert_eq!(text_of(obeys.join().await), "bomb");
            assert_eq!(log.take(), []);
        }
    });
}

fn a_stop_by_the_old_incarnation_itself_is_final(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let stops = |mut cx: Context<u32>| async move {
            cx.recv().await;
            cx.stop();
            panic!("bomb of {}", cx.incarnation_number());
        };
        let held = home.hold();
        let stops = home.spawn(actor(stops).restart(Restarts::<()>::always()));
        stops.tell(1).unwrap();
        stops.tell(2).unwrap();
        drop(held);
        stops.closed().await;
        let text = text_of(stops.join().await);
        // In a simulation the second message may arrive after the first was handled.
        assert!(text == "bomb of 1" || home.is_simulated(), "{text}");
    });
}

fn a_delay_ends_when_the_last_place_of_a_stopped_actor_is_given_up(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let (mut obeys, _) = obedient();
            if let Some(capacity) = capacity {
                obeys = obeys.capacity(capacity);
            }
            let obeys = home.spawn(obeys.restart(ever().delays(never())));
            let place = obeys.reserve().await.unwrap();
            fail(home, &obeys).await;
            obeys.stop();
            for _ in 0..5 {
                greenroom::yield_now().await;
            }
            drop(place);
            assert_eq!(text_of(obeys.join().await), "bomb");
        }
    });
}

fn an_actor_without_addresses_that_is_stopped_in_a_delay_ends_at_once(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (obeys, _) = obedient();
        let obeys = home.spawn(obeys.restart(ever().delays(never())));
        fail(home, &obeys).await;
        let weak = obeys.downgrade();
        let mut join = obeys.join();
        // The actor may notice that it has no address.
        for _ in 0..5 {
            assert!(poll_here(&mut join).await.is_pending());
            home.spawn_task(greenroom::yield_now()).await;
        }
        weak.upgrade().unwrap().stop();
        assert_eq!(text_of(join.await), "bomb");
    });
}

fn a_kill_ends_a_running_incarnation(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for rules in [ever(), Restarts::always(), Restarts::when(|_| true)] {
            let (obeys, log) = obedient();
            let begun = Gate::default();
            let obeys = home.spawn(obeys.restart(rules));
            obeys.tell(Order::Panic("bomb")).unwrap();
            obeys
                .tell(Order::Wait(begun.clone(), Gate::default()))
                .unwrap();
            obeys.tell(Order::Log(1)).unwrap();
            begun.wait().await;
            obeys.kill();
            assert!(matches!(obeys.join().await, Err(Fault::Killed)));
            assert_eq!(log.take(), []);
        }
    });
}

fn a_kill_during_a_delay_is_final(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for left in [0, 3] {
            let (obeys, log) = obedient();
            let undelivered = log.clone();
            let obeys = obeys.on_undelivered(move |_| undelivered.add(100));
            let obeys = home.spawn(obeys.restart(ever().delays(never())));
            fail(home, &obeys).await;
            for number in 0..left {
                obeys.tell(Order::Log(number)).unwrap();
            }
            let mut asked = obeys.request(Order::Number).into_future();
            assert!(poll_here(&mut asked).await.is_pending());
            obeys.kill();
            assert_eq!(lost(asked.await).1, AskCause::ReplyDropped);
            assert!(matches!(obeys.join().await, Err(Fault::Killed)));
            assert_eq!(log.take(), vec![100; left as usize + 1]);
        }
    });
}

fn a_kill_while_the_context_is_elsewhere_is_final(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for returns in [false, true] {
            let (escaped, gone) = (Log::default(), Gate::default());
            let (escapes, own) = (escaped.clone(), gone.clone());
            let undelivered = Log::default();
            let log = undelivered.clone();
            let escapes = actor(move |cx: Context<u32>| async move {
                escapes.add(cx);
                let _tells = crate::support::OpenOnDrop(own);
                if !returns {
                    panic!("bomb");
                }
            });
            let escapes = escapes.on_undelivered(move |number| log.add(number));
            let escapes = home.spawn(escapes.restart(Restarts::always()));
            gone.wait().await;
            let mut cx = escaped.take().pop().unwrap();
            escapes.tell(1).unwrap();
            escapes.tell(2).unwrap();
            assert_eq!(cx.recv().await, Some(1));
            escapes.kill();
            assert_eq!(cx.recv().await, None);
            assert!(matches!(escapes.join().await, Err(Fault::Killed)));
            drop(cx);
            assert_eq!(undelivered.take(), [2]);
        }
    });
}

fn a_kill_by_the_incarnation_itself_is_final(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let begun = Log::default();
        let log = begun.clone();
        let kills = move |cx: Context<u32>| async move {
            log.add(cx.incarnation_number());
            cx.address().kill();
            panic!("bomb");
        };
        let kills = home.spawn(actor(kills).restart(Restarts::<()>::always()));
        kills.closed().await;
        assert_eq!(text_of(kills.join().await), "bomb");
        assert_eq!(begun.take(), [0]);
    });
}

fn a_kill_drops_a_context_in_its_own_mailbox(home: &Home) {
    home.block_on(async {
        struct Itself(#[expect(dead_code, reason = "only its drop counts")] Context<Itself>);
        for lends in [false, true] {
            let sent = Gate::default();
            let tells = sent.clone();
            let drops = Drops::default();
            let state = std::sync::Arc::new(drops.one());
            let sends = actor(move |mut cx: Context<Itself>| async move {
                let _state = state;
                let address = cx.address();
                let send = move |cx| async move {
                    address.tell(Itself(cx)).unwrap();
                    tells.open();
                };
                match lends {
                    true => cx.incarnation(send).await.unwrap(),
                    false => send(cx).await,
                }
            });
            let sends = home.spawn(sends.restart(Restarts::always()));
            sent.wait().await;
            sends.kill();
            sends.closed().await;
            assert_eq!(drops.count(), 1);
        }
    });
}

fn a_shutdown_ends_a_delay_at_once_if_nothing_is_left(home: &Home) {
    keep_bombs_quiet();
    let (obeys, _) = obedient();
    let obeys = home.spawn(obeys.restart(ever().delays(never())));
    home.block_on(fail(home, &obeys));
    let report = drive(home.runtime.shutdown());
    assert_eq!((report.ended, report.cancelled), (1, 0));
    assert_eq!(text_of(drive(obeys.join())), "bomb");
}

fn a_shutdown_ends_the_delay_of_an_actor_without_addresses(home: &Home) {
    keep_bombs_quiet();
    let (obeys, _) = obedient();
    let obeys = home.spawn(obeys.restart(ever().delays(never())));
    home.block_on(fail(home, &obeys));
    let mut join = obeys.join();
    // The actor may notice that it has no address.
    home.block_on(async {
        for _ in 0..5 {
            assert!(poll_here(&mut join).await.is_pending());
            home.spawn_task(greenroom::yield_now()).await;
        }
    });
    let report = drive(home.runtime.shutdown());
    assert_eq!((report.ended, report.cancelled), (1, 0));
    assert_eq!(text_of(drive(join)), "bomb");
}

fn a_shutdown_restarts_while_accepted_messages_are_left(home: &Home) {
    keep_bombs_quiet();
    let (obeys, log) = obedient();
    let (begun, end) = (Gate::default(), Gate::default());
    let obeys = home.spawn(obeys.restart(ever()));
    obeys.tell(Order::Wait(begun.clone(), end.clone())).unwrap();
    for number in 1..=3 {
        obeys.tell(Order::Panic("bomb")).unwrap();
        obeys.tell(Order::Log(number)).unwrap();
    }
    begun.pass();
    let mut shutdown = Box::pin(home.runtime.shutdown());
    assert!(poll_once(&mut shutdown).is_pending());
    end.open();
    let report = drive(shutdown);
    assert_eq!((report.ended, report.cancelled), (1, 0));
    assert_eq!(drive(obeys.join()).unwrap(), 3);
    assert_eq!(log.take(), [1, 2, 3]);
}

fn join_gives_the_last_result(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let numbers = |mut cx: Context<bool>| async move {
            let panics = cx.recv().await;
            assert!(panics.is_some(), "it is left only by the bound");
            if panics == Some(true) {
                panic!("bomb {}", cx.incarnation_number());
            }
            cx.incarnation_number()
        };
        let rules = Restarts::always().intensity(2, HOUR);
        let first = home.spawn(actor(numbers).restart(rules.clone()));
        for panics in [true, true, false] {
            first.tell(panics).unwrap();
        }
        first.closed().await;
        assert_eq!(first.join().await.unwrap(), 2);
        let second = home.spawn(actor(numbers).restart(rules));
        for panics in [false, false, true] {
            second.tell(panics).unwrap();
        }
        second.closed().await;
        assert_eq!(text_of(second.join().await), "bomb 2");
    });
}

fn a_fault_that_is_not_joined_is_reported_once(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let state = drops.one();
        let own = std::sync::Arc::new(state);
        let panics = move |_cx: Context<()>| async move {
            let _own = own;
            panic!("bomb");
        };
        let rules = Restarts::<()>::on_fault().intensity(3, HOUR);
        let panics = home.spawn(actor(panics).restart(rules));
        panics.closed().await;
        drop(panics);
        assert_eq!(drops.count(), 1, "everything is dropped at the end");
    });
}

#[test]
fn a_stopped_actor_waits_for_its_delay_if_messages_are_left() {
    keep_bombs_quiet();
    sim::explore(0..20, |_| async {
        let (obeys, log) = obedient();
        let obeys = obeys.restart(ever().stand_down(HOUR)).spawn();
        let begun = Instant::now();
        lost(obeys.ask(|reply| Order::Lose("bomb", reply)).await);
        obeys.tell(Order::Log(1)).unwrap();
        obeys.stop();
        assert_eq!(obeys.join().await.unwrap(), 1);
        assert_eq!(log.take(), [1]);
        assert!(begun.elapsed() >= HOUR * 3 / 4);
    });
}

#[test]
fn faults_before_a_restart_are_not_reported() {
    keep_bombs_quiet();
    let reported = Log::default();
    let log = reported.clone();
    let runtime = Runtime::builder().on_fault(move |fault| log.add(fault.to_string()));
    let runtime = runtime.workers(1).build().unwrap();
    runtime.block_on(async {
        let panics = |cx: Context<()>| async move {
            panic!("bomb {}", cx.incarnation_number());
        };
        let rules = Restarts::<()>::on_fault().intensity(2, HOUR);
        let panics = actor(panics).name("panics").restart(rules).spawn();
        panics.closed().await;
        drop(panics);
    });
    let reported = reported.take();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("bomb 2"), "{reported:?}");
}
