//! The joiner of a child's fault: its supervisor if it has received the fault, and then the caller
//! that receives the escalation.

use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::sim::{self, RunProblem};
use greenroom::supervise::{Strategy, Supervisor, SupervisorBuilder};
use greenroom::{Runtime, actor, yield_now};

use super::{Job, SEEDS, child, number, start};
use crate::support::{Log, WATCH, keep_bombs_quiet, within};

/// Gives up at the first failure.
fn impatient(strategy: Strategy) -> SupervisorBuilder {
    let builder = Supervisor::builder().strategy(strategy);
    builder.intensity(0, Duration::from_secs(1))
}

/// Returns why a run of a tree has failed.
fn problem_of(seed: u64, tree: impl AsyncFnOnce()) -> Option<RunProblem> {
    let run = Simulated::new(seed).try_run(tree());
    run.err().map(|failure| failure.problem().clone())
}

#[test]
fn an_escalation_that_is_received_fails_no_run() {
    keep_bombs_quiet();
    for strategy in [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ] {
        sim::explore(0..SEEDS, |_| async move {
            let log = Log::default();
            let tree = impatient(strategy).spawn().unwrap();
            // Both fail at the same time.
            let children = ["a", "b"].map(|name| start(&tree, &log, name));
            for child in &children {
                child.tell(Job::Fail).unwrap();
            }
            let escalated = tree.join().await.unwrap_err();
            assert_eq!(escalated.faults().len(), 1);
        });
    }
}

#[test]
fn an_escalation_of_a_tree_in_a_tree_that_is_received_fails_no_run() {
    keep_bombs_quiet();
    sim::explore(0..SEEDS, |_| async {
        let log = Log::default();
        let tree = impatient(Strategy::OneForAll).spawn().unwrap();
        let below = tree.supervisor(impatient(Strategy::OneForOne)).unwrap();
        let beside = start(&tree, &log, "beside");
        start(&below, &log, "a").tell(Job::Fail).unwrap();
        drop((below, beside));
        let escalated = tree.join().await.unwrap_err();
        assert_eq!(escalated.faults().collect::<Vec<_>>(), ["bomb a"]);
    });
}

#[test]
fn an_escalation_that_nobody_receives_fails_the_run() {
    keep_bombs_quiet();
    for seed in 0..SEEDS {
        let problem = problem_of(seed, async || {
            let log = Log::default();
            let tree = impatient(Strategy::OneForOne).spawn().unwrap();
            let child = start(&tree, &log, "a");
            child.tell(Job::Fail).unwrap();
            child.closed().await;
        });
        let Some(RunProblem::Panicked(text)) = problem else {
            panic!("seed {seed}: {problem:?}");
        };
        assert!(text.contains("bomb a"), "{text}");
    }
}

#[test]
fn a_fault_after_which_the_child_was_to_be_restarted_fails_no_run() {
    keep_bombs_quiet();
    sim::explore(0..SEEDS, |_| async {
        let log = Log::default();
        let tree = Supervisor::builder().spawn().unwrap();
        let child = start(&tree, &log, "a");
        child.tell(Job::Fail).unwrap();
        while tree.children()[0].last_fault.is_none() {
            yield_now().await;
        }
        // It ends without another incarnation if it has not begun yet, since nothing is left for it.
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn a_fault_that_no_supervisor_has_received_fails_the_run() {
    keep_bombs_quiet();
    for seed in 0..SEEDS {
        let problem = problem_of(seed, async || {
            let log = Log::default();
            let tree = Supervisor::builder().spawn().unwrap();
            let child = start(&tree, &log, "a");
            // It is not restarted, since nothing is left for it.
            child.tell(Job::Fail).unwrap();
            child.stop();
            drop(child);
            tree.stop();
            tree.join().await.unwrap();
        });
        assert!(
            matches!(problem, Some(RunProblem::Panicked(_))),
            "seed {seed}: {problem:?}"
        );
    }
}

#[test]
fn a_fault_reaches_on_fault_once_unless_its_escalation_is_received() {
    within(WATCH, || {
        for is_received in [false, true] {
            let faults = Log::default();
            let told = faults.clone();
            let runtime = Runtime::builder().workers(2);
            let runtime = runtime.on_fault(move |fault| told.add(fault.to_string()));
            let runtime = runtime.build().unwrap();
            runtime.block_on(async {
                let tree = impatient(Strategy::OneForOne).spawn().unwrap();
                let a = start(&tree, &Log::default(), "a");
                number(&a).await;
                a.tell(Job::Fail).unwrap();
                a.closed().await;
                if is_received {
                    tree.join().await.unwrap_err();
                    // The second one gets it as well.
                    tree.join().await.unwrap_err();
                }
            });
            drop(runtime);
            assert_eq!(faults.take().len(), usize::from(!is_received));
        }
    });
}

#[test]
fn a_supervisor_that_was_restarted_has_joined_the_fault_for_which_it_gave_up() {
    keep_bombs_quiet();
    sim::explore(0..SEEDS, |_| async {
        let log = Log::default();
        let tree = Supervisor::builder().spawn().unwrap();
        let below = tree.supervisor(impatient(Strategy::OneForOne)).unwrap();
        let own = log.clone();
        let a = below.start(actor(move |cx| child(cx, "a", own))).unwrap();
        a.tell(Job::Fail).unwrap();
        assert_eq!(number(&a).await, 1);
        drop((a, below));
        tree.stop();
        tree.join().await.unwrap();
    });
}
