//! The function of a policy that receives a task or actor, by the thread that woke it.

use std::sync::atomic::Ordering;

use greenroom::time::sleep;
use greenroom::{Context, Runtime, actor, unblock, yield_now};

use super::own::{Call, Recorder, Wrapped};
use crate::support::{Gate, Home, WATCH, drive, poll_here, within};

use Call::{After, Before, Central, Completed, Internal, Later};

/// A runtime with one worker, and the recorder of its policy.
struct Desk {
    home: Home,
    recorder: Recorder,
}

impl Desk {
    fn new() -> Desk {
        let recorder = Recorder::default();
        let builder = Runtime::builder().policy(recorder.clone()).batch(2);
        let home = Home::built(1, builder);
        Desk { home, recorder }
    }

    /// Returns the calls to the policy during `act` and all work caused by it.
    fn during(&self, act: impl FnOnce(&Home)) -> Vec<Call> {
        self.home.runtime.run_until_quiescent();
        self.recorder.calls();
        act(&self.home);
        self.home.runtime.run_until_quiescent();
        self.recorder.calls()
    }

    /// Returns only the enqueues among the calls that [`Desk::during`] returns.
    fn enqueues(&self, act: impl FnOnce(&Home)) -> Vec<Call> {
        let mut calls = self.during(act);
        calls.retain(|call| !matches!(call, Before | After | Completed));
        calls
    }
}

/// Runs the test with its own desk.
fn at_a_desk(test: fn(&Desk)) {
    within(WATCH, move || test(&Desk::new()));
}

/// Receives and drops messages.
async fn reads(mut cx: Context<()>) {
    while cx.recv().await.is_some() {}
}

#[test]
fn spawns_are_enqueued_centrally_outside_and_internally_in_tasks() {
    at_a_desk(|desk| {
        let calls = desk.during(|home| home.spawn_task(async {}).detach());
        assert_eq!(calls, [Central, Before, Completed, After]);
        let calls = desk.during(|home| {
            let spawns = async { greenroom::spawn(async {}).detach() };
            home.spawn_task(spawns).detach();
        });
        let run = [Before, Completed, After];
        let outer = [Central, Before, Internal, Completed, After];
        assert_eq!(calls, [outer.as_slice(), &run].concat());
        let mut kept = None;
        let calls = desk.during(|home| kept = Some(home.spawn(actor(reads))));
        assert_eq!(calls, [Central, Before, After]);
    });
}

#[test]
fn messages_enqueue_actors_centrally_outside_and_internally_in_tasks() {
    at_a_desk(|desk| {
        let reader = desk.home.spawn(actor(reads));
        let calls = desk.during(|_| reader.tell(()).unwrap());
        assert_eq!(calls, [Central, Before, After]);
        let address = reader.address();
        let calls = desk.during(|home| {
            let tells = async move { address.tell(()).unwrap() };
            home.spawn_task(tells).detach();
        });
        let outer = [Central, Before, Internal, Completed, After];
        assert_eq!(calls, [outer.as_slice(), &[Before, After]].concat());
    });
}

#[test]
fn wakes_by_pinned_threads_are_enqueued_centrally() {
    at_a_desk(|desk| {
        let reader = desk.home.spawn(actor(reads));
        let pinned = desk.home.runtime.spawn_pinned("pinned").unwrap();
        let address = reader.address();
        let calls = desk.during(|_| {
            drive(pinned.spawn(move || async move { address.tell(()).unwrap() }));
        });
        assert_eq!(
            calls,
            [Central, Before, After],
            "the policy gets no calls for the pinned task"
        );
        let calls = desk.enqueues(|_| {
            drive(pinned.spawn(|| async { greenroom::spawn(async {}).detach() }));
        });
        assert_eq!(calls, [Central]);
    });
}

#[test]
fn wakes_by_block_on_are_enqueued_centrally() {
    at_a_desk(|desk| {
        let calls = desk.enqueues(|home| {
            home.block_on(async { greenroom::spawn(async {}).await });
        });
        assert_eq!(calls, [Central]);
        let reader = desk.home.spawn(actor(reads));
        let address = reader.address();
        let calls = desk.enqueues(|home| home.block_on(async { address.tell(()).unwrap() }));
        assert_eq!(calls, [Central]);
    });
}

#[test]
fn spawns_after_block_on_in_a_task_are_enqueued_centrally() {
    at_a_desk(|desk| {
        let calls = desk.enqueues(|home| {
            let waits = async {
                Runtime::current().block_on(async {});
                greenroom::spawn(async {}).detach();
            };
            home.spawn_task(waits).detach();
        });
        assert_eq!(calls, [Central, Central]);
    });
}

