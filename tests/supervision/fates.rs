//! What `stop`, `stop_now` and `kill` do to each message, and to what else an actor has.
//!
//! Each scenario is a row of the table in the guide. It ends an actor in each of the three ways.

mod lives;

use std::pin::Pin;
use std::time::Duration;

use futures::StreamExt;
use greenroom::{ActorBuilder, Address, AskCause, AskError, Context, Fault, Reply, actor};

use crate::support::{Drops, Gate, Home, Log, in_every_home, poll_here};

in_every_home!(
    the_message_in_hand,
    messages_that_were_taken_and_that_wait,
    questions_that_were_taken_and_that_wait,
    a_sender_in_the_line,
    a_permit_that_was_given,
    timers_streams_and_requests_in_flight,
    a_receive_in_another_task,
    a_message_that_is_received_without_a_wait,
    an_actor_that_ends_itself,
    a_stronger_way_after_a_weaker_one,
    a_stop_at_once_after_the_end_changes_no_cause,
);

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Stop,
    StopNow,
    Kill,
}

impl Way {
    const ALL: [Way; 3] = [Way::Stop, Way::StopNow, Way::Kill];

    fn end<M: Send + 'static>(self, actor: &Address<M>) {
        match self {
            Way::Stop => actor.stop(),
            Way::StopNow => actor.stop_now(),
            Way::Kill => actor.kill(),
        }
    }

    /// Lets the message in hand go on. One that is to be dropped waits for good: its turn may not be
    /// over yet.
    fn go_on(self, end: &Gate) {
        if self != Way::Kill {
            end.open();
        }
    }

    /// Returns why a question that was accepted has no answer.
    fn cause(self) -> AskCause {
        match self {
            Way::Stop => AskCause::Stopped,
            Way::StopNow => AskCause::StoppedNow,
            Way::Kill => AskCause::Killed,
        }
    }
}

enum Order {
    Log(u32),
    /// Open the first gate, wait for the other one, then log 0.
    Hold(Gate, Gate),
    /// As `Hold`, and then panic.
    Panic(Gate, Gate),
    Answer(Reply<u32>),
}

/// Does what it is told, and returns the number of orders that it has handled.
async fn work(mut cx: Context<Order>, log: Log<u32>) -> u32 {
    let mut handled = 0;
    while let Some(order) = cx.recv().await {
        match order {
            Order::Log(number) => log.add(number),
            Order::Hold(begun, end) => {
                begun.open();
                end.wait().await;
                log.add(0);
            }
            Order::Panic(begun, end) => {
                begun.open();
                end.wait().await;
                panic!("bomb in hand");
            }
            Order::Answer(reply) => reply.send(42),
        }
        handled += 1;
    }
    handled
}

type Worker = ActorBuilder<Order, WorkFn, Works>;
type WorkFn = Box<dyn FnOnce(Context<Order>) -> Works + Send>;
type Works = Pin<Box<dyn Future<Output = u32> + Send>>;

/// Returns an actor that does what it is told, and the log of its numbers.
fn worker() -> (Worker, Log<u32>) {
    let log = Log::default();
    let own = log.clone();
    let works: WorkFn = Box::new(move |cx| Box::pin(work(cx, own)));
    (actor(works), log)
}

/// Lets an actor hold a message until the returned gate opens. Returns when it does.
async fn hold(worker: &Address<Order>) -> Gate {
    let (begun, end) = (Gate::default(), Gate::default());
    worker
        .tell(Order::Hold(begun.clone(), end.clone()))
        .unwrap();
    begun.wait().await;
    end
}

/// Logs the numbers of undelivered orders.
fn into(left: &Log<u32>) -> impl FnMut(Order) + Send + 'static {
    let left = left.clone();
    move |order| {
        if let Order::Log(number) = order {
            left.add(number);
        }
    }
}

fn the_message_in_hand(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (worker, log) = worker();
            let worker = home.spawn(worker);
            let end = hold(&worker).await;
            way.end(&worker);
            assert!(worker.is_closed());
            way.go_on(&end);
            match worker.join().await {
                Ok(handled) => assert_eq!((handled, log.take()), (1, vec![0]), "{way:?}"),
                Err(fault) => {
                    assert!(matches!(fault, Fault::Killed), "{fault}");
                    assert_eq!((way, log.len()), (Way::Kill, 0));
                }
            }
        }
    });
}

