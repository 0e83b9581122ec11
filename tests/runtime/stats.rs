//! The `stats` of a runtime, under each policy.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use greenroom::policy::{Duties, Policy, Polling, Prioritized, Runnable, Sharing, Stealing};
use greenroom::{ActorStatus, Builder, Context, Observer, Reply, Runtime, Stats, actor};

use crate::support::{
    Gate, Home, MANY_HAND_OVERS, WATCH, drive, hand_over, in_every_home, until, within,
};

in_every_home!(
    actors_are_listed_with_their_names_and_mailbox_lengths,
    a_task_is_counted_from_its_first_wait_until_its_end,
);

/// A custom policy with only the required functions.
#[derive(Default)]
pub struct Plain(Mutex<VecDeque<Runnable>>);

impl Policy for Plain {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.lock().unwrap().push_back(runnable);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        self.0.lock().unwrap().pop_front()
    }
}

/// Calls `test` with a builder for each policy, the last of which is custom.
fn under_each_policy(test: impl Fn(&str, Builder) + Send + 'static) {
    within(WATCH, move || {
        test("stealing", Runtime::builder());
        let polling = Stealing::polling(Polling::default());
        test("polling", Runtime::builder().policy(polling));
        test("sharing", Runtime::builder().policy(Sharing::default()));
        test(
            "prioritized",
            Runtime::builder().policy(Prioritized::default()),
        );
        test("plain", Runtime::builder().policy(Plain::default()));
    });
}

fn steals(policy: &str) -> bool {
    ["stealing", "polling"].contains(&policy)
}

fn workers(builder: Builder, workers: usize) -> Runtime {
    builder.workers(workers).build().unwrap()
}

/// Blocks the only worker until the returned gate is opened.
fn hold(runtime: &Runtime) -> Gate {
    let (begun, held) = (Gate::default(), Gate::default());
    let (begins, waits) = (begun.clone(), held.clone());
    let holder = async move {
        begins.open();
        waits.pass();
    };
    runtime.spawn(holder).detach();
    begun.pass();
    held
}

fn only_actor(runtime: &Runtime) -> ActorStatus {
    let mut actors = runtime.stats().actors;
    assert_eq!(actors.len(), 1, "{actors:?}");
    actors.remove(0)
}

