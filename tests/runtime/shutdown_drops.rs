//! Unfinished futures at a shutdown: each is dropped once, and on the right thread.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use greenroom::{Context, Reply, Runtime, actor, spawn};

use crate::support::{
    Bomb, DEEP, Drops, Gate, Home, WATCH, drive, in_every_home, poll_here, within,
};

in_every_home!(
    every_unfinished_future_is_dropped_once,
    actors_are_dropped_once_with_all_their_messages,
    tasks_that_hold_each_others_handles_are_dropped,
    tasks_that_hold_each_others_wakers_are_dropped,
    a_long_chain_of_tasks_is_dropped_without_recursion,
    futures_whose_drop_panics_do_not_prevent_other_drops,
    a_drop_during_a_shutdown_may_send_ask_spawn_and_lock,
);

fn every_unfinished_future_is_dropped_once(home: &Home) {
    let drops = Drops::default();
    let never = Gate::default();
    let mut kept = Vec::new();
    // Tasks that wait for each kind of event and have begun, the busy ones last ...
    for kind in 0..60 {
        let (dropped, waits) = (drops.one(), never.clone());
        let mut task = home.spawn_task(async move {
            let _dropped = dropped;
            match kind / 10 {
                0 => waits.wait().await,
                1 => greenroom::time::sleep(Duration::from_secs(1_000_000)).await,
                2 => std::future::pending().await,
                3 => drop(
                    greenroom::spawn(std::future::pending::<()>())
                        .fallible()
                        .await,
                ),
                4 => drop(
                    spawn!(|_cx: Context<()>| std::future::pending::<()>())
                        .join()
                        .await,
                ),
                _ => loop {
                    greenroom::yield_now().await;
                },
            }
        });
        home.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
        if kind % 2 == 0 {
            task.detach()
        } else {
            kept.push(task)
        }
    }
    // ... and tasks that are about to begin.
    let held = home.hold();
    for _ in 0..40 {
        let dropped = drops.one();
        home.spawn_task(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        })
        .detach();
    }
    drop(held);
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 100);
    never.open();
    drop(kept);
    assert_eq!(drops.count(), 100);
}

fn actors_are_dropped_once_with_all_their_messages(home: &Home) {
    let drops = Drops::default();
    let actors: Vec<_> = (0..10)
        .map(|_| {
            let state = drops.one();
            home.spawn(actor(
                |mut cx: Context<crate::support::Dropped>| async move {
                    let _state = state;
                    let _first = cx.recv().await;
                    std::future::pending::<()>().await;
                },
            ))
        })
        .collect();
    for actor in &actors {
        (0..9).for_each(|_| actor.tell(drops.one()).unwrap());
    }
    let runtime = home.runtime.clone();
    // They are killed, so the shutdown does not wait for them.
    let mut shutdown = Box::pin(runtime.shutdown());
    actors.iter().for_each(|actor| actor.kill());
    assert_eq!(drive(&mut shutdown).left_behind, 0);
    assert_eq!(drops.count(), 100);
}

fn tasks_that_hold_each_others_handles_are_dropped(home: &Home) {
    let drops = Drops::default();
    type Shelf = Arc<Mutex<Option<greenroom::Task<()>>>>;
    let shelves: [Shelf; 2] = Default::default();
    for (own, other) in [(0, 1), (1, 0)] {
        let (dropped, held) = (drops.one(), shelves[other].clone());
        let task = home.spawn_task(async move {
            let _dropped = (dropped, held);
            std::future::pending::<()>().await;
        });
        *shelves[own].lock().unwrap() = Some(task);
    }
    drop(shelves);
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 2);
}

fn tasks_that_hold_each_others_wakers_are_dropped(home: &Home) {
    let drops = Drops::default();
    let gates = [Gate::default(), Gate::default()];
    for (own, other) in [(0, 1), (1, 0)] {
        // The gate that the task waits for holds its waker, and the other task holds that gate.
        let (dropped, waits, held) = (drops.one(), gates[own].clone(), gates[other].clone());
        let mut task = home.spawn_task(async move {
            let _dropped = (dropped, crate::support::OpenOnDrop(held));
            waits.wait().await;
        });
        home.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
        task.detach();
    }
    drop(gates);
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 2);
}

