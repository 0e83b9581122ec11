//! The hooks of a policy, which are called for turns and for the ends of tasks.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread::ThreadId;

use greenroom::policy::TaskInfo;
use greenroom::{Context, Fault, Runtime, actor, yield_now};

use super::own::{Call, Entry, Noted, Recorder};
use crate::support::{Home, WATCH, counted, drive, within};

use Call::{After, Before, Completed, Dropped, Polled};

fn recorded(workers: usize) -> (Home, Recorder) {
    let recorder = Recorder::default();
    let builder = Runtime::builder()
        .policy(recorder.clone())
        .on_fault(|_| {})
        .grace(std::time::Duration::from_millis(20));
    (Home::built(workers, builder), recorder)
}

/// Returns the hook calls since the last check, once the runtime is quiescent.
fn told(home: &Home, recorder: &Recorder) -> Vec<Call> {
    home.runtime.run_until_quiescent();
    let mut calls = recorder.calls();
    calls.retain(|call| matches!(call, Before | After | Completed | Dropped));
    calls
}

fn id_of(entry: &Entry) -> Option<u64> {
    entry.task.as_ref().map(TaskInfo::id)
}

#[test]
fn each_turn_is_bracketed_once_by_hooks_on_its_thread() {
    within(WATCH, || {
        let (home, recorder) = recorded(3);
        let polls = Arc::new(AtomicUsize::new(0));
        let noted = |n: usize| {
            let (recorder, polls) = (recorder.clone(), polls.clone());
            counted(polls, async move {
                for _ in 0..n % 7 {
                    recorder.note(Polled, None);
                    yield_now().await;
                }
            })
        };
        for n in 0..100 {
            home.spawn_task(noted(n)).detach();
            let noted = noted(n);
            drop(home.spawn(actor(|_: Context<()>| noted)));
        }
        home.runtime.run_until_quiescent();
        let log = recorder.log.take();
        let runs = log.iter().filter(|entry| entry.call == Before).count();
        assert_eq!(runs, polls.load(Ordering::SeqCst));
        // On each thread the order is: before, the events of the turn, after. No turn is within
        // another.
        let mut running: HashMap<ThreadId, u64> = HashMap::new();
        for entry in &log {
            let on = entry.thread;
            match entry.call {
                Before => assert_eq!(running.insert(on, id_of(entry).unwrap()), None),
                After => assert_eq!(running.remove(&on), id_of(entry)),
                Completed => assert_eq!(running.get(&on).copied(), id_of(entry)),
                Polled => assert!(running.contains_key(&on)),
                _ => {}
            }
        }
        assert!(running.is_empty());
    });
}

/// A future that keeps its state until it is dropped, which is after its end.
struct Held(
    Pin<Box<dyn Future<Output = ()> + Send>>,
    #[expect(dead_code, reason = "dropped with the rest")] Noted,
);

