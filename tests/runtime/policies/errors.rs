//! Policies that refuse runnables, panic, or lose runnables.

use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use greenroom::policy::{Duties, Policy, Runnable, Setup, TaskInfo};
use greenroom::{BuildError, Context, Fault, Handle, Runtime, actor, yield_now};

use crate::support::{Drops, Home, Log, WATCH, drive, keep_bombs_quiet, received, within};

/// The function in which the policy fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Central,
    Internal,
    Later,
    Dequeue,
    Before,
    After,
    Completed,
    Interrupt,
}

/// The name of the actor with which the policy fails.
const VICTIM: &str = "victim";

/// A queue that panics with the victim, or drops it.
struct Faulty {
    queue: Mutex<VecDeque<Runnable>>,
    at: At,
    panics: bool,
}

impl Faulty {
    fn new(at: At, panics: bool) -> Faulty {
        keep_bombs_quiet();
        Faulty {
            queue: Mutex::default(),
            at,
            panics,
        }
    }

    fn goes_wrong(&self, at: At, task: &TaskInfo) -> bool {
        let wrong = self.at == at && task.name() == Some(VICTIM);
        assert!(!(wrong && self.panics), "bomb in a policy");
        wrong
    }

    fn put(&self, at: At, runnable: Runnable) {
        if !self.goes_wrong(at, &runnable.info()) {
            self.queue.lock().unwrap().push_back(runnable);
        }
    }
}

impl Policy for Faulty {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.put(At::Central, runnable);
    }

    fn internal_enqueue(&self, _worker: &(), runnable: Runnable) {
        self.put(At::Internal, runnable);
    }

    fn resume_later(&self, _worker: &(), runnable: Runnable) {
        self.put(At::Later, runnable);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        let next = self.queue.lock().unwrap().pop_front()?;
        (!self.goes_wrong(At::Dequeue, &next.info())).then_some(next)
    }

    fn before_resume(&self, _worker: &(), task: &TaskInfo) {
        self.goes_wrong(At::Before, task);
    }

    fn after_resume(&self, _worker: &(), task: &TaskInfo) {
        self.goes_wrong(At::After, task);
    }

    fn after_completion(&self, _worker: &(), task: &TaskInfo) {
        self.goes_wrong(At::Completed, task);
    }

    fn interrupt(&self) {
        assert!(self.at != At::Interrupt, "bomb in a policy");
    }
}

/// Spawns the victim, outside or in a task; it yields once.
fn spawn_victim(home: &Home, inside: bool) -> Handle<(), ()> {
    let victim = || actor(|_: Context<()>| yield_now()).name(VICTIM);
    if inside {
        drive(home.spawn_task(async move { victim().spawn() }))
    } else {
        home.spawn(victim())
    }
}

/// Returns the victim's outcome with such a policy; checks that all other tasks run and that the
/// runtime ends normally.
fn comes_to(at: At, panics: bool) -> Result<(), Fault> {
    within(WATCH, move || {
        let builder = Runtime::builder()
            .policy(Faulty::new(at, panics))
            .on_fault(|_| {});
        let home = Home::built(2, builder);
        let outcome = drive(spawn_victim(&home, at == At::Internal).join());
        let tasks = (0..50).map(|n| {
            home.spawn_task(async move {
                yield_now().await;
                greenroom::spawn(async move { n }).await
            })
        });
        let values = drive(futures::future::join_all(tasks.collect::<Vec<_>>()));
        assert!(values.into_iter().eq(0..50));
        drive(home.spawn_task(greenroom::time::sleep(std::time::Duration::from_millis(1))));
        let report = drive(home.runtime.shutdown());
        assert_eq!(report.left_behind, 0, "{report:?}");
        outcome
    })
}

const LOSING: [At; 4] = [At::Central, At::Internal, At::Later, At::Dequeue];

#[test]
fn a_policy_that_panics_loses_only_that_runnable() {
    for at in LOSING {
        eprintln!("{at:?}");
        let fault = comes_to(at, true).unwrap_err();
        assert!(
            matches!(fault, Fault::Cancelled | Fault::NotStarted),
            "{fault}"
        );
    }
}

#[test]
fn a_panic_in_a_hook_or_an_interrupt_of_a_policy_loses_no_task() {
    for at in [At::Before, At::After, At::Completed, At::Interrupt] {
        eprintln!("{at:?}");
        comes_to(at, true).unwrap();
    }
}

#[test]
fn a_policy_that_drops_a_runnable_cancels_its_actor() {
    for at in LOSING {
        eprintln!("{at:?}");
        let fault = comes_to(at, false).unwrap_err();
        let expected = match at {
            At::Later => matches!(fault, Fault::Cancelled),
            _ => matches!(fault, Fault::NotStarted),
        };
        assert!(expected, "{at:?}: {fault}");
    }
}