fn a_long_chain_of_tasks_is_dropped_without_recursion(home: &Home) {
    let links = home.many(DEEP).max(2_000);
    let drops = Drops::default();
    // Each task holds the only handle of the previous one, and cancels it when it is dropped.
    let mut previous: Option<greenroom::Task<()>> = None;
    for _ in 0..links {
        let held = (drops.one(), previous.take());
        previous = Some(home.spawn_task(async move {
            let _held = held;
            std::future::pending::<()>().await;
        }));
    }
    previous.unwrap().detach();
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), links);
}

fn futures_whose_drop_panics_do_not_prevent_other_drops(home: &Home) {
    let drops = Drops::default();
    let mut kept = Vec::new();
    for n in 0..100 {
        let bomb = Bomb::new(n % 3 == 0, &drops);
        let waits = async move {
            let _bomb = bomb;
            std::future::pending::<()>().await;
        };
        if n % 2 == 0 {
            home.spawn_task(waits).detach();
        } else {
            // The address is kept, so that the shutdown finds the actor. The actor does not end
            // when it is stopped, so it is killed during the shutdown.
            let handle = home.spawn(actor(|_cx: Context<()>| waits));
            let address = handle.address();
            home.spawn(actor(|mut cx: Context<()>| async move {
                while cx.recv().await.is_some() {}
                address.kill();
            }))
            .detach();
            kept.push(handle);
        }
    }
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 100);
    drop(kept);
}

/// A value that uses everything a drop may use. None of it may hang, panic or be lost.
struct Busy {
    listener: greenroom::Address<Word>,
    lock: Arc<Mutex<usize>>,
    _dropped: crate::support::Dropped,
}

enum Word {
    Said(#[expect(dead_code, reason = "counted by its drop")] crate::support::Dropped),
    Asked(Reply<u32>),
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.lock.lock().unwrap() += 1;
        let dropped = Drops::default();
        let told = self.listener.tell(Word::Said(dropped.one()));
        if let Err(refused) = told {
            assert!(refused.is_closed());
            drop(refused.into_inner());
            assert_eq!(dropped.count(), 1);
        }
        let mut ask = Box::pin(self.listener.ask(Word::Asked));
        let _ = crate::support::poll_once(&mut ask);
        let runtime = Runtime::try_current()
            .expect("the task's runtime is current while the task is dropped");
        runtime.spawn(async {}).detach();
        drop(spawn!(|_cx: Context<()>| async {}));
        drop(runtime.spawn_pinned("late"));
        greenroom::unblock(|| {}).detach();
        drop(Box::pin(greenroom::time::sleep(Duration::from_millis(1))));
        *self.lock.lock().unwrap() += 1;
    }
}

fn a_drop_during_a_shutdown_may_send_ask_spawn_and_lock(home: &Home) {
    let drops = Drops::default();
    let lock = Arc::new(Mutex::new(0));
    let listener = home.spawn(actor(|mut cx: Context<Word>| async move {
        let mut asked = 0;
        while let Some(word) = cx.recv().await {
            if let Word::Asked(reply) = word {
                asked += 1;
                reply.send(asked);
            }
        }
    }));
    let busy = || Busy {
        listener: listener.address(),
        lock: lock.clone(),
        _dropped: drops.one(),
    };
    for n in 0..30 {
        let busy = busy();
        match n % 3 {
            // In a plain task, begun or not; in an actor; in a message that is never received.
            0 => home
                .spawn_task(async move {
                    let _busy = busy;
                    std::future::pending::<()>().await;
                })
                .detach(),
            1 => {
                home.spawn(actor(|mut cx: Context<()>| async move {
                    let _busy = busy;
                    while cx.recv().await.is_some() {}
                }))
                .detach();
            }
            _ => {
                let deaf = home.spawn(actor(|cx: Context<Busy>| async move {
                    let _cx = cx;
                    greenroom::yield_now().await;
                }));
                // Refused if the actor was faster; the drop of the message needs a current runtime
                // too.
                if let Err(refused) = deaf.tell(busy) {
                    home.block_on(async { drop(refused.into_inner()) });
                }
            }
        }
    }
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 30);
    assert_eq!(*lock.lock().unwrap(), 60);
    drive(listener.join()).unwrap();
}