fn messages_that_were_taken_and_that_wait(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (worker, log) = worker();
            let left = Log::default();
            let held = home.hold();
            let worker = home.spawn(worker.on_undelivered(into(&left)));
            let (begun, end) = (Gate::default(), Gate::default());
            worker
                .tell(Order::Hold(begun.clone(), end.clone()))
                .unwrap();
            // The actor takes these with the first one.
            worker.tell(Order::Log(1)).unwrap();
            worker.tell(Order::Log(2)).unwrap();
            drop(held);
            begun.wait().await;
            worker.tell(Order::Log(3)).unwrap();
            worker.tell(Order::Log(4)).unwrap();
            way.end(&worker);
            way.go_on(&end);
            let result = worker.join().await;
            assert_eq!(result.is_err(), way == Way::Kill);
            let (handled, undelivered): (&[_], &[_]) = match way {
                Way::Stop => (&[0, 1, 2, 3, 4], &[]),
                Way::StopNow => (&[0], &[1, 2, 3, 4]),
                Way::Kill => (&[], &[1, 2, 3, 4]),
            };
            assert_eq!(log.take(), handled, "{way:?}");
            assert_eq!(left.take(), undelivered, "{way:?}");
        }
    });
}

fn questions_that_were_taken_and_that_wait(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (worker, _) = worker();
            let held = home.hold();
            let worker = home.spawn(worker);
            let (begun, end) = (Gate::default(), Gate::default());
            worker
                .tell(Order::Hold(begun.clone(), end.clone()))
                .unwrap();
            let address = worker.address();
            let mut taken = Box::pin(address.ask(Order::Answer));
            assert!(poll_here(&mut taken).await.is_pending());
            drop(held);
            begun.wait().await;
            let mut waits = Box::pin(address.ask(Order::Answer));
            assert!(poll_here(&mut waits).await.is_pending());
            way.end(&worker);
            let Err(AskError::Closed(detail)) = worker.ask(Order::Answer).await else {
                panic!("it is closed");
            };
            assert_eq!(*detail.why(), way.cause());
            if way == Way::Stop {
                end.open();
                assert_eq!((taken.await, waits.await), (Ok(42), Ok(42)));
                continue;
            }
            // What waits in the mailbox is dropped at once, and what was taken when it would come.
            let Err(AskError::NoReply(detail)) = waits.await else {
                panic!("it was dropped");
            };
            assert_eq!(*detail.why(), way.cause());
            end.open();
            let Err(AskError::NoReply(detail)) = taken.await else {
                panic!("it was dropped");
            };
            assert_eq!(*detail.why(), way.cause());
        }
    });
}

fn a_sender_in_the_line(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (worker, _) = worker();
            let worker = home.spawn(worker.capacity(1));
            let end = hold(&worker).await;
            worker.tell(Order::Log(1)).unwrap();
            let address = worker.address();
            let mut waits = Box::pin(address.send(Order::Log(2)));
            assert!(poll_here(&mut waits).await.is_pending());
            way.end(&worker);
            let refused = waits.await.unwrap_err().into_inner();
            assert!(matches!(refused, Order::Log(2)), "{way:?}");
            end.open();
            worker.closed().await;
        }
    });
}

fn a_permit_that_was_given(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            for kept in [true, false] {
                let (mut worker, log) = worker();
                let left = Log::default();
                if kept {
                    worker = worker.on_undelivered(into(&left));
                }
                let worker = home.spawn(worker);
                let permit = worker.reserve().await.unwrap();
                way.end(&worker);
                if way == Way::Stop {
                    permit.send(Order::Log(7));
                    assert_eq!(worker.join().await.unwrap(), 1);
                    assert_eq!((log.take(), left.len()), (vec![7], 0));
                    continue;
                }
                // The actor does not wait for the permit.
                assert_eq!(worker.join().await.is_ok(), way == Way::StopNow);
                permit.send(Order::Log(7));
                while kept && left.len() == 0 {
                    greenroom::yield_now().await;
                }
                let undelivered: &[_] = if kept { &[7] } else { &[] };
                assert_eq!((log.len(), &*left.take()), (0, undelivered), "{way:?}");
            }
        }
    });
}

