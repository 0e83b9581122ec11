//! Bugs of other runtimes: values that live too long, end in the wrong order, or never end.
//! `docs/origins.md` lists the sources.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{Either, select};
use greenroom::time::sleep;
use greenroom::{Address, Context, Fault, Runtime, WeakAddress, spawn, yield_now};

use crate::support::{
    Bomb, Drops, Gate, Home, Log, OpenOnDrop, WATCH, drive, elsewhere, in_every_home, on_threads,
    poll_once, until, within,
};

// Uses the threads of another runtime.
on_threads!(the_last_owner_of_a_runtime_may_be_dropped_in_its_own_task);

in_every_home!(
    a_first_message_may_race_with_the_end_of_the_actor,
    late_messages_may_race_with_the_last_address_and_the_end,
    a_dropped_send_drops_its_message_once_and_takes_no_room,
    join_returns_the_first_panic_of_an_actor,
);

/// Waits for messages and for a timer that never fires; holds its own address and that of the
/// previous actor.
async fn linked(
    mut cx: Context<()>,
    before: Option<Address<()>>,
    drops: Drops,
) -> (usize, WeakAddress<()>) {
    let _dropped = drops.one();
    let own = cx.downgrade();
    let _before = before;
    let mut timer = sleep(Duration::from_secs(3600));
    let mut received = 0;
    loop {
        match select(Box::pin(cx.recv()), timer).await {
            Either::Left((Some(()), rest)) => {
                received += 1;
                timer = rest;
            }
            Either::Left((None, _)) => return (received, own),
            Either::Right(_) => unreachable!("the timer does not fire within the test"),
        }
    }
}

#[test]
fn actors_with_links_and_timers_free_all_memory() {
    const CHAIN: usize = 1000;
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        // In a task of the only worker, so that one thread allocates and frees all blocks.
        let grown = drive(runtime.spawn(async {
            let drops = Drops::default();
            let chains = |chains: usize| {
                let drops = drops.clone();
                async move {
                    for _ in 0..chains {
                        let before = drops.count();
                        let mut last = None;
                        for _ in 0..CHAIN {
                            let next = spawn!(linked(_, last.take(), drops.clone()));
                            next.tell(()).unwrap();
                            last = Some(next.address());
                        }
                        yield_now().await;
                        drop(last);
                        while drops.count() < before + CHAIN {
                            yield_now().await;
                        }
                    }
                }
            };
            chains(5).await;
            let base = crate::heap::here().live;
            chains(95).await;
            assert_eq!(drops.count(), 100 * CHAIN);
            crate::heap::here().live - base
        }));
        // With the block cache, other threads reuse blocks that this thread freed, so its count is
        // not exact; tests/memory.rs covers that case.
        assert!(
            crate::heap::caches_blocks() || grown < 64 * 1024,
            "{grown} bytes were not freed"
        );
        let report = drive(runtime.shutdown());
        assert_eq!((report.ended, report.cancelled), (0, 0), "no actor lives");
    });
}

/// A value that is spawned again whenever it is dropped, alternately as a task and as an actor.
struct Again(Arc<AtomicUsize>);

impl Drop for Again {
    fn drop(&mut self) {
        let times = self.0.fetch_add(1, Ordering::SeqCst);
        let again = Again(self.0.clone());
        if times.is_multiple_of(2) {
            greenroom::spawn(hold(again)).detach();
        } else {
            drop(spawn!(move |_cx: Context<()>| hold(again)));
        }
    }
}

async fn hold(again: Again) {
    std::future::pending::<()>().await;
    drop(again);
}

#[test]
fn drops_that_spawn_themselves_again_end_with_the_shutdown() {
    for pinned in [false, true] {
        within(WATCH, move || {
            let brief = Runtime::builder().grace(Duration::from_millis(10));
            let home = if pinned {
                Home::pinned_built(brief)
            } else {
                Home::built(2, brief)
            };
            let times = Arc::new(AtomicUsize::new(0));
            let own = times.clone();
            home.spawn_task(hold(Again(own))).detach();
            if pinned {
                home.turn();
            }
            drive(home.runtime.shutdown());
            until(|| times.load(Ordering::SeqCst) > 0);
            drop(home);
            let times = times.load(Ordering::SeqCst);
            assert!(times <= 1000, "{times} times");
        });
    }
}

fn a_first_message_may_race_with_the_end_of_the_actor(home: &Home) {
    let ends: [fn(&Address<crate::support::Dropped>); 3] = [Address::stop, Address::kill, |_| ()];
    for end in ends {
        let (drops, mut told) = (Drops::default(), 0);
        for _ in 0..home.many(300) {
            let actor = home.spawn(greenroom::actor(|mut cx: Context<_>| async move {
                cx.try_recv()
            }));
            let (address, go) = (actor.address(), Gate::default());
            let (waits, message) = (go.clone(), drops.one());
            told += 1;
            let teller = elsewhere(move || {
                waits.pass();
                // The mailbox has no block yet: the first message allocates one.
                drop(address.tell(message));
            });
            go.open();
            end(&actor);
            drop(home.block_on(actor.join()));
            teller.join();
        }
        until(|| drops.count() == told);
    }
}