#[test]
fn every_turn_is_counted_once() {
    under_each_policy(|policy, builder| {
        let runtime = workers(builder, 2);
        let tasks: Vec<_> = (0..20)
            .map(|yields| {
                runtime.spawn(async move {
                    for _ in 0..yields {
                        greenroom::yield_now().await;
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(drive);
        // 1 + 2 + … + 20.
        assert_eq!(runtime.stats().total().runs, 210, "{policy}");
    });
}

#[test]
fn queued_tasks_are_counted_in_their_queues() {
    under_each_policy(|policy, builder| {
        let runtime = workers(builder, 1);
        let held = hold(&runtime);
        let outside: Vec<_> = (0..5).map(|_| runtime.spawn(async {})).collect();
        let stats = runtime.stats();
        assert_eq!(stats.queued, 5, "{policy}");
        assert_eq!(
            stats.injector,
            if steals(policy) { 5 } else { 0 },
            "{policy}"
        );
        assert_eq!(stats.total().queued, 0, "{policy}");
        held.open();
        outside.into_iter().for_each(drive);

        let inside = runtime.spawn(async {
            let tasks: Vec<_> = (0..3).map(|_| greenroom::spawn(async {})).collect();
            let stats = Runtime::current().stats();
            futures::future::join_all(tasks).await;
            stats
        });
        let stats = drive(inside);
        assert_eq!((stats.queued, stats.injector), (3, 0), "{policy}");
        let own = if steals(policy) { 3 } else { 0 };
        assert_eq!(stats.workers[0].queued, own, "{policy}");
        assert_eq!(runtime.stats().queued, 0, "{policy}");
    });
}

#[test]
fn each_take_from_the_injector_is_counted() {
    under_each_policy(|policy, builder| {
        let runtime = workers(builder, 2);
        for _ in 0..50 {
            // The spawn inside the task does not pass through the injector.
            drive(runtime.spawn(async { greenroom::spawn(async {}).await }));
        }
        let takes = runtime.stats().total().injector_takes;
        assert_eq!(takes, if steals(policy) { 50 } else { 0 }, "{policy}");
    });
}

#[test]
fn each_steal_is_counted() {
    under_each_policy(|policy, builder| {
        let runtime = workers(builder, 2);
        drive(runtime.spawn(async {}));
        assert_eq!(runtime.stats().total().steals, 0, "{policy}");
        for kept in [0, 1] {
            let before = runtime.stats().total().steals;
            let stolen = runtime.spawn(async move {
                let done = Gate::default();
                let opens = done.clone();
                greenroom::spawn(async move { opens.open() }).detach();
                // The first task waits in the LIFO slot until there is a second one.
                (0..kept).for_each(|_| greenroom::spawn(async {}).detach());
                done.pass();
            });
            drive(stolen);
            let more = runtime.stats().total().steals - before;
            assert_eq!(more > 0, steals(policy), "{policy}: {more}");
        }
    });
}

/// Returns whether every worker has parked and has not woken since.
fn all_parked(stats: &Stats) -> bool {
    let parked = |worker: &greenroom::WorkerStats| worker.parks == worker.wake_ups + 1;
    stats.workers.iter().all(parked)
}

#[test]
fn an_idle_worker_has_parked_and_a_task_wakes_one() {
    under_each_policy(|policy, builder| {
        let runtime = workers(builder, 2);
        for _ in 0..20 {
            until(|| all_parked(&runtime.stats()));
            let before = runtime.stats().total();
            drive(runtime.spawn(async {}));
            let after = runtime.stats().total();
            assert!(after.wake_ups > before.wake_ups, "{policy}: {after:?}");
            assert_eq!(after.runs, before.runs + 1, "{policy}");
        }
    });
}

#[test]
fn the_stats_of_an_idle_runtime_stop_changing() {
    under_each_policy(|policy, builder| {
        if policy == "polling" {
            // Its sleepers check for work now and then.
            return;
        }
        let runtime = workers(builder, 2);
        let ran = runtime.spawn(async {
            let tasks: Vec<_> = (0..100).map(|_| greenroom::spawn(async {})).collect();
            futures::future::join_all(tasks).await;
        });
        drive(ran);
        until(|| {
            let before = runtime.stats();
            hand_over(MANY_HAND_OVERS);
            all_parked(&before) && before.workers == runtime.stats().workers
        });
    });
}

#[test]
fn stats_are_available_after_a_shutdown() {
    under_each_policy(|policy, builder| {
        let runtime = workers(builder, 1);
        let actor = actor(|mut cx: Context<()>| async move { while cx.recv().await.is_some() {} });
        let actor = actor.on(&runtime).spawn();
        let waits = runtime.spawn(std::future::pending::<()>()).fallible();
        drive(runtime.spawn(async {}));
        drive(runtime.shutdown());
        let stats = runtime.stats();
        assert!(stats.total().runs >= 2, "{policy}: {stats:?}");
        assert_eq!((stats.queued, stats.tasks), (0, 0), "{policy}");
        assert!(stats.actors.is_empty(), "{policy}");
        drop((actor, waits));
    });
}

fn actors_are_listed_with_their_names_and_mailbox_lengths(home: &Home) {
    let held = home.hold();
    let named = |name: &str| {
        let actor = actor(|mut cx: Context<()>| async move { while cx.recv().await.is_some() {} });
        home.spawn(actor.name(name))
    };
    let full = named("full");
    let empty = named("empty");
    (0..300).for_each(|_| full.tell(()).unwrap());
    let actors = home.runtime.stats().actors;
    let mut listed: Vec<_> = actors
        .iter()
        .map(|actor| (actor.task.name().unwrap(), actor.mailbox))
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, [("empty", 0), ("full", 300)]);
    let ids = actors.iter().map(|actor| actor.task.id());
    assert!(
        ids.into_iter()
            .all(|id| id == full.id() || id == empty.id())
    );
    drop(held);
    home.block_on(full.join()).unwrap();
    let left = only_actor(&home.runtime);
    assert_eq!(left.task.name(), Some("empty"));
    home.block_on(empty.join()).unwrap();
    assert!(home.runtime.stats().actors.is_empty());
}

fn a_task_is_counted_from_its_first_wait_until_its_end(home: &Home) {
    let tasks = || home.runtime.stats().tasks;
    let (waits, goes) = (Gate::default(), Gate::default());
    let held = home.hold();
    let gate = goes.clone();
    let task = crate::support::open_when_pending(waits.clone(), async move { gate.wait().await });
    let task = home.spawn_task(task);
    assert_eq!(tasks(), 0, "the task was never polled");
    drop(held);
    waits.pass();
    until(|| tasks() == 1);
    goes.open();
    home.block_on(task);
    until(|| tasks() == 0);
}

#[test]
fn the_busy_time_of_an_actor_is_known_only_with_an_observer() {
    const BURNED: Duration = Duration::from_millis(3);
    struct Observes;
    impl Observer for Observes {}

    async fn burns(mut cx: Context<Reply<()>>) {
        while let Some(reply) = cx.recv().await {
            let begun = Instant::now();
            while begun.elapsed() < BURNED {
                std::hint::spin_loop();
            }
            reply.send(());
        }
    }
    let unseen = |home: &Home| {
        let actor = home.spawn(actor(burns));
        home.block_on(actor.ask(|reply| reply)).unwrap();
        assert_eq!(only_actor(&home.runtime).busy, None);
    };
    let seen = |home: &Home| {
        let held = home.hold();
        let actor = home.spawn(actor(burns));
        assert_eq!(only_actor(&home.runtime).busy, Some(Duration::ZERO));
        drop(held);
        for _ in 0..3 {
            home.block_on(actor.ask(|reply| reply)).unwrap();
        }
        // The actor's last turn may end a little after the answer.
        home.turn();
        let busy = only_actor(&home.runtime).busy.unwrap();
        assert!(busy >= 3 * BURNED, "{busy:?}");
    };
    let observed = || Runtime::builder().observer(Observes);
    Home::watch(|| Home::workers(1), unseen);
    Home::watch(Home::pinned, unseen);
    Home::watch(move || Home::built(1, observed()), seen);
    Home::watch(move || Home::pinned_built(observed()), seen);
}

/// Counts its messages, and panics at a zero.
async fn restartable(mut cx: Context<u32>) {
    while let Some(number) = cx.recv().await {
        assert!(number > 0, "bomb");
    }
}

#[test]
fn the_busiest_actors_are_listed_first_and_their_incarnations_are_counted() {
    crate::support::keep_bombs_quiet();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let restarts = greenroom::supervise::Restarts::on_fault;
    let spawn = |name: &str| {
        let actor = actor(restartable).restart(restarts());
        actor.name(name).on(&runtime).spawn()
    };
    let actors = ["a", "b", "c"].map(spawn);
    runtime.run_until_quiescent();
    actors[2].tell(0).unwrap();
    runtime.run_until_quiescent();
    let held = hold(&runtime);
    for _ in 0..3 {
        actors[1].tell(1).unwrap();
    }
    let listed = |limit| {
        let actors = runtime.actors(limit).into_iter();
        let parts = actors.map(|it| (it.task.called().into_owned(), it.mailbox, it.incarnation));
        parts.collect::<Vec<_>>()
    };
    let all = [("b", 3, 0), ("a", 0, 0), ("c", 0, 1)];
    let all = all.map(|(name, mailbox, incarnation)| (name.to_owned(), mailbox, incarnation));
    assert_eq!(listed(9), all);
    assert_eq!(listed(2), all[..2]);
    assert!(listed(0).is_empty());
    held.open();
    runtime.run_until_quiescent();
}