impl Future for Held {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// The calls for a turn in which a future ends.
const END: [Call; 4] = [Before, Completed, Dropped, After];

/// A task and an actor for each way to end.
#[test]
fn after_completion_is_called_once_in_the_turn_before_the_future_is_dropped() {
    within(WATCH, || {
        let (home, recorder) = recorded(1);
        let held = |future| Held(future, Noted(recorder.clone()));

        home.spawn_task(held(Box::pin(async {}))).detach();
        assert_eq!(told(&home, &recorder), END, "a task that is done");
        home.spawn_task(held(Box::pin(async { panic!("bomb") })))
            .detach();
        assert_eq!(told(&home, &recorder), END, "a task that panics");
        let waits = home.spawn_task(held(Box::pin(std::future::pending())));
        assert_eq!(told(&home, &recorder), [Before, After]);
        drop(waits);
        assert_eq!(told(&home, &recorder), END, "a task that is cancelled");
        let queued = home.hold();
        let waits = home.spawn_task(held(Box::pin(std::future::pending())));
        recorder.calls();
        drop(waits);
        drop(queued);
        let calls = told(&home, &recorder);
        assert_eq!(
            calls,
            [&[Completed, After], &END[..]].concat(),
            "a task that was cancelled before its first turn"
        );

        let actor = |future| {
            let held = held(future);
            home.spawn(actor(move |_: Context<()>| held))
        };
        drop(actor(Box::pin(async {})));
        assert_eq!(told(&home, &recorder), END, "an actor that is done");
        drop(actor(Box::pin(async { panic!("bomb") })));
        assert_eq!(told(&home, &recorder), END, "an actor that panics");
        let waits = actor(Box::pin(std::future::pending()));
        assert_eq!(told(&home, &recorder), [Before, After]);
        waits.kill();
        assert_eq!(told(&home, &recorder), END, "an actor that is killed");
        assert!(matches!(drive(waits.join()), Err(Fault::Killed)));
    });
}

#[test]
fn a_shutdown_calls_after_completion_at_most_once_for_each_task() {
    within(WATCH, || {
        let (home, recorder) = recorded(2);
        let held = || Held(Box::pin(std::future::pending()), Noted(recorder.clone()));
        for _ in 0..10 {
            home.spawn_task(held()).detach();
            let held = held();
            drop(home.spawn(actor(move |_: Context<()>| held)));
        }
        home.runtime.run_until_quiescent();
        recorder.calls();
        drive(home.runtime.shutdown());
        let log = recorder.log.take();
        let count = |call| log.iter().filter(|entry| entry.call == call).count();
        assert_eq!(count(Dropped), 20);
        let mut told: Vec<_> = log
            .iter()
            .filter(|entry| entry.call == Completed)
            .map(id_of)
            .collect();
        let ends = told.len();
        told.sort();
        told.dedup();
        assert_eq!(told.len(), ends);
    });
}

#[test]
fn hooks_are_called_for_a_task_that_called_block_on() {
    within(WATCH, || {
        let (home, recorder) = recorded(1);
        let waits = async { Runtime::current().block_on(async {}) };
        home.spawn_task(Held(Box::pin(waits), Noted(recorder.clone())))
            .detach();
        assert_eq!(told(&home, &recorder), END);
    });
}

#[test]
fn hooks_are_not_called_for_turns_on_pinned_threads() {
    within(WATCH, || {
        let (home, recorder) = recorded(1);
        let pinned = home.runtime.spawn_pinned("pinned").unwrap();
        drive(pinned.spawn(yield_now));
        let there = actor(|_: Context<()>| yield_now()).on(&pinned).spawn();
        drive(there.join()).unwrap();
        assert_eq!(told(&home, &recorder), []);
    });
}

#[test]
fn the_task_info_of_an_actor_has_its_id_name_and_priority() {
    within(WATCH, || {
        let (home, recorder) = recorded(2);
        async fn reads(mut cx: Context<()>) -> Option<()> {
            cx.recv().await
        }
        let named = home.spawn(actor(reads).name("tally").priority(3));
        let plain = home.spawn(actor(reads));
        home.runtime.run_until_quiescent();
        let ids = [named.id(), plain.id()];
        drive(named.join()).unwrap();
        drive(plain.join()).unwrap();
        home.runtime.run_until_quiescent();
        // The actors have ended, and their recorded infos still exist.
        let log = recorder.log.take();
        assert!(log.len() > 8);
        for task in log.iter().filter_map(|entry| entry.task.as_ref()) {
            assert!(task.is_actor());
            if task.id() == ids[0] {
                assert_eq!((task.name(), task.priority()), (Some("tally"), 3));
                assert_eq!(task.called(), "tally");
                assert_eq!(task.to_string(), format!("\"tally\" #{}", ids[0]));
            } else {
                assert_eq!(task.id(), ids[1]);
                assert_eq!((task.name(), task.priority()), (None, 0));
                assert_eq!(task.called(), "reads");
                assert_eq!(task.to_string(), format!("reads #{}", ids[1]));
            }
        }
    });
}

#[test]
fn the_task_info_of_a_plain_task_has_a_unique_number() {
    within(WATCH, || {
        let (home, recorder) = recorded(2);
        let tasks: Vec<_> = (0..10)
            .map(|_| home.spawn_task(std::future::pending::<()>()))
            .collect();
        home.runtime.run_until_quiescent();
        drop(tasks);
        home.runtime.run_until_quiescent();
        let mut calls: HashMap<u64, Vec<Call>> = HashMap::new();
        for Entry { call, task, .. } in recorder.log.take() {
            let task = task.expect("only tasks are recorded");
            assert!(!task.is_actor());
            assert_eq!((task.name(), task.priority()), (None, 0));
            assert_eq!(task.called(), "Pending");
            assert_eq!(task.to_string(), format!("task #{}", task.id()));
            calls.entry(task.id()).or_default().push(call);
        }
        assert_eq!(calls.len(), 10);
        let mut all: Vec<Call> = calls.into_values().flatten().collect();
        all.retain(|call| *call == Completed);
        assert_eq!(all.len(), 10);
    });
}
