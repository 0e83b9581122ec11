//! Policies that give a runnable to another runtime, which runs it.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::policy::{Duties, Policy, Runnable, TaskInfo};
use greenroom::{Builder, Context, Fault, Observer, Runtime, actor, yield_now};

use crate::support::{Drops, Gate, Log, OpenOnDrop, WATCH, drive, within};

type Queue = Arc<Mutex<VecDeque<Runnable>>>;

/// A policy that passes each injected runnable to the next of its ways, and gives no runnable to
/// its workers.
struct Gives {
    ways: Mutex<VecDeque<Way>>,
    _gone: OpenOnDrop,
}

type Way = Box<dyn FnOnce(Runnable) + Send>;

impl Policy for Gives {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        let way = self.ways.lock().unwrap().pop_front();
        way.expect("there is a way for each runnable")(runnable);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        None
    }
}

/// A policy that takes runnables from a shared queue.
struct Takes(Queue);

impl Policy for Takes {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.lock().unwrap().push_back(runnable);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        self.0.lock().unwrap().pop_front()
    }
}

fn builder(workers: usize, policy: impl Policy) -> Builder {
    Runtime::builder()
        .workers(workers)
        .grace(Duration::ZERO)
        .policy(policy)
}

/// Builds a runtime with one worker, and returns the queue from which the worker takes.
fn taking() -> (Runtime, Queue) {
    let queue = Queue::default();
    let runtime = builder(1, Takes(queue.clone())).build().unwrap();
    (runtime, queue)
}

/// Builds a runtime whose runnables go these ways. The gate opens when the policy is dropped.
fn giving<const N: usize>(ways: [Way; N]) -> (Runtime, Gate) {
    let gone = Gate::default();
    let policy = Gives {
        ways: Mutex::new(ways.into()),
        _gone: OpenOnDrop(gone.clone()),
    };
    (builder(1, policy).build().unwrap(), gone)
}

/// Returns a way to the worker of this runtime, which is woken.
fn to((runtime, queue): &(Runtime, Queue)) -> Way {
    let (runtime, queue) = (runtime.clone(), queue.clone());
    Box::new(move |runnable| {
        queue.lock().unwrap().push_back(runnable);
        runtime.spawn(async {}).detach();
    })
}

/// Starts the future as a plain task, or as an actor.
fn start(as_actor: bool, runtime: &Runtime, future: impl Future<Output = ()> + Send + 'static) {
    if as_actor {
        let begin = |_cx: Context<()>| future;
        drop(actor(begin).on(runtime).spawn());
    } else {
        runtime.spawn(future).detach();
    }
}

#[test]
fn a_task_run_by_another_runtime_is_cancelled_when_its_own_has_ended() {
    within(WATCH, || {
        for as_actor in [false, true] {
            let other = taking();
            let (own, gone) = giving([to(&other)]);
            let (begun, go, drops, went_on) = <(Gate, Gate, Drops, Gate)>::default();
            let (begins, waits, dropped, goes_on) =
                (begun.clone(), go.clone(), drops.one(), went_on.clone());
            start(as_actor, &own, async move {
                let _dropped = dropped;
                begins.open();
                waits.pass();
                yield_now().await;
                goes_on.open();
            });
            begun.pass();
            drop(own);
            go.open();
            gone.pass();
            assert_eq!((drops.count(), went_on.is_open()), (1, false));
            assert_eq!(drive(other.0.spawn(async { 42 })), 42);
        }
    });
}

#[test]
fn a_policy_lives_while_another_runtime_returns_a_runnable_to_it() {
    within(WATCH, || {
        for as_actor in [false, true] {
            let (first, second) = (taking(), taking());
            let (over, seen) = (Gate::default(), Log::default());
            let (waits, sees, give) = (over.clone(), seen.clone(), to(&second));
            let gone = Arc::new(Mutex::new(Gate::default()));
            let goes = gone.clone();
            // Called on the first runtime's thread after the task has yielded there.
            let again = move |runnable| {
                give(runnable);
                waits.pass();
                sees.add(goes.lock().unwrap().is_open());
            };
            let (own, its_end) = giving([to(&first), Box::new(again)]);
            *gone.lock().unwrap() = its_end.clone();
            let ended = Gate::default();
            let opens = OpenOnDrop(ended.clone());
            start(as_actor, &own, async move {
                let _opens = opens;
                yield_now().await;
            });
            ended.pass();
            drop(own);
            // The second runtime's worker has returned the runnable that it ran before.
            drive(second.0.spawn(async {}));
            over.open();
            its_end.pass();
            assert_eq!(
                seen.take(),
                [false],
                "the policy was dropped while it was called"
            );
        }
    });
}

#[test]
fn a_runnable_of_an_ended_runtime_has_one_turn_on_another_runtime() {
    within(WATCH, || {
        let other = taking();
        let late = Queue::default();
        let keep = || -> Way {
            let late = late.clone();
            Box::new(move |runnable| late.lock().unwrap().push_back(runnable))
        };
        let (own, gone) = giving([keep(), keep(), keep(), keep()]);
        let never = actor(|_cx: Context<()>| async {}).on(&own).spawn();
        let ends = own.spawn(async { 42 });
        let suspends = own.spawn(yield_now());
        let dropped = own.spawn(async {});
        drop(own);
        drop(late.lock().unwrap().pop_back());
        let rest = std::mem::take(&mut *late.lock().unwrap());
        rest.into_iter().for_each(|runnable| to(&other)(runnable));
        // The shutdown has cancelled the actors that it knows.
        assert!(matches!(drive(never.join()), Err(Fault::NotStarted)));
        assert_eq!(drive(ends), 42);
        assert_eq!(drive(suspends.fallible()), None);
        assert_eq!(drive(dropped.fallible()), None);
        gone.pass();
    });
}

#[test]
fn two_runtimes_that_share_a_queue_drop_all_their_tasks() {
    struct Watches;

    impl Observer for Watches {
        fn after_run(&self, task: &TaskInfo, _took: Duration) {
            let _ = task.to_string();
        }
    }

    const EACH: usize = 100;
    within(WATCH, || {
        let (queue, drops) = (Queue::default(), Drops::default());
        let runtime = || {
            let builder = builder(2, Takes(queue.clone())).observer(Watches);
            builder.build().unwrap()
        };
        let both = [runtime(), runtime()];
        let begun = Gate::default();
        for n in 0..EACH {
            for runtime in &both {
                let (begins, dropped) = (begun.clone(), drops.one());
                start(n % 2 == 0, runtime, async move {
                    let _dropped = dropped;
                    begins.open();
                    loop {
                        yield_now().await;
                    }
                });
            }
        }
        begun.pass();
        for runtime in both {
            runtime.stats();
            drop(runtime);
        }
        queue.lock().unwrap().clear();
        assert_eq!(drops.count(), 2 * EACH);
    });
}
