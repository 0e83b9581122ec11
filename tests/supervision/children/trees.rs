//! Whole trees of parents and children: deep ones, and their shutdown.

use std::time::Duration;

use greenroom::{Context, Handle, Runtime, actor, sim, spawn};

use super::{Message, all, ended, sum};
use crate::support::{DEEP, Gate, Log, WATCH, drive, within};

#[test]
fn a_chain_of_parents_of_any_depth_ends_from_the_leaf_up() {
    /// Adopts an actor of the same kind, and so on. The last one opens the gate.
    fn link(depth: usize, leaf: Gate) -> Handle<(), usize> {
        spawn!(move |mut cx: Context<()>| async move {
            if depth > 1 {
                cx.adopt(link(depth - 1, leaf), |_| ());
            } else {
                leaf.open();
            }
            let mut below = 0;
            while cx.recv().await.is_some() {
                below += 1;
            }
            below
        })
    }
    within(WATCH, || {
        for killed in [false, true] {
            let runtime = Runtime::builder().workers(2).grace(WATCH);
            let runtime = runtime.build().unwrap();
            let top = runtime.block_on(async {
                let leaf = Gate::default();
                let top = link(DEEP, leaf.clone());
                leaf.wait().await;
                top
            });
            if killed {
                top.kill();
                assert!(drive(top.join()).is_err());
            } else {
                top.stop();
                assert_eq!(drive(top.join()).unwrap(), 1);
            }
            let report = drive(runtime.shutdown());
            assert_eq!(report.cancelled, 0);
        }
    });
}

#[test]
fn a_stopped_parent_ends_after_its_slow_children() {
    sim::explore(0..20, |_| async {
        let done = Log::default();
        let log = done.clone();
        let parent = spawn!(move |mut cx: Context<Message>| async move {
            for number in 1..=3 {
                let log = log.clone();
                let child = spawn!(move |cx: Context<u32>| async move {
                    let sum = sum(cx).await;
                    greenroom::time::sleep(Duration::from_secs(60)).await;
                    log.add(number);
                    sum
                });
                cx.adopt(child, ended);
            }
            let results = all(cx).await;
            log.add(results.len());
        });
        greenroom::yield_now().await;
        parent.stop();
        parent.join().await.unwrap();
        let mut done = done.take();
        assert_eq!(done.pop(), Some(3), "the parent is the last to end");
        assert_eq!(done.len(), 3);
    });
}

#[test]
fn a_shutdown_lets_the_tree_end_within_its_grace() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).grace(WATCH);
        let runtime = runtime.build().unwrap();
        let (done, ready) = (Log::default(), Gate::default());
        let (log, is_ready) = (done.clone(), ready.clone());
        let parent = actor(move |mut cx: Context<Message>| async move {
            for _ in 0..3 {
                let child = spawn!(|cx: Context<u32>| async move {
                    let sum = sum(cx).await;
                    for _ in 0..100 {
                        greenroom::yield_now().await;
                    }
                    sum
                });
                cx.adopt(child, ended);
            }
            is_ready.open();
            log.add(all(cx).await.len());
        });
        parent.on(&runtime).spawn().detach();
        ready.pass();
        let report = drive(runtime.shutdown());
        assert_eq!((done.take(), report.cancelled), (vec![3], 0));
    });
}
