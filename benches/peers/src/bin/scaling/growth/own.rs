//! The items that only greenroom has: names, members of groups, children and watchers.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use greenroom::registry::{Group, Name};
use greenroom::supervise::Supervisor;
use greenroom::{Address, Context, Fault, SourceGuard, actor};

use super::both::{counts, places};
use super::meter::{Meter, count_one, counted, counting_waker};
use crate::way::{Greenroom, Way};

/// Longer than any stop.
const GRACE: Duration = Duration::from_secs(3600);

/// Spawns actors that count their starts, messages and ends. Waits until all have started.
async fn rest(count: usize) -> Vec<Option<Address<u64>>> {
    let mut actors = places(count);
    actors.fill_with(|| Some(Greenroom::actor(counts::<Greenroom>)));
    counted(count).await;
    actors
}

fn held<T>(place: &Option<T>) -> &T {
    place.as_ref().expect("it is held")
}

/// Drops the addresses, and waits until their actors have ended.
async fn end(actors: &mut [Option<Address<u64>>], order: &[usize]) {
    order.iter().for_each(|&at| actors[at] = None);
    counted(actors.len()).await;
}

/// Registers actors, looks them up and unregisters them. Registers them again, and lets them end.
pub async fn names(meter: &mut Meter) {
    let (order, count) = (meter.order(), meter.count());
    let name = |n| Name::<u64>::owned(format!("actor {n}"));
    let names: Vec<_> = (0..count).map(name).collect();
    while meter.next_lap() {
        let mut actors = rest(count).await;
        let register = || {
            for (name, actor) in names.iter().zip(&actors) {
                name.register(held(actor)).expect("it is free");
            }
        };
        meter.start_to_create();
        register();
        meter.created("register");
        meter.start();
        for &at in &order {
            names[at].get().expect("it is registered");
        }
        meter.end("look up");
        meter.start();
        order.iter().for_each(|&at| assert!(names[at].unregister()));
        meter.end("unregister");
        register();
        meter.start();
        end(&mut actors, &order).await;
        meter.end("end of its actor");
        assert!(names.iter().all(|name| name.get().is_err()));
    }
}

/// Lets actors join a group, receive its messages and leave it. Lets them join again and end.
pub async fn members(meter: &mut Meter) {
    const GROUP: Group<u64> = Group::new("group");
    let (order, count) = (meter.order(), meter.count());
    while meter.next_lap() {
        let mut actors = rest(count).await;
        let join = || {
            for actor in &actors {
                GROUP.join(held(actor)).expect("it is open");
            }
        };
        meter.start_to_create();
        join();
        meter.created("join");
        meter.start();
        assert_eq!(GROUP.broadcast(1).sent, count);
        counted(count).await;
        meter.end("broadcast");
        meter.start();
        for _ in 0..count {
            GROUP.next().expect("it has members");
        }
        meter.end("next");
        meter.start();
        order
            .iter()
            .for_each(|&at| assert!(GROUP.leave(held(&actors[at]))));
        meter.end("leave");
        join();
        meter.start();
        end(&mut actors, &order).await;
        meter.end("end of its actor");
        assert!(GROUP.members().is_empty());
    }
}

/// Adopts actors, lists them, and receives their results.
pub async fn children(meter: &mut Meter) {
    let own = meter.taken();
    let parent = actor(async |mut cx: Context<Result<(), Fault>>| {
        let mut own = own;
        let (order, count) = (own.order(), own.count());
        while own.next_lap() {
            let mut handles = places(count);
            handles.fill_with(|| {
                Some(
                    actor(
                        async |mut cx: Context<u64>| {
                            while cx.recv().await.is_some() {}
                        },
                    )
                    .spawn(),
                )
            });
            let addresses: Vec<_> = handles.iter().map(|child| held(child).address()).collect();
            greenroom::yield_now().await;
            own.start_to_create();
            for child in &mut handles {
                cx.adopt(child.take().expect("it is held"), |result| result);
            }
            settle(&mut cx).await;
            own.created("adopt");
            own.start();
            assert_eq!(cx.children().len(), count);
            own.end("list");
            own.start();
            order.iter().for_each(|&at| addresses[at].stop());
            for _ in 0..count {
                cx.recv().await.expect("its result").expect("no fault");
            }
            own.end("end");
            assert_eq!(cx.children().len(), 0);
        }
        own
    });
    *meter = parent.spawn().join().await.expect("no fault");
}

