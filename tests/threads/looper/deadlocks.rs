//! Waits that would never end: which ones are refused, and how they are named.

use super::*;

use crate::support::{open_when_pending, poll_here};

/// Lets a task of the looper await this.
async fn awaits<R: Send + 'static>(looper: &Looper, posted: Posted<R>) -> Posted<R> {
    let waits = Gate::default();
    let awaited = open_when_pending(waits.clone(), posted);
    let awaiting = looper.spawn(async move { awaited.await.unwrap() });
    waits.wait().await;
    awaiting.unwrap()
}

#[test]
fn a_lock_of_which_the_other_holds_the_next_is_refused_with_the_cycle() {
    everywhere(|| async {
        let controller = controller(2);
        let (teller, clerk) = (
            controller.looper_named("teller"),
            controller.looper_named("clerk"),
        );
        let accounts = controller.guarded_named("accounts", 1);
        let log = controller.guarded_named("log", 2);
        assert_eq!(teller.attempt(accounts.exclusive()), Ok(true));
        assert_eq!(clerk.attempt(log.exclusive()), Ok(true));
        let waits = teller.with(log.shared()).post(|log| *log).unwrap();
        let closes = clerk.with(accounts.shared()).post(|it| *it).unwrap();
        assert_eq!(
            deadlock(closes.await),
            "clerk waits for accounts, held by teller, which waits for log, held by clerk"
        );
        clerk.unlock(&log).unwrap();
        assert_eq!(waits.await.unwrap(), 2);
    });
}

#[test]
fn the_world_is_refused_while_a_begun_task_awaits_one_that_has_not_begun() {
    everywhere(|| async {
        let controller = controller(2);
        let asks = controller.looper_named("asks");
        let (asked, keeps) = (controller.looper_named("asked"), controller.looper());
        let cycle = "the world waits for asks, which waits for the world";
        // One that waits for its lock.
        let lock = controller.lock();
        assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
        let waits = asked.with(lock.shared()).post(|()| 1).unwrap();
        let awaiting = awaits(&asks, waits).await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        assert_eq!(deadlock(world.await), cycle);
        keeps.unlock(&lock).unwrap();
        assert_eq!(awaiting.await.unwrap(), 1);
        // One that waits for its turn.
        let before = hold(&asked).await;
        let awaiting = awaits(&asks, asked.post(|| 2).unwrap()).await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        assert_eq!(deadlock(world.await), cycle);
        before.end().await;
        assert_eq!(awaiting.await.unwrap(), 2);
        // For one that has begun the world waits as well.
        let (begun, until) = (Gate::default(), Gate::default());
        let (begins, ends) = (begun.clone(), until.clone());
        let begun_task = asked.spawn(async move {
            begins.open();
            ends.wait().await;
            3
        });
        begun.wait().await;
        let awaiting = awaits(&asks, begun_task.unwrap()).await;
        let world = controller.stop_the_world(|_| 4).unwrap();
        until.open();
        assert_eq!((awaiting.await.unwrap(), world.await.unwrap()), (3, 4));
    });
}

#[test]
fn a_result_that_an_earlier_task_has_polled_is_a_wait_of_the_task_that_awaits_it() {
    everywhere(|| async {
        let controller = controller(2);
        let [polls, posts] = ["polls", "posts"].map(|name| controller.looper_named(name));
        let lock = controller.lock_named("lock");
        let held = hold(&posts).await;
        let mut waits = posts.with(lock.shared()).post(|()| 1).unwrap();
        let first = polls.spawn(async move {
            assert!(poll_here(&mut waits).await.is_pending());
            Some(waits)
        });
        let waits = first.unwrap().await.unwrap().unwrap();
        assert_eq!(polls.attempt(lock.exclusive()), Ok(true));
        held.end().await;
        wait_for(|| controller.status().waiting == 1).await;
        let second = polls.spawn(async move { deadlock(waits.await) });
        assert_eq!(
            second.unwrap().await.unwrap(),
            "polls waits for a task of posts, which waits for lock, held by polls"
        );
    });
}

#[test]
fn a_looper_may_wait_for_the_one_that_awaits_an_earlier_task_of_it() {
    everywhere(|| async {
        let controller = controller(2);
        let (asks, asked) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let first = hold(&asked).await;
        let second = asked.with(value.exclusive()).post(|own| *own += 1).unwrap();
        let begun = Gate::default();
        let begins = begun.clone();
        let awaiting = asks.with(value.exclusive()).spawn(|mut own| async move {
            begins.open();
            *own = 5;
            first.end().await;
        });
        begun.wait().await;
        awaiting.unwrap().await.unwrap();
        second.await.unwrap();
        let read = asks.with(value.shared()).post(|own| *own).unwrap();
        assert_eq!(read.await.unwrap(), 6);
    });
}