#[test]
fn a_task_that_yields_is_resumed_later() {
    at_a_desk(|desk| {
        let calls = desk.during(|home| home.spawn_task(yield_now()).detach());
        let first = [Central, Before, Later, After];
        assert_eq!(
            calls,
            [first.as_slice(), &[Before, Completed, After]].concat()
        );
    });
}

#[test]
fn an_actor_that_has_used_up_its_batch_is_resumed_later() {
    at_a_desk(|desk| {
        let reader = desk.home.spawn(actor(reads));
        let address = reader.address();
        let calls = desk.during(|home| {
            let tells = async move { (0..5).for_each(|_| address.tell(()).unwrap()) };
            home.spawn_task(tells).detach();
        });
        // One enqueue for all five; then turns of two, two and one messages.
        let told = [Central, Before, Internal, Completed, After];
        let two = [Before, Later, After];
        let rest = [told.as_slice(), &two, &two, &[Before, After]].concat();
        assert_eq!(calls, rest);
    });
}

#[test]
fn an_actor_that_got_a_message_in_its_turn_is_resumed_later() {
    at_a_desk(|desk| {
        let tells = teller(desk);
        let calls = desk.during(|_| tells.tell(()).unwrap());
        let first = [Central, Before, Later, After];
        assert_eq!(calls, [first.as_slice(), &[Before, After]].concat());
    });
}

/// Spawns an actor that, after its first message, sends itself a message while it waits for the
/// next one.
fn teller(desk: &Desk) -> greenroom::Handle<(), ()> {
    desk.home.spawn(actor(|mut cx: Context<()>| async move {
        cx.recv().await;
        let me = cx.downgrade();
        let mut next = Box::pin(cx.recv());
        assert!(poll_here(&mut next).await.is_pending());
        me.tell(()).unwrap();
        // Its turn ends here, as if it waited.
        let mut ended = false;
        std::future::poll_fn(|_| match std::mem::replace(&mut ended, true) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
        next.await;
        drop(me);
        std::future::pending().await
    }))
}

#[test]
fn wakes_by_timers_and_blocking_calls_are_enqueued_once() {
    at_a_desk(|desk| {
        let calls = desk.enqueues(|home| {
            let sleeps = async {
                let mut sleeps;
                while {
                    sleeps = Box::pin(sleep(std::time::Duration::from_millis(1)));
                    poll_here(&mut sleeps).await.is_ready()
                } {}
                sleeps.await;
            };
            home.spawn_task(sleeps).detach();
        });
        assert!(matches!(*calls, [Central, Central | Internal]), "{calls:?}");
        let go = Gate::default();
        let goes = go.clone();
        let calls = desk.enqueues(|home| {
            // The only worker opens the gate while the task waits.
            let calls = async move {
                greenroom::spawn(async move { go.open() }).detach();
                unblock(move || goes.pass()).await;
            };
            home.spawn_task(calls).detach();
        });
        assert_eq!(calls, [Central, Internal, Central]);
    });
}

#[test]
fn the_runtime_never_enqueues_a_task_for_a_chosen_worker() {
    within(WATCH, || {
        let policy = Wrapped::default();
        let counts = policy.calls.clone();
        let builder = Runtime::builder().policy(policy).on_fault(|_| {});
        let home = Home::built(3, builder);
        let pinned = home.runtime.spawn_pinned("pinned").unwrap();
        let reader = home.spawn(actor(reads));
        for n in 0..100 {
            let address = reader.address();
            let task = home.spawn_task(async move {
                yield_now().await;
                address.tell(()).unwrap();
                greenroom::spawn(async {}).await;
                if n % 20 == 0 {
                    Runtime::current().block_on(yield_now());
                    sleep(std::time::Duration::from_millis(1)).await;
                    unblock(|| {}).await;
                }
            });
            let address = reader.address();
            drive(pinned.spawn(move || async move { address.tell(()).unwrap() }));
            drive(task);
        }
        drive(reader.join()).unwrap();
        home.runtime.run_until_quiescent();
        let count = |calls: &std::sync::atomic::AtomicUsize| calls.load(Ordering::SeqCst);
        assert_eq!(count(&counts.external), 0);
        // All other functions were called, and each turn was that of an enqueued runnable.
        let enqueued = [&counts.central, &counts.internal, &counts.later];
        assert!(enqueued.iter().all(|calls| count(calls) > 0));
        let enqueued: usize = enqueued.into_iter().map(count).sum();
        assert_eq!(count(&counts.dequeued), enqueued);
        assert_eq!(count(&counts.before), enqueued);
        assert_eq!(count(&counts.after), enqueued);
        assert_eq!(count(&counts.completed), 100 * 2 + 1);
    });
}
