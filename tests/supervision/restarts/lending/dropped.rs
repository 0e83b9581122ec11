//! Calls that are dropped or leaked while an incarnation or another holder has the context.

use std::sync::Mutex;
use std::time::Duration;

use futures::stream;
use greenroom::{Context, actor, spawn};

use super::escaped;
use crate::restarts::text_of;
use crate::support::{Drops, Gate, Home, Log, in_every_home, keep_bombs_quiet, poll_here};

in_every_home!(
    a_call_that_is_dropped_gives_the_context_back,
    a_call_that_is_dropped_before_its_first_poll_changes_nothing,
    a_call_that_is_dropped_while_the_context_is_elsewhere_closes_the_mailbox,
    a_holder_that_waits_is_woken_when_the_call_is_dropped,
    a_context_that_was_lost_is_harmless,
    only_the_incarnation_receives_even_if_the_call_is_leaked,
);

fn a_call_that_is_dropped_gives_the_context_back(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let (state, seen) = (drops.one(), drops.clone());
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            cx.attach(stream::iter([7])).detach();
            let waits = |mut cx: Context<u32>| async move {
                let _state = state;
                cx.recv().await;
                std::future::pending::<()>().await;
            };
            let mut call = Box::pin(cx.incarnation(waits));
            assert!(poll_here(&mut call).await.is_pending());
            drop(call);
            assert_eq!(seen.count(), 1);
            assert_eq!(cx.incarnation_number(), 1);
            let mut both = [cx.recv().await, cx.recv().await];
            both.sort_unstable();
            both
        }));
        lends.tell(1).unwrap();
        let both = lends.join().await.unwrap();
        // The incarnation may have received the message.
        assert!(both == [Some(1), Some(7)] || both == [None, Some(7)]);
    });
}

fn a_call_that_is_dropped_before_its_first_poll_changes_nothing(home: &Home) {
    home.block_on(async {
        let lends = home.spawn(actor(|mut cx: Context<u32>| async move {
            drop(cx.incarnation(|_cx| async {}));
            assert_eq!(cx.incarnation_number(), 0);
            cx.recv().await
        }));
        lends.tell(1).unwrap();
        assert_eq!(lends.join().await.unwrap(), Some(1));
    });
}

fn a_call_that_is_dropped_while_the_context_is_elsewhere_closes_the_mailbox(home: &Home) {
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let (contexts, dropped, done) = (Log::default(), Gate::default(), Gate::default());
            let (escapes, tells, waits) = (contexts.clone(), dropped.clone(), done.clone());
            let mut loses = actor(move |mut cx: Context<u32>| async move {
                let inner = |cx| async move { escapes.add(cx) };
                let mut call = Box::pin(cx.incarnation(inner));
                assert!(poll_here(&mut call).await.is_pending());
                waits.wait().await;
                drop(call);
                tells.open();
                // The context that was lent is not this one's any more.
                cx.recv().await
            });
            if let Some(capacity) = capacity {
                loses = loses.capacity(capacity);
            }
            let loses = home.spawn(loses);
            let mut cx = escaped(&contexts).await;
            for number in 1..=4 {
                loses.tell(number).unwrap();
            }
            assert_eq!(cx.recv().await, Some(1));
            done.open();
            dropped.wait().await;
            assert!(loses.is_closed());
            assert!(loses.tell(5).is_err());
            let address = loses.address();
            assert_eq!(loses.join().await.unwrap(), None);
            // What was accepted, unless the end of the actor has dropped it.
            let mut received = Vec::new();
            while let Some(number) = cx.recv().await {
                received.push(number);
            }
            assert!([2, 3, 4].starts_with(&received), "{received:?}");
            drop(cx);
            address.closed().await;
        }
    });
}

fn a_holder_that_waits_is_woken_when_the_call_is_dropped(home: &Home) {
    home.block_on(async {
        let (contexts, done, end) = (Log::default(), Gate::default(), Gate::default());
        let (escapes, waits, ends) = (contexts.clone(), done.clone(), end.clone());
        let loses = home.spawn(actor(move |mut cx: Context<u32>| async move {
            let inner = |cx| async move { escapes.add(cx) };
            let mut call = Box::pin(cx.incarnation(inner));
            assert!(poll_here(&mut call).await.is_pending());
            waits.wait().await;
            drop(call);
            ends.wait().await;
        }));
        let mut cx = escaped(&contexts).await;
        loses.tell(1).unwrap();
        let waiting = Gate::default();
        let reads = waiting.clone();
        let holder = home.spawn_task(async move {
            assert_eq!(cx.recv().await, Some(1));
            crate::support::open_when_pending(reads, cx.recv()).await
        });
        waiting.wait().await;
        done.open();
        assert_eq!(holder.await, None);
        assert!(loses.is_closed());
        end.open();
        loses.join().await.unwrap();
    });
}

fn a_context_that_was_lost_is_harmless(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let contexts = Log::default();
        let escapes = contexts.clone();
        let (checked, end) = (Gate::default(), Gate::default());
        let (tells, ends) = (checked.clone(), end.clone());
        let loses = home.spawn(actor(move |mut cx: Context<u32>| async move {
            let inner = |cx| async move { escapes.add(cx) };
            let mut call = Box::pin(cx.incarnation(inner));
            assert!(poll_here(&mut call).await.is_pending());
            drop(call);
            assert_eq!(cx.try_recv(), None);
            assert_eq!(cx.recv().await, None);
            assert!(cx.address().is_closed());
            assert!(cx.address().tell(1).is_err());
            assert!(cx.downgrade().upgrade().is_none());
            cx.stop();
            cx.attach(stream::iter([1])).detach();
            let _timer = cx.send_after(Duration::ZERO, 2);
            let child = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
            cx.adopt(child, |_| 3);
            assert_eq!(cx.recv().await, Some(3));
            assert_eq!(cx.recv().await, None);
            // It can be lent, but nothing is received.
            let inner = |mut cx: Context<u32>| async move { cx.recv().await };
            assert_eq!(cx.incarnation(inner).await.unwrap(), None);
            let panics = |_cx: Context<u32>| async { panic!("bomb") };
            let failed: Result<(), _> = cx.incarnation(panics).await;
            assert_eq!(text_of(failed), "bomb");
            drop(cx);
            tells.open();
            ends.wait().await;
        }));
        checked.wait().await;
        end.open();
        loses.join().await.unwrap();
    });
}

/// Leaks a value, and keeps its address for the tools that look for leaks.
fn leak<T>(value: T) {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = Box::into_raw(Box::new(value)).expose_provenance();
    KEPT.lock().unwrap().push(address);
}

fn only_the_incarnation_receives_even_if_the_call_is_leaked(home: &Home) {
    home.block_on(async {
        let contexts = Log::default();
        let escapes = contexts.clone();
        let leaks = home.spawn(actor(move |mut cx: Context<u32>| async move {
            let inner = |cx| async move { escapes.add(cx) };
            let mut call = Box::pin(cx.incarnation(inner));
            assert!(poll_here(&mut call).await.is_pending());
            leak(call);
            assert_eq!(cx.recv().await, None);
        }));
        let mut cx = escaped(&contexts).await;
        let _ = leaks.tell(1);
        leaks.join().await.unwrap();
        while cx.recv().await.is_some() {}
    });
}