#[test]
fn a_result_that_was_polled_and_passed_on_is_no_wait_of_the_first() {
    everywhere(|| async {
        let controller = controller(2);
        let (polls, posts) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let held = hold(&posts).await;
        let read = posts.with(value.shared()).post(|own| *own).unwrap();
        let (gives, given) = futures::channel::oneshot::channel();
        let (polled, until) = (Gate::default(), Gate::default());
        let (here, ends) = (polled.clone(), until.clone());
        let first = polls.with(value.exclusive()).spawn(|own| async move {
            let (mut read, _own) = (read, own);
            assert!(poll_here(&mut read).await.is_pending());
            drop(gives.send(read));
            here.open();
            ends.wait().await;
        });
        polled.wait().await;
        let mut read = given.await.unwrap();
        assert!(poll_here(&mut read).await.is_pending());
        held.end().await;
        wait_for(|| controller.status().waiting == 1 || read.is_finished()).await;
        until.open();
        assert_eq!(read.await.unwrap(), 1);
        first.unwrap().await.unwrap();
    });
}

#[test]
fn a_wait_behind_a_request_that_waits_for_the_looper_is_refused() {
    everywhere(|| async {
        let controller = controller(1);
        let [reads, writes, behind] =
            ["reads", "writes", "behind"].map(|name| controller.looper_named(name));
        let (first, second) = (
            controller.lock_named("first"),
            controller.lock_named("second"),
        );
        assert_eq!(reads.attempt(first.shared()), Ok(true));
        assert_eq!(behind.attempt(second.exclusive()), Ok(true));
        let write = writes.with(first.exclusive()).post(|()| 1).unwrap();
        let waits = behind.with(first.shared()).post(|()| 2).unwrap();
        // Only the request before it keeps the shared one waiting.
        let closes = reads.with(second.shared()).post(|()| 3).unwrap();
        let text = deadlock(closes.await);
        assert!(
            text.starts_with("reads waits for second, held by behind, which waits for first, "),
            "{text}"
        );
        reads.unlock(&first).unwrap();
        assert_eq!((write.await.unwrap(), waits.await.unwrap()), (1, 2));
    });
}

#[test]
fn a_task_may_not_await_one_that_waits_for_the_world_that_waits_for_the_task() {
    everywhere(|| async {
        let controller = controller(2);
        let (asks, asked) = (
            controller.looper_named("asks"),
            controller.looper_named("asked"),
        );
        let (begun, goes_on) = (Gate::default(), Gate::default());
        let (begins, waits) = (begun.clone(), goes_on.clone());
        let task = asks.spawn(async move {
            begins.open();
            waits.wait().await;
            deadlock(asked.post(|| 1).unwrap().await)
        });
        begun.wait().await;
        let world = controller.stop_the_world(|_| 2).unwrap();
        goes_on.open();
        let text = task.unwrap().await.unwrap();
        assert_eq!(text, "asks waits for the world, which waits for asks");
        assert_eq!(world.await.unwrap(), 2);
    });
}

#[test]
fn tasks_that_await_each_other_are_refused() {
    everywhere(|| async {
        let controller = controller(2);
        let [one, two] = ["one", "two"].map(|name| controller.looper_named(name));
        let (known, knows) = (Gate::default(), Gate::default());
        let (first_known, second_knows) = (known.clone(), knows.clone());
        let of_one = one.clone();
        let second = two.spawn(async move {
            second_knows.wait().await;
            let posted = of_one.post(|| 1).unwrap();
            let text = open_when_pending(Gate::default(), posted).await;
            first_known.open();
            text.map_err(|error| error.to_string())
        });
        let second = second.unwrap();
        let first = one.spawn(async move {
            let second = open_when_pending(knows, second);
            second.await.unwrap()
        });
        known.wait().await;
        let cycle = "deadlock: two waits for a task of one, which waits for a task of two";
        assert_eq!(first.unwrap().await.unwrap(), Err(cycle.to_owned()));
    });
}

#[test]
fn a_task_may_not_await_one_that_waits_for_its_lock() {
    everywhere(|| async {
        let controller = controller(2);
        let [asks, asked] = ["asks", "asked"].map(|name| controller.looper_named(name));
        let value = controller.guarded_named("value", 1);
        let own = value.clone();
        let task = asks.with(value.exclusive()).spawn(|guard| async move {
            let waits = asked.with(own.shared()).post(|value| *value).unwrap();
            let text = deadlock(waits.await);
            (text, *guard)
        });
        let (text, _) = task.unwrap().await.unwrap();
        let refused = "asks waits for a task of asked, which waits for value, held by asks";
        assert_eq!(text, refused);
    });
}

