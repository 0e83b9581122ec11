//! The fates of what lives longer than one future: children, machines, incarnations and back-offs;
//! and of actors that do not receive.

use greenroom::machine::{Machine, Next};
use greenroom::supervise::Restarts;
use greenroom::time::RetryIntervals;
use greenroom::{AskError, Context, Detached, Fault, actor};

use super::{Order, Way, hold, into, work, worker};
use crate::support::{
    Gate, Home, Log, WATCH, drive, in_every_home, keep_bombs_quiet, on_threads, poll_here, within,
};

in_every_home!(
    a_child,
    messages_that_a_machine_has_saved,
    an_incarnation_and_its_lender,
    a_restart_after_the_message_in_hand,
    a_restart_of_an_actor_that_returns,
    a_back_off,
    an_actor_that_never_began,
);

// A handler blocks its thread.
on_threads!(a_detached_actor_that_does_not_receive);

fn a_child(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (child, log) = worker();
            let (left, results) = (Log::default(), Log::default());
            let child = home.spawn(child.on_undelivered(into(&left)));
            let end = hold(&child).await;
            child.tell(Order::Log(1)).unwrap();
            let (address, own) = (child.address(), results.clone());
            let parent = home.spawn(actor(move |mut cx: Context<u32>| async move {
                cx.adopt(child, |result| result.unwrap_or(0));
                while let Some(handled) = cx.recv().await {
                    own.add(handled);
                }
            }));
            // It has adopted the child when it has received this.
            parent.tell(7).unwrap();
            while results.len() == 0 {
                greenroom::yield_now().await;
            }
            assert_eq!(results.take(), [7]);
            way.end(&parent);
            while !address.is_closed() {
                greenroom::yield_now().await;
            }
            end.open();
            address.closed().await;
            parent.closed().await;
            let (handled, undelivered, result): (&[_], &[_], &[_]) = match way {
                Way::Stop => (&[0, 1], &[], &[2]),
                Way::StopNow => (&[0], &[1], &[1]),
                // The child of a parent that ends is stopped.
                Way::Kill => (&[0, 1], &[], &[]),
            };
            assert_eq!(log.take(), handled, "{way:?}");
            assert_eq!(left.take(), undelivered, "{way:?}");
            assert_eq!(results.take(), result, "{way:?}");
        }
    });
}

/// Saves all numbers, and changes its state after a `Hold`.
struct Saves(Log<u32>);

impl Machine for Saves {
    type State = ();
    type Message = Order;
    type Value = ();

    async fn on(&mut self, _state: &(), message: Order, _cx: &mut Context<Order>) -> Next<Self> {
        match message {
            Order::Log(number) => {
                self.0.add(number);
                Next::Save(message)
            }
            Order::Hold(begun, end) => {
                begun.open();
                end.wait().await;
                Next::To(())
            }
            ignored => Next::Ignore(ignored),
        }
    }
}

fn messages_that_a_machine_has_saved(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (log, left) = (Log::default(), Log::default());
            let saves = Saves(log.clone()).into_builder(());
            let saves = home.spawn(saves.on_undelivered(into(&left)));
            saves.tell(Order::Log(1)).unwrap();
            saves.tell(Order::Log(2)).unwrap();
            let end = hold(&saves).await;
            saves.tell(Order::Log(3)).unwrap();
            way.end(&saves);
            way.go_on(&end);
            assert_eq!(saves.join().await.is_ok(), way != Way::Kill);
            let handled: &[_] = match way {
                // The saved ones come again after the change.
                Way::Stop => &[1, 2, 1, 2, 3],
                Way::StopNow | Way::Kill => &[1, 2],
            };
            assert_eq!(log.take(), handled, "{way:?}");
            assert_eq!(left.take(), [1, 2, 3], "{way:?}");
        }
    });
}

fn an_incarnation_and_its_lender(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (log, left) = (Log::default(), Log::default());
            let own = log.clone();
            let lends = actor(move |mut cx: Context<Order>| async move {
                let handled = cx.incarnation(|cx| work(cx, own)).await;
                (handled.unwrap(), cx.recv().await.is_none())
            });
            let lends = home.spawn(lends.on_undelivered(into(&left)));
            let end = hold(&lends).await;
            lends.tell(Order::Log(1)).unwrap();
            way.end(&lends);
            way.go_on(&end);
            let handled = match lends.join().await {
                Ok((handled, is_over)) => {
                    assert!(is_over);
                    handled
                }
                Err(_) => 0,
            };
            let (expected, undelivered): (_, &[_]) = match way {
                Way::Stop => (2, &[]),
                Way::StopNow => (1, &[1]),
                Way::Kill => (0, &[1]),
            };
            assert_eq!((handled, &*left.take()), (expected, undelivered), "{way:?}");
        }
    });
}

