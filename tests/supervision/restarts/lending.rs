//! Incarnations by hand: the context is lent, comes back, or is lost.

mod dropped;

use futures::{FutureExt, stream};
use greenroom::{Actor, AskCause, Context, Fault, Runtime, actor, spawn};

use super::{Order, lost, obey, text_of};
use crate::support::{Drops, Gate, Home, Log, in_every_home, keep_bombs_quiet, poll_here};

in_every_home!(
    an_incarnation_returns_its_result_and_the_context_comes_back,
    a_panic_is_an_error_and_the_messages_stay,
    a_panic_of_the_function_is_an_error_too,
    an_asker_is_told_of_the_panic_of_an_incarnation_at_once,
    an_asker_is_told_although_another_actor_runs_the_incarnation,
    incarnations_are_counted,
    a_stop_ends_the_incarnation_and_then_its_actor,
    a_kill_drops_the_incarnation_and_its_actor,
    the_call_waits_for_a_context_that_was_moved_elsewhere,
    sources_of_the_lender_wait_until_it_receives_again,
    a_source_that_was_ready_during_the_incarnation_is_received,
    children_of_the_lender_are_kept_and_those_of_the_incarnation_are_stopped,
    an_actor_in_struct_form_may_lend_its_context,
);

fn an_incarnation_returns_its_result_and_the_context_comes_back(home: &Home) {
    home.block_on(async {
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            let mut received = vec![cx.recv().await.unwrap()];
            let two = cx.incarnation(|mut cx| async move { [cx.recv().await, cx.recv().await] });
            received.extend(two.await.unwrap().map(Option::unwrap));
            while let Some(number) = cx.recv().await {
                received.push(number);
            }
            received
        }));
        for number in 1..=5 {
            lends.tell(number).unwrap();
        }
        assert_eq!(lends.join().await.unwrap(), [1, 2, 3, 4, 5]);
    });
}

/// Lends its context to what it is told to until that returns. Returns the texts of the panics.
async fn persists(mut cx: Context<Order>, log: Log<u32>) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let log = log.clone();
        match cx.incarnation(|cx| obey(cx, log)).await {
            Ok(_) => return texts,
            failed => texts.push(text_of(failed)),
        }
    }
}

fn a_panic_is_an_error_and_the_messages_stay(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let log = Log::default();
            let own = log.clone();
            let mut lends = actor(move |cx| persists(cx, own));
            if let Some(capacity) = capacity {
                lends = lends.capacity(capacity);
            }
            let held = home.hold();
            let lends = home.spawn(lends);
            for (number, text) in [(1, "bomb 1"), (2, "bomb 2"), (3, "bomb 3")] {
                lends.tell(Order::Log(number)).unwrap();
                lends.tell(Order::Panic(text)).unwrap();
            }
            drop(held);
            assert_eq!(lends.ask(Order::Number).await, Ok(3));
            assert_eq!(lends.join().await.unwrap(), ["bomb 1", "bomb 2", "bomb 3"]);
            assert_eq!(log.take(), [1, 2, 3]);
        }
    });
}

fn a_panic_of_the_function_is_an_error_too(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            let begin = |_cx| -> std::future::Ready<()> { panic!("bomb in a function") };
            let failed = cx.incarnation(begin).await;
            (text_of(failed), cx.recv().await)
        }));
        lends.tell(7).unwrap();
        let (text, number) = lends.join().await.unwrap();
        assert_eq!((&*text, number), ("bomb in a function", Some(7)));
    });
}

fn an_asker_is_told_of_the_panic_of_an_incarnation_at_once(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        // After the panic it waits for good.
        let lends = home.spawn(actor(|mut cx: Context<Order>| async move {
            let failed = cx.incarnation(|cx| obey(cx, Log::default())).await;
            assert!(failed.is_err());
            std::future::pending::<()>().await;
        }));
        let kept = lends.ask(Order::Keep);
        let in_hand = lends.ask(|reply| Order::Lose("bomb 7", reply));
        let (kept, in_hand) = futures::join!(kept, in_hand);
        let why = AskCause::Panicked("bomb 7".into());
        assert_eq!(lost(kept), (Some(lends.id()), why.clone()));
        assert_eq!(lost(in_hand), (Some(lends.id()), why));
        lends.kill();
    });
}