/// Awaits what always waits for the task that awaits it, in a controller with this option.
fn refuses_at_once(detects: bool) {
    everywhere(move || async move {
        let builder = Controller::builder().detect_deadlocks(detects);
        let controller = builder.lanes(2).build().unwrap();
        let looper = controller.looper_named("own");
        let (own, stops) = (looper.clone(), controller.clone());
        let task = looper.spawn(async move {
            let next = deadlock(own.post(|| 1).unwrap().await);
            let world = deadlock(stops.stop_the_world(|_| 2).unwrap().await);
            (next, world)
        });
        let (next, world) = task.unwrap().await.unwrap();
        assert_eq!(next, "own waits for a task of its own, which waits for own");
        assert_eq!(world, "own waits for the world, which waits for own");
        // Both go on as tasks whose result is not awaited.
        looper.post(|| ()).unwrap().await.unwrap();
        controller.shutdown().await;
    });
}

#[test]
fn a_task_may_not_await_its_own_looper_or_the_world() {
    refuses_at_once(true);
}

#[test]
fn a_task_may_not_await_its_own_looper_or_the_world_in_a_build_without_detection_either() {
    refuses_at_once(false);
}

#[test]
fn a_closure_that_blocks_on_its_own_looper_gets_the_deadlock() {
    on_threads(async {
        let controller = controller(1);
        let looper = controller.looper();
        let own = looper.clone();
        let task = looper.post(move || {
            let next = own.post(|| 1).unwrap();
            deadlock(Runtime::current().block_on(next))
        });
        let text = task.unwrap().await.unwrap();
        let name = format!("looper {}", looper.id());
        assert_eq!(
            text,
            format!("{name} waits for a task of its own, which waits for {name}")
        );
    });
}

#[test]
fn a_result_that_is_there_may_be_awaited_by_every_task() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let earlier = looper.post(|| 1).unwrap();
        let world = controller.stop_the_world(|_| 2).unwrap();
        wait_for(|| earlier.is_finished() && world.is_finished()).await;
        let task = looper.spawn(async { earlier.await.unwrap() + world.await.unwrap() });
        assert_eq!(task.unwrap().await.unwrap(), 3);
    });
}

#[test]
fn the_text_of_a_long_cycle_is_short() {
    everywhere(|| async {
        const LOOPERS: usize = 30;
        let controller = controller(1);
        let loopers: Vec<_> = (0..LOOPERS).map(|_| controller.looper()).collect();
        let locks: Vec<_> = (0..LOOPERS).map(|_| controller.lock()).collect();
        for (looper, lock) in loopers.iter().zip(&locks) {
            assert_eq!(looper.attempt(lock.exclusive()), Ok(true));
        }
        let waits = |at: usize| {
            let lock = &locks[(at + 1) % LOOPERS];
            loopers[at].with(lock.shared()).post(|()| ()).unwrap()
        };
        let open: Vec<_> = (0..LOOPERS - 1).map(waits).collect();
        let text = deadlock(waits(LOOPERS - 1).await);
        assert!(
            text.ends_with("… (14 more)") && text.len() < 2_000,
            "{text}"
        );
        loopers[LOOPERS - 1].unlock(&locks[LOOPERS - 1]).unwrap();
        drop(loopers);
        for posted in open {
            posted.await.unwrap();
        }
    });
}

#[test]
fn without_detection_a_cycle_waits_until_it_is_undone() {
    everywhere(|| async {
        let builder = Controller::builder().detect_deadlocks(false);
        let controller = builder.build().unwrap();
        let (one, two) = (controller.looper(), controller.looper());
        let (left, right) = (controller.lock(), controller.lock());
        assert_eq!(one.attempt(left.exclusive()), Ok(true));
        assert_eq!(two.attempt(right.exclusive()), Ok(true));
        let first = one.with(right.shared()).post(|()| 1).unwrap();
        let second = two.with(left.shared()).post(|()| 2).unwrap();
        assert_eq!(controller.status().waiting, 2);
        assert!(second.cancel());
        two.unlock(&right).unwrap();
        assert_eq!(first.await.unwrap(), 1);
    });
}

#[test]
fn a_simulation_that_is_stuck_on_locks_names_them() {
    within(WATCH, || {
        for seed in 0..SEEDS {
            let failure = Simulated::new(seed).try_run(async {
                let controller = controller(2);
                let [keeps, waits, holds] =
                    ["keeps", "waits", "holds"].map(|name| controller.looper_named(name));
                let lock = controller.lock_named("accounts");
                assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
                let waiting = waits.with(lock.shared()).post(|()| ()).unwrap();
                let held = hold(&holds).await;
                let world = controller.stop_the_world(|_| ()).unwrap();
                waiting.await.unwrap();
                drop((held, world));
            });
            let text = failure.unwrap_err().to_string();
            for line in [
                "  waits waits for accounts, held by keeps\n",
                "  the world waits for holds\n",
            ] {
                assert!(text.contains(line), "{text}");
            }
        }
    });
}