/// A value that records on which thread it was dropped.
struct DroppedOn(Arc<Mutex<Vec<ThreadId>>>);

impl Drop for DroppedOn {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(std::thread::current().id());
    }
}

#[test]
fn pinned_tasks_actors_and_values_are_dropped_on_their_own_thread() {
    within(WATCH, || {
        let threads = Arc::new(Mutex::new(Vec::new()));
        let builder = Runtime::builder()
            .workers(2)
            .grace(Duration::from_millis(10));
        let runtime = builder.build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let own = drive(pinned.spawn(|| async { std::thread::current().id() }));
        let local = |threads: &Arc<Mutex<Vec<ThreadId>>>| {
            let threads = threads.clone();
            // Made on the thread, and `!Send`.
            move || Rc::new(DroppedOn(threads))
        };
        let never = Gate::default();
        // A task that waits, a task that is always busy, an actor, a hosted value, a deadline.
        let (make, waits) = (local(&threads), never.clone());
        let task = pinned.spawn(move || async move {
            let _local = make();
            waits.wait().await;
        });
        let make = local(&threads);
        pinned
            .spawn(move || async move {
                let _local = make();
                loop {
                    greenroom::yield_now().await;
                }
            })
            .detach();
        let make = local(&threads);
        let actor = spawn!(
            |cx: Context<()>| async move {
                let _local = (make(), cx);
                std::future::pending::<()>().await;
            },
            on = &pinned
        );
        let hosted = drive(pinned.host(local(&threads))).unwrap();
        let make = local(&threads);
        pinned
            .spawn(move || async move {
                let _local = make();
                greenroom::time::sleep(Duration::from_secs(1_000_000)).await;
            })
            .detach();
        // All have begun when this task has had its turn.
        drive(pinned.spawn(|| async {}));
        let report = drive(runtime.shutdown());
        assert_eq!((report.cancelled, report.left_behind), (1, 0));
        assert_eq!(*threads.lock().unwrap(), [own; 5]);
        never.open();
        drop((task, actor, hosted, pinned, runtime));
        assert_eq!(threads.lock().unwrap().len(), 5);
    });
}

#[test]
fn a_pinned_task_cancelled_by_another_thread_is_dropped_on_its_own() {
    within(WATCH, || {
        let threads = Arc::new(Mutex::new(Vec::new()));
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let own = drive(pinned.spawn(|| async { std::thread::current().id() }));
        let on_drop = threads.clone();
        let task = pinned.spawn(move || async move {
            let _local = Rc::new(DroppedOn(on_drop));
            std::future::pending::<()>().await;
        });
        drive(pinned.spawn(|| async {}));
        assert_eq!(drive(task.cancel()), None);
        let on_drop = threads.clone();
        let actor = spawn!(
            |_cx: Context<()>| async move {
                let _local = Rc::new(DroppedOn(on_drop));
                std::future::pending::<()>().await;
            },
            on = &pinned
        );
        drive(pinned.spawn(|| async {}));
        actor.kill();
        drive(actor.closed());
        assert_eq!(*threads.lock().unwrap(), [own; 2]);
    });
}

#[test]
fn a_pinned_task_that_never_began_is_dropped_once() {
    within(WATCH, || {
        let drops = Drops::default();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        drive(runtime.shutdown());
        for _ in 0..10 {
            let dropped = drops.one();
            let task = pinned.spawn(move || async move { drop(dropped) });
            assert!(drive(task.fallible()).is_none());
        }
        assert_eq!(drops.count(), 10);
    });
}

#[test]
fn all_tasks_are_dropped_with_the_last_clone() {
    within(WATCH, || {
        for round in 0..200 {
            let drops = Drops::default();
            let home = if round % 3 == 2 {
                Home::pinned()
            } else {
                Home::workers(1 + round % 3)
            };
            for n in 0..20 {
                let dropped = drops.one();
                home.spawn_task(async move {
                    let _dropped = dropped;
                    for _ in 0..n {
                        greenroom::yield_now().await;
                    }
                    if n % 2 == 0 {
                        std::future::pending::<()>().await;
                    }
                })
                .detach();
            }
            drop(home);
            assert_eq!(drops.count(), 20, "round {round}");
        }
    });
}
