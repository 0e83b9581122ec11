//! Where loopers run: on which runtime and policy, and who may use them from where.

use super::*;

use std::hash::{DefaultHasher, Hash, Hasher};

use greenroom::policy::{Prioritized, Sharing};

use crate::support::{MANY_HAND_OVERS, drive, hand_over, inside};

/// Uses loopers, locks and the world of a controller on this runtime, from this thread.
fn works_on(runtime: &Runtime) {
    let builder = Controller::builder().on(runtime).lanes(2);
    let controller = builder.build().unwrap();
    let value = controller.guarded(0);
    let posted = (0..20).map(|_| {
        let looper = controller.looper();
        let task = looper
            .with(value.exclusive())
            .spawn(|mut value| async move {
                yield_now().await;
                *value += 1;
            });
        task.unwrap()
    });
    let posted: Vec<_> = posted.collect();
    posted.into_iter().for_each(|posted| drive(posted).unwrap());
    let seen = value.clone();
    let world = controller.stop_the_world(move |world| *world.get(&seen).unwrap());
    assert_eq!(drive(world.unwrap()).unwrap(), 20);
    drive(controller.shutdown());
}

#[test]
fn any_policy_runs_the_lanes() {
    within(WATCH, || {
        let workers = |workers| Runtime::builder().workers(workers);
        for number in [1, 2, 4] {
            works_on(&workers(number).build().unwrap());
            works_on(&workers(number).policy(Sharing::default()).build().unwrap());
            works_on(
                &workers(number)
                    .policy(Prioritized::default())
                    .build()
                    .unwrap(),
            );
        }
    });
}

#[test]
fn a_controller_runs_on_the_runtime_that_it_was_given() {
    within(WATCH, || {
        let named = |name| {
            Runtime::builder()
                .workers(1)
                .thread_name(name)
                .build()
                .unwrap()
        };
        let (one, two) = (named("one"), named("two"));
        let thread = || std::thread::current().name().map(str::to_owned);
        let controllers = inside(&one, || {
            let current = Controller::builder().build().unwrap();
            (current, Controller::builder().on(&two).build().unwrap())
        });
        let on = |controller: &Controller| {
            let name = drive(controller.looper().post(thread).unwrap()).unwrap();
            name.unwrap_or_default()
        };
        assert!(on(&controllers.0).starts_with("one"));
        assert!(on(&controllers.1).starts_with("two"));
    });
}

#[test]
fn an_idle_controller_wakes_nothing_and_lets_its_runtime_be_quiescent() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let controller = Controller::builder().on(&runtime).build().unwrap();
        let (looper, lock) = (controller.looper(), controller.lock());
        drive(looper.post(|| ()).unwrap()).unwrap();
        let keep = looper.with(lock.exclusive().keep());
        drive(keep.post(|()| ()).unwrap()).unwrap();
        let waits = controller.looper().with(lock.shared()).post(|()| ());
        drive(runtime.quiescent());
        let runs = || {
            runtime
                .stats()
                .workers
                .iter()
                .map(|it| it.runs)
                .sum::<u64>()
        };
        let before = runs();
        hand_over(MANY_HAND_OVERS);
        assert_eq!(runs(), before);
        looper.unlock(&lock).unwrap();
        drive(waits.unwrap()).unwrap();
    });
}

#[test]
fn loopers_serve_pinned_tasks_detached_actors_and_blocking_calls() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let controller = Controller::builder().on(&runtime).build().unwrap();
        let looper = controller.looper();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let own = looper.clone();
        let task = pinned.spawn(move || async move { own.post(|| 1).unwrap().await.unwrap() });
        assert_eq!(drive(task), 1);
        let own = looper.clone();
        let blocks = greenroom::unblock(move || drive(own.post(|| 2).unwrap()).unwrap());
        assert_eq!(runtime.block_on(blocks), 2);
        let other = Runtime::builder().workers(1).build().unwrap();
        let own = looper.clone();
        let task = other.spawn(async move { own.post(|| 3).unwrap().await.unwrap() });
        assert_eq!(drive(task), 3);
        let thread = std::thread::spawn(move || drive(looper.post(|| 4).unwrap()).unwrap());
        assert_eq!(thread.join().unwrap(), 4);
    });
}

