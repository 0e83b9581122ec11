//! What a supervisor says of its children, beside what they say themselves.

use std::time::Duration;

use greenroom::supervise::{ChildState, Restarts, Strategy};
use greenroom::{Detached, End, Reply, actor, yield_now};

use super::{
    Job, LONG, child, everywhere, number, on_two_workers, patient, simulated, start, start_three,
    state_of, wait_for,
};
use crate::support::{Gate, Log, WATCH, within};

#[test]
fn a_child_that_has_answered_since_its_failure_runs() {
    everywhere(|| async {
        for strategy in [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ] {
            let tree = patient(strategy).spawn().unwrap();
            let [a, b, c] = start_three(&tree, &Log::default());
            for failures in 0..10 {
                // It answers in its first turn, since the question waits for it.
                assert_eq!(number(&b).await, failures);
                assert_eq!(state_of(&tree, b.id()), ChildState::Running);
                // One that is restarted with it runs, if its new incarnation has answered.
                for other in [&a, &c] {
                    if matches!(other.ask(Job::Number).await, Ok(number) if number == failures) {
                        assert_eq!(state_of(&tree, other.id()), ChildState::Running);
                    }
                }
                b.tell(Job::Fail).unwrap();
            }
            tree.stop();
            tree.join().await.unwrap();
        }
    });
}

#[test]
fn a_child_below_another_supervisor_that_has_answered_runs() {
    everywhere(|| async {
        let top = patient(Strategy::OneForAll).spawn().unwrap();
        let below = top.supervisor(patient(Strategy::OneForOne).intensity(0, LONG));
        let below = below.unwrap();
        let a = start(&below, &Log::default(), "a");
        for failures in 0..5 {
            assert_eq!(number(&a).await, failures);
            assert_eq!(state_of(&below, a.id()), ChildState::Running);
            assert_eq!(top.children()[0].state, ChildState::Running);
            a.tell(Job::Fail).unwrap();
        }
        top.stop();
        top.join().await.unwrap();
    });
}

/// Answers, and blocks its thread in its first turn: so it runs, and has not begun for the others.
#[test]
fn a_child_that_answers_before_its_first_turn_has_ended_runs() {
    within(WATCH, || {
        on_two_workers(async {
            let tree = patient(Strategy::OneForOne).spawn().unwrap();
            let (asked, gate) = (Gate::default(), Gate::default());
            let passes = (asked.clone(), gate.clone());
            let blocking = actor(move |mut cx: greenroom::Context<Reply<()>>| {
                let (asked, gate) = passes.clone();
                async move {
                    asked.pass();
                    if let Some(reply) = cx.recv().await {
                        reply.send(());
                    }
                    gate.pass();
                }
            });
            let blocking = tree.start(blocking.on(Detached)).unwrap();
            let next = start(&tree, &Log::default(), "next");
            let (reply, answer) = Reply::pair();
            blocking.tell(reply).unwrap();
            asked.open();
            answer.await.unwrap();
            assert_eq!(state_of(&tree, blocking.id()), ChildState::Running);
            assert_eq!(state_of(&tree, next.id()), ChildState::Starting);
            gate.open();
            assert_eq!(number(&next).await, 0);
            tree.stop();
            tree.join().await.unwrap();
        });
    });
}

#[test]
fn a_stopped_child_that_begins_once_more_is_stopping() {
    simulated(|| async {
        let tree = patient(Strategy::OneForOne).grace(LONG).spawn().unwrap();
        let own = Log::default();
        let a = actor(move |cx| child(cx, "a", own));
        let a = a.restart(Restarts::on_fault().stand_down(Duration::from_secs(100)));
        let a = tree.start(a).unwrap();
        a.tell(Job::Fail).unwrap();
        while !matches!(state_of(&tree, a.id()), ChildState::BackingOff { .. }) {
            yield_now().await;
        }
        let (holds, until) = (Gate::default(), Gate::default());
        let (reply, answer) = Reply::pair();
        let hold = Job::Hold(holds.clone(), until.clone(), reply);
        a.tell(hold).unwrap();
        tree.stop_child(&a).unwrap();
        holds.wait().await;
        assert_eq!(state_of(&tree, a.id()), ChildState::Stopping);
        until.open();
        assert_eq!(answer.await, Ok(()));
        assert_eq!(a.ended().await, End::Returned);
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn a_child_whose_incarnation_is_not_gone_is_restarting() {
    everywhere(|| async {
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let a = start(&tree, &Log::default(), "a");
        assert_eq!(number(&a).await, 0);
        let (place, escaped) = super::escape(&a).await;
        tree.restart(&a).unwrap();
        wait_for(&tree, &a, ChildState::Restarting).await;
        drop(place.lock().unwrap().take());
        drop(escaped);
        assert_eq!(number(&a).await, 1);
        assert_eq!(state_of(&tree, a.id()), ChildState::Running);
        tree.stop();
        tree.join().await.unwrap();
    });
}