fn an_asker_is_told_although_another_actor_runs_the_incarnation(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let other = home.spawn(actor(|mut cx: Context<Context<Order>>| async move {
            let mut lent = cx.recv().await.unwrap();
            let failed = lent.incarnation(|cx| obey(cx, Log::default())).await;
            assert!(failed.is_err());
            cx.recv().await;
        }));
        let to = other.address();
        let gives = home.spawn(actor(|cx: Context<Order>| async move {
            to.tell(cx).unwrap();
            std::future::pending::<()>().await;
        }));
        let answer = gives.ask(|reply| Order::Lose("bomb 8", reply)).await;
        let why = AskCause::Panicked("bomb 8".into());
        assert_eq!(lost(answer), (Some(gives.id()), why));
        gives.kill();
    });
}

fn incarnations_are_counted(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let counts = home.spawn(actor(|mut cx: Context<()>| async move {
            let mut numbers = vec![cx.incarnation_number()];
            for panics in [false, true, false] {
                let inner = |cx: Context<()>| async move {
                    if panics {
                        panic!("bomb");
                    }
                    cx.incarnation_number()
                };
                numbers.push(cx.incarnation(inner).await.unwrap_or(100));
                numbers.push(cx.incarnation_number());
            }
            numbers
        }));
        assert_eq!(counts.join().await.unwrap(), [0, 0, 1, 100, 2, 2, 3]);
    });
}

fn a_stop_ends_the_incarnation_and_then_its_actor(home: &Home) {
    home.block_on(async {
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            let inner = |mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(number) = cx.recv().await {
                    sum += number;
                    if sum >= 3 {
                        cx.stop();
                    }
                }
                sum
            };
            (cx.incarnation(inner).await.unwrap(), cx.recv().await)
        }));
        for number in 1..=3 {
            let _ = lends.tell(number);
        }
        let (sum, after) = lends.join().await.unwrap();
        assert!((sum, after) == (6, None) || (sum, after) == (3, None));
    });
}

fn a_kill_drops_the_incarnation_and_its_actor(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let (outer, inner, begun) = (drops.one(), drops.one(), Gate::default());
        let has_begun = begun.clone();
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            let _outer = outer;
            let waits = |mut cx: Context<u32>| async move {
                let _inner = inner;
                has_begun.open();
                cx.recv().await
            };
            cx.incarnation(waits).await.unwrap()
        }));
        begun.wait().await;
        lends.kill();
        assert!(matches!(lends.join().await, Err(Fault::Killed)));
        assert_eq!(drops.count(), 2);
    });
}

/// An actor that lends its context to a future that moves it to `escaped` and returns. Afterwards
/// it returns what it receives.
fn lets_escape(
    home: &Home,
    escaped: &Log<Context<u32>>,
    panics: bool,
) -> greenroom::Handle<u32, Vec<u32>> {
    let escapes = escaped.clone();
    home.spawn(actor(move |mut cx: Context<u32>| async move {
        let inner = |cx| async move {
            escapes.add(cx);
            if panics {
                panic!("bomb");
            }
        };
        assert_eq!(cx.incarnation(inner).await.is_err(), panics);
        let mut received = Vec::new();
        while let Some(number) = cx.recv().await {
            received.push(number);
        }
        received
    }))
}

/// Waits for the context that escapes.
async fn escaped<M>(contexts: &Log<Context<M>>) -> Context<M> {
    loop {
        if let Some(cx) = contexts.take().pop() {
            return cx;
        }
        greenroom::yield_now().await;
    }
}

fn the_call_waits_for_a_context_that_was_moved_elsewhere(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for panics in [false, true] {
            let contexts = Log::default();
            let lends = lets_escape(home, &contexts, panics);
            let mut cx = escaped(&contexts).await;
            for number in 1..=4 {
                lends.tell(number).unwrap();
            }
            assert_eq!(cx.recv().await, Some(1));
            for _ in 0..10 {
                home.spawn_task(greenroom::yield_now()).await;
            }
            // The reader has taken a batch, which comes back with it.
            assert_eq!(cx.recv().await, Some(2));
            home.spawn_task(async move { drop(cx) }).await;
            assert_eq!(lends.join().await.unwrap(), [3, 4]);
        }
    });
}