#[test]
fn the_current_task_is_the_one_that_runs_here_and_not_one_to_which_it_lends_its_thread() {
    on_threads(async {
        let builder = Controller::builder().lanes(1).priorities(3);
        let controller = builder.build().unwrap();
        let looper = controller.looper_named("outer");
        let inner = controller.looper_named("inner");
        let name = || looper::current()?.looper()?.name().map(str::to_owned);
        let task = looper.priority(2).post(move || {
            let before = name();
            let runtime = Runtime::current();
            // Its own future is a part of the task. What runs meanwhile is not.
            let within = runtime.block_on(async move { name() });
            let beside = runtime.block_on(runtime.spawn(async move { name() }));
            let priority = looper::current().map(|current| current.priority());
            (before, within, beside, name(), priority)
        });
        let own = Some("outer".to_owned());
        let (before, within, beside, after, priority) = task.unwrap().await.unwrap();
        assert_eq!((&before, &within, &after), (&own, &own, &own));
        assert_eq!((beside, priority), (None, Some(2)));
        let task = inner.spawn(async move {
            let before = name();
            yield_now().await;
            (before, name())
        });
        let inner = Some("inner".to_owned());
        assert_eq!(task.unwrap().await.unwrap(), (inner.clone(), inner));
        assert!(looper::current().is_none());
    });
}

#[test]
fn a_task_reaches_the_controller_that_runs_it_also_when_no_other_handle_is_left() {
    everywhere(|| async {
        let (one, two) = (controller(1), controller(1));
        let (looper, other) = (one.looper(), two.looper());
        let counts = || looper::current().unwrap().controller().status().loopers;
        let more = one.looper();
        assert_eq!(looper.post(counts).unwrap().await.unwrap(), 2);
        assert_eq!(other.post(counts).unwrap().await.unwrap(), 1);
        let world = one.stop_the_world(move |_| counts()).unwrap();
        assert_eq!(world.await.unwrap(), 2);
        drop((one, more));
        let controller = || looper::current().unwrap().controller();
        let again = looper.post(controller).unwrap().await.unwrap();
        // Each of its handles keeps the controller open.
        let twin = looper.post(controller).unwrap().await.unwrap();
        drop(looper);
        drop(again);
        assert_eq!(twin.looper().post(|| 5).unwrap().await.unwrap(), 5);
        // The last one closes it, when no looper is left.
        let last = twin.looper();
        drop(twin);
        let held = hold(&last).await;
        let shut = last.post(controller).unwrap();
        drop(last);
        held.end().await;
        assert!(shut.await.unwrap().looper().is_closed());
    });
}

#[test]
fn a_task_that_was_posted_tells_its_priority() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let held = hold(&looper).await;
        assert_eq!(held.posted.priority(), 0);
        let current = || looper::current().unwrap().priority();
        let posted = looper.priority(3).post(current).unwrap();
        let future = looper.priority(2).spawn(async move { current() }).unwrap();
        let world = controller.stop_the_world(move |_| current()).unwrap();
        let all = [posted, future, world];
        let told = all.each_ref().map(Posted::priority);
        assert_eq!(told, [3, 2, 0]);
        held.end().await;
        for (posted, told) in all.into_iter().zip(told) {
            assert_eq!(posted.await.unwrap(), told);
        }
    });
}

#[test]
fn handles_of_the_same_thing_are_clones() {
    everywhere(|| async {
        let hash = |looper: &Looper| {
            let mut hasher = DefaultHasher::new();
            looper.hash(&mut hasher);
            hasher.finish()
        };
        let controller = controller(1);
        let twin = controller.clone();
        let (looper, other) = (controller.looper(), twin.looper());
        assert!(looper == looper.clone() && looper != other);
        assert_eq!(hash(&looper), hash(&looper.clone()));
        let (lock, value) = (controller.lock_named("lock"), twin.guarded(1));
        assert_eq!(
            (lock.clone().id(), lock.clone().name()),
            (lock.id(), Some("lock"))
        );
        assert_eq!(value.clone().id(), value.id());
        let ids = [looper.id(), other.id(), lock.id(), value.id()];
        assert!(ids.is_sorted_by(|one, two| one < two), "{ids:?}");
        assert_eq!(looper.attempt(value.clone().shared()), Ok(true));
        looper.clone().unlock(&value).unwrap();
        assert_eq!(twin.status().loopers, 2);
    });
}

#[test]
fn the_state_of_a_controller_can_be_asked_for() {
    everywhere(|| async {
        let controller = controller(1);
        let loopers = [(); 4].map(|()| controller.looper());
        let [keeps, waits, holds, ready] = &loopers;
        let lock = controller.lock();
        assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
        let waiting = waits.with(lock.shared()).post(|()| ()).unwrap();
        let held = hold(holds).await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        let halted = ready.post(|| ()).unwrap();
        wait_for(|| controller.status().running == 0).await;
        let stats = controller.status();
        assert_eq!((stats.loopers, stats.ready, stats.running), (4, 1, 0));
        assert_eq!((stats.waiting, stats.locks_held), (1, 1));
        assert!(stats.is_world_stopped);
        held.end().await;
        world.await.unwrap();
        halted.await.unwrap();
        keeps.unlock(&lock).unwrap();
        waiting.await.unwrap();
    });
}