#[test]
fn a_runtime_whose_policy_lost_a_runnable_becomes_quiescent() {
    for (at, panics) in LOSING.into_iter().flat_map(|at| [(at, true), (at, false)]) {
        eprintln!("{at:?} {panics}");
        within(WATCH, move || {
            let builder = Runtime::builder().policy(Faulty::new(at, panics));
            let home = Home::built(2, builder);
            drop(drive(spawn_victim(&home, at == At::Internal).join()));
            home.runtime.run_until_quiescent();
        });
    }
}

/// A policy that drops new runnables while `drops` is set.
#[derive(Clone, Default)]
struct Careless {
    queue: Arc<Mutex<VecDeque<Runnable>>>,
    drops: Arc<Mutex<bool>>,
    ended: Log<u64>,
}

impl Policy for Careless {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        if !*self.drops.lock().unwrap() {
            self.queue.lock().unwrap().push_back(runnable);
        }
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        self.queue.lock().unwrap().pop_front()
    }

    fn after_completion(&self, _worker: &(), task: &TaskInfo) {
        self.ended.add(task.id());
    }
}

#[test]
fn a_policy_that_drops_a_runnable_cancels_its_task() {
    within(WATCH, || {
        let policy = Careless::default();
        let home = Home::built(1, Runtime::builder().policy(policy.clone()));
        *policy.drops.lock().unwrap() = true;
        let drops = Drops::default();
        let state = drops.one();
        let outside = home.spawn_task(async move { drop(state) });
        assert_eq!(drops.count(), 1);
        assert!(drive(outside.fallible()).is_none());
        *policy.drops.lock().unwrap() = false;
        let set = policy.drops.clone();
        let inside = home.spawn_task(async move {
            *set.lock().unwrap() = true;
            let lost = greenroom::spawn(async {});
            *set.lock().unwrap() = false;
            lost.fallible().await
        });
        assert!(drive(inside).is_none());
    });
}

#[test]
fn a_task_dropped_in_the_turn_of_another_is_reported_with_its_own_id() {
    within(WATCH, || {
        let policy = Careless::default();
        let home = Home::built(1, Runtime::builder().policy(policy.clone()));
        let (set, ended) = (policy.drops.clone(), policy.ended.clone());
        let early = drive(home.spawn_task(async move {
            *set.lock().unwrap() = true;
            drop(greenroom::spawn(async {}));
            *set.lock().unwrap() = false;
            ended.take()
        }));
        home.runtime.run_until_quiescent();
        let late = policy.ended.take();
        assert_eq!((early.len(), late.len()), (1, 1));
        assert_ne!(early, late);
    });
}

/// A policy that panics when it creates the state of its first worker.
#[derive(Default)]
struct Shy(Mutex<VecDeque<Runnable>>);

impl Policy for Shy {
    type Worker = ();

    fn worker(&self, index: usize) {
        assert!(index > 0, "bomb in a policy");
    }

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.lock().unwrap().push_back(runnable);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        self.0.lock().unwrap().pop_front()
    }
}

#[test]
fn a_runtime_works_without_a_worker_whose_state_the_policy_cannot_make() {
    within(WATCH, || {
        let (warn, warnings) = channel();
        let runtime = Runtime::builder().workers(2).policy(Shy::default());
        let runtime = runtime.on_warning(move |warning| warn.send(warning.to_string()).unwrap());
        let runtime = runtime.build().unwrap();
        assert_eq!(
            received(&warnings),
            "worker 0 panicked outside any turn: bomb in a policy; the other workers go on without it"
        );
        for n in 0..100 {
            assert_eq!(drive(runtime.spawn(async move { n })), n);
        }
        runtime.run_until_quiescent();
        let left = actor(|_: Context<()>| std::future::pending::<()>());
        let left = left.on(&runtime).spawn();
        left.kill();
        let report = drive(runtime.shutdown());
        assert_eq!(report.left_behind, 0, "{report:?}");
    });
}

/// A policy that reports its setup and refuses to start.
struct Refuses;

impl Policy for Refuses {
    type Worker = ();

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        let (workers, highest) = (setup.workers, setup.highest_priority);
        Err(format!(
            "was given {workers} workers and priorities to {highest}"
        ))
    }

    fn worker(&self, _index: usize) {
        unreachable!("the policy was not started");
    }

    fn central_enqueue(&self, _runnable: Runnable) {
        unreachable!("the policy was not started");
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        unreachable!("the policy was not started");
    }
}

#[test]
fn a_policy_that_refuses_to_start_is_an_error_with_its_reason() {
    let builder = Runtime::builder()
        .workers(3)
        .policy(Refuses)
        .priorities(200);
    let error = builder.build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "policy was given 3 workers and priorities to 200"
    );
    let BuildError::Impossible { option, reason } = error else {
        panic!("{error}");
    };
    assert_eq!(option, "policy");
    assert_eq!(reason, "was given 3 workers and priorities to 200");
}