fn sources_of_the_lender_wait_until_it_receives_again(home: &Home) {
    home.block_on(async {
        let (last, lent) = (Gate::default(), Gate::default());
        let (waits, tells) = (last.clone(), lent.clone());
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            cx.attach(stream::iter([101, 102, 103])).detach();
            // Polls the sources for the first time.
            let mut own = vec![cx.recv().await.unwrap()];
            let inner = |mut cx: Context<u32>| async move {
                cx.attach(stream::iter([201, 202])).detach();
                tells.open();
                waits.wait().await;
                let mut inner = Vec::new();
                while !inner.contains(&2) {
                    inner.push(cx.recv().await.unwrap());
                }
                inner
            };
            let inner = cx.incarnation(inner).await.unwrap();
            while let Some(number) = cx.recv().await {
                own.push(number);
            }
            (own, inner)
        }));
        lends.tell(1).unwrap();
        lent.wait().await;
        lends.tell(2).unwrap();
        last.open();
        let (mut own, inner) = lends.join().await.unwrap();
        assert!(inner.iter().all(|number| [1, 2, 201, 202].contains(number)));
        own.retain(|number| *number > 100);
        assert_eq!(own, [101, 102, 103]);
    });
}

fn a_source_that_was_ready_during_the_incarnation_is_received(home: &Home) {
    home.block_on(async {
        let (ready, lent) = (Gate::default(), Gate::default());
        let (waits, tells) = (ready.clone(), lent.clone());
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            let source = async move {
                waits.wait().await;
                7
            };
            cx.attach(Box::pin(source.into_stream())).detach();
            // The source is polled, and so waits for the gate.
            assert!(poll_here(&mut cx.recv()).await.is_pending());
            let inner = |mut cx: Context<u32>| async move {
                tells.open();
                cx.recv().await
            };
            (cx.incarnation(inner).await.unwrap(), cx.recv().await)
        }));
        lent.wait().await;
        ready.open();
        for _ in 0..10 {
            home.spawn_task(greenroom::yield_now()).await;
        }
        lends.tell(1).unwrap();
        assert_eq!(lends.join().await.unwrap(), (Some(1), Some(7)));
    });
}

fn children_of_the_lender_are_kept_and_those_of_the_incarnation_are_stopped(home: &Home) {
    home.block_on(async {
        let child = |stopped: Gate| {
            spawn!(move |mut cx: Context<()>| async move {
                while cx.recv().await.is_some() {}
                stopped.open();
            })
        };
        let (inner, outer) = (Gate::default(), Gate::default());
        let (of_inner, of_outer) = (inner.clone(), outer.clone());
        let lends = home.spawn(actor(move |mut cx: Context<u32>| async move {
            cx.adopt(child(of_outer), |_| 1);
            let adopts = |mut cx: Context<u32>| async move {
                cx.adopt(child(of_inner), |_| 2);
                cx.children().len()
            };
            assert_eq!(cx.incarnation(adopts).await.unwrap(), 1);
            assert_eq!(cx.children().len(), 1);
            (cx.recv().await, cx.recv().await)
        }));
        inner.wait().await;
        assert!(!outer.is_open());
        lends.stop();
        assert_eq!(lends.join().await.unwrap(), (Some(1), None));
        assert!(outer.is_open());
    });
}

/// Handles each number in an incarnation, and counts the panics.
struct Tolerant(u32);

impl Actor for Tolerant {
    type Message = u32;

    async fn handle(&mut self, number: u32, cx: &mut Context<u32>) {
        let handles = |mut cx: Context<u32>| async move {
            if number.is_multiple_of(2) {
                panic!("bomb");
            }
            cx.recv().await
        };
        if cx.incarnation(handles).await.is_err() {
            self.0 += 1;
        }
    }
}

fn an_actor_in_struct_form_may_lend_its_context(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let held = home.hold();
        let tolerant = home.spawn(Tolerant(0).into_builder());
        for number in [2, 4, 1, 6, 8] {
            tolerant.tell(number).unwrap();
        }
        drop(held);
        // The incarnation of 1 received 6.
        assert_eq!(tolerant.join().await.unwrap().0, 3);
    });
}

#[test]
fn a_panic_of_an_incarnation_is_not_reported() {
    keep_bombs_quiet();
    let reported = Log::default();
    let log = reported.clone();
    let runtime = Runtime::builder().on_fault(move |fault| log.add(fault.to_string()));
    let runtime = runtime.workers(1).build().unwrap();
    runtime.block_on(async {
        let log = Log::default();
        let lends = spawn!(persists(_, log));
        lends.tell(Order::Panic("bomb")).unwrap();
        let address = lends.address();
        lends.detach();
        address.stop();
        address.closed().await;
    });
    assert_eq!(reported.take(), [""; 0]);
}