fn late_messages_may_race_with_the_last_address_and_the_end(home: &Home) {
    let drops = Drops::default();
    let rounds = home.many(200);
    for round in 0..rounds {
        let actor = home.spawn(greenroom::actor(|mut cx: Context<_>| async move {
            while cx.recv().await.is_some() {}
        }));
        let go = Gate::default();
        let tellers = [(); 2].map(|()| {
            let (address, drops, waits) = (actor.address(), drops.clone(), go.clone());
            elsewhere(move || {
                waits.pass();
                // Enough messages for several blocks; then the address is dropped.
                for _ in 0..50 {
                    drop(address.tell(drops.one()));
                }
            })
        });
        go.open();
        if round % 2 == 0 {
            actor.kill();
        }
        let _ = home.block_on(actor.join());
        for teller in tellers {
            teller.join();
        }
    }
    until(|| drops.count() == rounds * 2 * 50);
}

fn a_dropped_send_drops_its_message_once_and_takes_no_room(home: &Home) {
    let (drops, go) = (Drops::default(), Gate::default());
    let waits = go.clone();
    let actor = home.spawn(
        greenroom::actor(|mut cx: Context<_>| async move {
            waits.wait().await;
            let mut received = 0;
            while cx.recv().await.is_some() {
                received += 1;
            }
            received
        })
        .capacity(1),
    );
    actor.tell(drops.one()).unwrap();
    let (mut first, mut second) = (
        Box::pin(actor.send(drops.one())),
        Box::pin(actor.send(drops.one())),
    );
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    drop(first);
    assert_eq!(
        drops.count(),
        1,
        "only the message of the dropped send was dropped"
    );
    go.open();
    // The next sender gets the place of the dropped one.
    home.block_on(second).unwrap();
    assert_eq!(home.block_on(actor.join()).unwrap(), 2);
    until(|| drops.count() == 3);
}

fn the_last_owner_of_a_runtime_may_be_dropped_in_its_own_task(home: &Home) {
    // The home's own runtime outlives the scenario, so each scenario builds another runtime.
    let ended = Gate::default();
    let own = Runtime::builder().workers(1).build().unwrap();
    let opens = OpenOnDrop(ended.clone());
    let (clone, held) = (own.clone(), Gate::default());
    let waits = held.clone();
    own.spawn(async move {
        let _opens = opens;
        waits.wait().await;
        home_free(clone);
        std::future::pending::<()>().await;
    })
    .detach();
    // First dropped in a task of another runtime, where it is not the last owner.
    home.block_on(home.spawn_task(async move { drop(own) }));
    held.open();
    ended.pass();
}

/// Drops the last owner on a thread of its own runtime; the drop must not wait for itself.
fn home_free(last: Runtime) {
    drop(last);
}

fn join_returns_the_first_panic_of_an_actor(home: &Home) {
    // The messages left in the mailbox panic with another text when they are dropped.
    let (drops, held) = (Drops::default(), home.hold());
    let actor = home.spawn(greenroom::actor(|mut cx: Context<Bomb>| async move {
        drop(cx.recv().await);
        panic!("bomb in the handler");
    }));
    for live in [false, true, true, true] {
        assert!(actor.tell(Bomb::new(live, &drops)).is_ok());
    }
    drop(held);
    match home.block_on(actor.join()).unwrap_err() {
        Fault::Panicked(panic) => assert_eq!(panic.text(), Some("bomb in the handler")),
        other => panic!("{other}"),
    }
    until(|| drops.count() == 4);
}

#[test]
fn on_fault_is_called_again_after_it_has_panicked() {
    within(WATCH, || {
        crate::support::keep_bombs_quiet();
        let (log, told) = (Log::default(), Arc::new(AtomicUsize::new(0)));
        let (own, count) = (log.clone(), told.clone());
        let builder = Runtime::builder().workers(1).on_fault(move |unhandled| {
            own.add(unhandled.to_string());
            count.fetch_add(1, Ordering::SeqCst);
            panic!("bomb in on_fault");
        });
        let runtime = builder.build().unwrap();
        for number in 0..3 {
            let panics = move |_cx: Context<()>| async move { panic!("bomb {number}") };
            let name = format!("actor {number}");
            drop(greenroom::actor(panics).name(name).on(&runtime).spawn());
            until(|| told.load(Ordering::SeqCst) == number + 1);
        }
        for (number, text) in log.take().into_iter().enumerate() {
            assert!(text.contains(&format!("bomb {number}")), "{text}");
            assert!(text.contains(&format!("actor {number}")), "{text}");
        }
        assert_eq!(drive(runtime.spawn(async { 42 })), 42);
    });
}