/// Counts its begin, and its end if that is not a restart.
async fn supervised_child(mut cx: Context<u64>) {
    count_one();
    while cx.recv().await.is_some() {}
    count_one();
}

/// Starts actors under a supervisor, restarts and stops each one. Starts them again, and stops all.
pub async fn supervised(meter: &mut Meter) {
    let (order, count) = (meter.order(), meter.count());
    while meter.next_lap() {
        let supervisor = Supervisor::builder()
            .grace(GRACE)
            .spawn()
            .expect("a runtime");
        let start = || {
            let start = || supervisor.start(actor(supervised_child));
            let started = (0..count).map(|_| start().expect("it does not stop"));
            started.collect::<Vec<_>>()
        };
        meter.start_to_create();
        let children = start();
        counted(count).await;
        meter.created("start");
        meter.start();
        for &at in &order {
            supervisor.restart(&children[at]).expect("a child");
        }
        counted(count).await;
        meter.end("restart");
        meter.start();
        for &at in &order {
            supervisor.stop_child(&children[at]).expect("a child");
        }
        counted(count).await;
        while !supervisor.children().is_empty() {
            greenroom::yield_now().await;
        }
        meter.end("stop");
        let _children = start();
        counted(count).await;
        meter.start();
        supervisor.stop();
        supervisor.join().await.expect("it did not give up");
        meter.end("stop of the tree");
        counted(count).await;
    }
}

/// Lets tasks wait for the end of one actor: all of them leave, and others see the end.
pub async fn watchers(meter: &mut Meter) {
    let (order, count) = (meter.order(), meter.count());
    let waker = counting_waker();
    while meter.next_lap() {
        let watched = rest(1).await.pop().flatten().expect("it was spawned");
        let watch = |held: &mut Vec<_>| {
            held.fill_with(|| {
                let mut watcher = Box::pin(watched.ended());
                let task = &mut TaskContext::from_waker(&waker);
                assert!(watcher.as_mut().poll(task).is_pending());
                Some(watcher)
            });
        };
        let mut held = places(count);
        meter.start_to_create();
        watch(&mut held);
        meter.created("watch");
        meter.start();
        order.iter().for_each(|&at| held[at] = None);
        meter.end("leave");
        watch(&mut held);
        meter.start();
        watched.stop();
        // The actor counts its end, too.
        counted(count + 1).await;
        for watcher in held.iter_mut().flatten() {
            let task = &mut TaskContext::from_waker(&waker);
            assert!(watcher.as_mut().poll(task).is_ready());
        }
        drop(held);
        meter.end("see the end");
    }
}

/// Lets one actor watch another one many times: all watches leave, and others see the end.
pub async fn watches(meter: &mut Meter) {
    let own = meter.taken();
    let watcher = actor(async |mut cx: Context<u64>| {
        let mut own = own;
        let (order, count) = (own.order(), own.count());
        let _open = cx.address();
        while own.next_lap() {
            let watched = actor(async |mut cx: Context<u64>| cx.recv().await)
                .spawn()
                .address();
            greenroom::yield_now().await;
            own.start_to_create();
            let mut held = watch(&mut cx, &watched, count).await;
            own.created("watch");
            own.start();
            order.iter().for_each(|&at| held[at] = None);
            settle(&mut cx).await;
            own.end("leave");
            let held = watch(&mut cx, &watched, count).await;
            own.start();
            watched.stop();
            for _ in 0..count {
                cx.recv().await.expect("it is open");
            }
            own.end("see the end");
            drop(held);
        }
        own
    });
    *meter = watcher.spawn().join().await.expect("no fault");
}

async fn watch(
    cx: &mut Context<u64>,
    watched: &Address<u64>,
    count: usize,
) -> Vec<Option<SourceGuard>> {
    let mut held = places(count);
    held.fill_with(|| Some(cx.watch(watched, |_| 1)));
    settle(cx).await;
    held
}

/// Lets an actor look at its sources until it waits for all of them.
async fn settle<M: Send + 'static>(cx: &mut Context<M>) {
    poll_fn(|task| {
        assert!(Pin::new(&mut cx.recv()).poll(task).is_pending());
        Poll::Ready(())
    })
    .await;
}