fn timers_streams_and_requests_in_flight(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let drops = Drops::default();
            let asked = home.spawn(actor(|mut cx: Context<Reply<u32>>| async move {
                let mut kept = Vec::new();
                while let Some(reply) = cx.recv().await {
                    kept.push(reply);
                }
                kept.len()
            }));
            let (ready, counts, other) = (Gate::default(), drops.clone(), asked.address());
            let is_ready = ready.clone();
            let waits = actor(move |mut cx: Context<Order>| async move {
                let dropped = counts.one();
                let never = futures::stream::pending().map(move |never: Order| {
                    let _ = &dropped;
                    never
                });
                let _stream = cx.attach(never);
                let _timer = cx.send_after(HOUR, Order::Log(1));
                let answer = other.request(|reply| reply);
                cx.on_answer(answer, |answer| Order::Log(answer.unwrap_or(0)));
                is_ready.open();
                let next = cx.recv().await.is_none();
                (next, counts.count())
            });
            let waits = home.spawn(waits);
            ready.wait().await;
            way.end(&waits);
            match waits.join().await {
                Ok(ended) => assert_eq!(ended, (true, 1), "{way:?}"),
                Err(_) => assert_eq!((way, drops.count()), (Way::Kill, 1)),
            }
            asked.join().await.unwrap();
        }
    });
}

fn a_receive_in_another_task(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let (gives, given) = futures::channel::oneshot::channel();
            let end = Gate::default();
            let ends = end.clone();
            let lends = home.spawn(actor(|cx: Context<Order>| async move {
                let _ = gives.send(cx);
                ends.wait().await;
            }));
            let mut cx = given.await.unwrap();
            lends.tell(Order::Log(1)).unwrap();
            assert!(matches!(cx.recv().await, Some(Order::Log(1))));
            let mut next = Box::pin(cx.recv());
            assert!(poll_here(&mut next).await.is_pending());
            way.end(&lends);
            assert!(next.await.is_none(), "{way:?}");
            end.open();
            lends.closed().await;
        }
    });
}

fn a_message_that_is_received_without_a_wait(home: &Home) {
    home.block_on(async {
        for way in Way::ALL {
            let log = Log::default();
            let own = log.clone();
            let held = home.hold();
            let tries = home.spawn(actor(move |mut cx: Context<u32>| async move {
                cx.recv().await;
                way.end(&cx.address());
                while let Some(number) = cx.try_recv() {
                    own.add(number);
                }
            }));
            for number in 1..=3 {
                tries.tell(number).unwrap();
            }
            drop(held);
            tries.closed().await;
            let received: &[_] = if way == Way::Stop { &[2, 3] } else { &[] };
            assert_eq!(log.take(), received, "{way:?}");
        }
    });
}

fn an_actor_that_ends_itself(home: &Home) {
    home.block_on(async {
        let (log, left) = (Log::default(), Log::default());
        let (own, undelivered) = (log.clone(), left.clone());
        let ends = actor(move |mut cx: Context<u32>| async move {
            while let Some(number) = cx.recv().await {
                own.add(number);
                if number == 2 {
                    cx.stop_now();
                }
            }
        });
        let held = home.hold();
        let ends = home.spawn(ends.on_undelivered(move |number| undelivered.add(number)));
        for number in 1..=4 {
            ends.tell(number).unwrap();
        }
        drop(held);
        ends.join().await.unwrap();
        assert_eq!((log.take(), left.take()), (vec![1, 2], vec![3, 4]));
    });
}

fn a_stronger_way_after_a_weaker_one(home: &Home) {
    home.block_on(async {
        for (first, then) in [
            (Way::Stop, Way::StopNow),
            (Way::StopNow, Way::Kill),
            (Way::StopNow, Way::Stop),
            (Way::Kill, Way::StopNow),
        ] {
            let (worker, log) = worker();
            let left = Log::default();
            let worker = home.spawn(worker.on_undelivered(into(&left)));
            let end = hold(&worker).await;
            worker.tell(Order::Log(1)).unwrap();
            first.end(&worker);
            then.end(&worker);
            let is_killed = first == Way::Kill || then == Way::Kill;
            if !is_killed {
                end.open();
            }
            assert_eq!(worker.join().await.is_err(), is_killed);
            assert_eq!(
                log.len(),
                usize::from(!is_killed),
                "{first:?}, then {then:?}"
            );
            assert_eq!(left.take(), [1], "{first:?}, then {then:?}");
        }
    });
}

fn a_stop_at_once_after_the_end_changes_no_cause(home: &Home) {
    home.block_on(async {
        let ends = home.spawn(actor(|cx: Context<Reply<u32>>| async move { drop(cx) }));
        let address = ends.address();
        ends.join().await.unwrap();
        let cause = async || match address.ask(|reply| reply).await {
            Err(AskError::Closed(detail)) => detail.why().clone(),
            other => panic!("{other:?}"),
        };
        let before = cause().await;
        address.stop_now();
        assert_eq!(cause().await, before);
        assert_ne!(before, AskCause::StoppedNow);
    });
}