fn a_restart_after_the_message_in_hand(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for way in Way::ALL {
            let (log, left) = (Log::default(), Log::default());
            let own = log.clone();
            let panics = actor(move |cx: Context<Order>| work(cx, own));
            let panics = panics
                .restart(Restarts::on_fault())
                .on_undelivered(into(&left));
            let panics = home.spawn(panics);
            let (begun, end) = (Gate::default(), Gate::default());
            panics
                .tell(Order::Panic(begun.clone(), end.clone()))
                .unwrap();
            panics.tell(Order::Log(1)).unwrap();
            begun.wait().await;
            way.end(&panics);
            way.go_on(&end);
            let result = panics.join().await;
            let (handled, undelivered): (&[_], &[_]) = match way {
                Way::Stop => (&[1], &[]),
                Way::StopNow | Way::Kill => (&[], &[1]),
            };
            assert_eq!(log.take(), handled, "{way:?}");
            assert_eq!(left.take(), undelivered, "{way:?}");
            match way {
                Way::Stop => assert_eq!(result.unwrap(), 1),
                Way::StopNow => assert!(matches!(result, Err(Fault::Panicked(_)))),
                Way::Kill => assert!(matches!(result, Err(Fault::Killed))),
            }
        }
    });
}

fn a_restart_of_an_actor_that_returns(home: &Home) {
    home.block_on(async {
        let begun = Log::default();
        let begins = begun.clone();
        let returns = actor(move |mut cx: Context<u32>| async move {
            begins.add(cx.incarnation_number());
            cx.recv().await
        });
        let returns = home.spawn(returns.restart(Restarts::when(|_| true)));
        while begun.len() == 0 {
            greenroom::yield_now().await;
        }
        returns.stop_now();
        assert_eq!(returns.join().await.unwrap(), None);
        assert_eq!(begun.take(), [0]);
    });
}

fn a_back_off(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for way in Way::ALL {
            let left = Log::default();
            let never = RetryIntervals::every(std::time::Duration::MAX);
            let fails = actor(|mut cx: Context<Order>| async move {
                let _first = cx.recv().await;
                panic!("bomb");
            });
            let fails = fails.restart(Restarts::on_fault().delays(never));
            let fails = home.spawn(fails.on_undelivered(into(&left)));
            // Its answer comes after the panic.
            let Err(AskError::NoReply(_)) = fails.ask(Order::Answer).await else {
                panic!("it has panicked");
            };
            fails.tell(Order::Log(1)).unwrap();
            let address = fails.address();
            way.end(&address);
            let mut join = fails.join();
            if way == Way::Stop {
                // What was accepted is handled after the back-off.
                for _ in 0..100 {
                    greenroom::yield_now().await;
                }
                assert!(poll_here(&mut join).await.is_pending());
                address.kill();
            }
            match join.await {
                Err(Fault::Panicked(_)) => assert_eq!(way, Way::StopNow),
                Err(Fault::Killed) => assert_ne!(way, Way::StopNow),
                other => panic!("{other:?}"),
            }
            assert_eq!(left.take(), [1], "{way:?}");
        }
    });
}

fn an_actor_that_never_began(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (worker, log) = worker();
            let left = Log::default();
            let held = home.hold();
            let worker = home.spawn(worker.on_undelivered(into(&left)));
            worker.tell(Order::Log(1)).unwrap();
            way.end(&worker);
            drop(held);
            let result = worker.join().await;
            let (handled, undelivered): (&[_], &[_]) = match way {
                Way::Stop => (&[1], &[]),
                Way::StopNow | Way::Kill => (&[], &[1]),
            };
            assert_eq!(log.take(), handled, "{way:?}");
            assert_eq!(left.take(), undelivered, "{way:?}");
            assert_eq!(result.is_ok(), way != Way::Kill);
        }
    });
}

fn a_detached_actor_that_does_not_receive(_home: &Home) {
    for way in Way::ALL {
        let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
        let (begun, end, log) = (Gate::default(), Gate::default(), Log::default());
        let (begins, ends, own) = (begun.clone(), end.clone(), log.clone());
        let blocks = actor(move |mut cx: Context<u32>| async move {
            while let Some(number) = cx.recv().await {
                begins.open();
                ends.pass();
                own.add(number);
            }
        });
        let blocks = runtime.block_on(async { blocks.on(Detached).spawn() });
        blocks.tell(1).unwrap();
        blocks.tell(2).unwrap();
        begun.pass();
        way.end(&blocks);
        end.open();
        drive(blocks.closed());
        // It is not suspended where it blocks, so each way ends it afterwards.
        let handled: &[_] = if way == Way::Stop { &[1, 2] } else { &[1] };
        assert_eq!(log.take(), handled, "{way:?}");
    }
}

#[test]
fn a_split_actor_that_is_not_polled() {
    within(WATCH, || {
        for way in Way::ALL {
            let log = Log::default();
            let own = log.clone();
            let (address, future) = actor(move |cx: Context<Order>| work(cx, own)).split();
            address.tell(Order::Log(1)).unwrap();
            let mut ask = Box::pin(address.ask(Order::Answer));
            assert!(crate::support::poll_once(&mut ask).is_pending());
            way.end(&address);
            if way != Way::Stop {
                let Err(AskError::NoReply(detail)) = drive(&mut ask) else {
                    panic!("it was dropped at once");
                };
                assert_eq!(*detail.why(), way.cause());
            }
            match (way, drive(future)) {
                (Way::Stop, Ok(handled)) => assert_eq!((handled, log.len()), (2, 1)),
                (Way::StopNow, Ok(handled)) => assert_eq!((handled, log.len()), (0, 0)),
                (Way::Kill, Err(fault)) => assert!(matches!(fault, Fault::Killed)),
                (_, result) => panic!("{way:?}: {result:?}"),
            }
        }
    });
}
