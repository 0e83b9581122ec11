//! Large trees: very deep ones, and very many children.

use std::time::Duration;

use greenroom::supervise::{Strategy, Supervisor};
use greenroom::{Address, Context, Reply, Runtime, actor, yield_now};

use super::{Job, LONG, number, on_two_workers, patient, start};
use crate::support::{DEEP, Log, WATCH, drive, tenth_in_debug, within};

/// Starts a child below a chain of supervisors, of which only the top restarts anything: once.
fn chain() -> (Supervisor, Address<Job>) {
    let impatient = Supervisor::builder().intensity(0, LONG);
    let top = impatient.clone().intensity(1, LONG).spawn().unwrap();
    let mut lowest = top.clone();
    for _ in 1..DEEP {
        lowest = lowest.supervisor(impatient.clone()).unwrap();
    }
    (top, start(&lowest, &Log::default(), "leaf"))
}

#[test]
fn a_chain_of_supervisors_of_any_depth_is_restarted_and_gives_up() {
    within(WATCH, || {
        on_two_workers(async {
            let (top, leaf) = chain();
            assert_eq!(number(&leaf).await, 0);
            leaf.tell(Job::Fail).unwrap();
            assert_eq!(number(&leaf).await, 1);
            leaf.tell(Job::Fail).unwrap();
            let escalated = top.join().await.unwrap_err();
            assert_eq!(escalated.faults().collect::<Vec<_>>(), ["bomb leaf"; 2]);
            assert!(leaf.is_closed());
        });
    });
}

#[test]
fn a_chain_of_supervisors_of_any_depth_ends_by_a_stop_or_a_shutdown() {
    within(WATCH, || {
        for is_stopped in [true, false] {
            let grace = if is_stopped { WATCH } else { Duration::ZERO };
            let runtime = Runtime::builder().workers(2).grace(grace);
            let runtime = runtime.build().unwrap();
            let (top, leaf) = runtime.block_on(async {
                let (top, leaf) = chain();
                number(&leaf).await;
                if is_stopped {
                    top.stop();
                    top.join().await.unwrap();
                }
                (top, leaf)
            });
            let report = drive(runtime.shutdown());
            assert_eq!(report.cancelled == 0, is_stopped);
            drive(top.join()).unwrap();
            assert!(leaf.is_closed());
        }
    });
}

/// Answers, or fails if it has no reply.
async fn fragile(mut cx: Context<Option<Reply<u64>>>) {
    while let Some(reply) = cx.recv().await {
        reply.expect("bomb").send(cx.incarnation_number());
    }
}

/// Starts many children. Each of them fails once, or one of them does.
async fn many(strategy: Strategy, count: usize, all_fail: bool) {
    let tree = patient(strategy).spawn().unwrap();
    let children = (0..count).map(|_| tree.start(actor(fragile)).unwrap());
    let children: Vec<_> = children.collect();
    let last = children.last().unwrap();
    assert_eq!(last.ask(Some).await, Ok(0));
    let failing = if all_fail { count } else { 1 };
    for child in &children[..failing] {
        child.tell(None).unwrap();
    }
    for child in &children {
        while child.ask(Some).await == Ok(0) {
            yield_now().await;
        }
    }
    tree.stop();
    tree.join().await.unwrap();
}

#[test]
fn very_many_children_are_restarted_one_for_one() {
    within(WATCH, || {
        on_two_workers(many(Strategy::OneForOne, tenth_in_debug(100_000), true))
    });
}

#[test]
fn many_children_are_restarted_one_for_all() {
    within(WATCH, || {
        on_two_workers(many(Strategy::OneForAll, 1000, false))
    });
}
