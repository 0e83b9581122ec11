//! Bugs that others had with what lives too long, ends in the wrong order, or never ends.

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

// The threads of another runtime.
on_threads!(bug_d11_the_last_owner_may_go_in_what_it_owns);

in_every_home!(
    bug_c1_a_first_message_may_meet_the_end_of_the_actor,
    bug_c2_late_messages_may_meet_the_last_address_and_the_end,
    bug_c10_a_send_that_is_dropped_drops_its_message_once_and_takes_no_room,
    bug_d14_the_reason_of_the_end_is_the_first_panic,
);

/// Waits for messages and for a time that never comes, and knows itself and the one before.
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
            Either::Right(_) => unreachable!("it is not over in an hour"),
        }
    }
}

#[test]
fn bug_d5_actors_with_links_and_timers_leave_nothing_behind() {
    const CHAIN: usize = 1000;
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        // In a task of the only worker, so that one thread allocates and frees all of it.
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
        // Where memory is kept, other threads get what this one freed; then tests/memory.rs counts it.
        let is_kept = !cfg!(any(miri, greenroom_uncached));
        assert!(is_kept || grown < 64 * 1024, "{grown} bytes more");
        let report = drive(runtime.shutdown());
        assert_eq!((report.ended, report.cancelled), (0, 0), "none lives");
    });
}

/// Is spawned again whenever it is dropped, as a task and as an actor in turns.
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
fn bug_d7_a_drop_that_brings_itself_again_for_ever_ends_with_the_shutdown() {
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

fn bug_c1_a_first_message_may_meet_the_end_of_the_actor(home: &Home) {
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
                // It has no block yet: the first message makes one.
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

fn bug_c2_late_messages_may_meet_the_last_address_and_the_end(home: &Home) {
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
                // Enough for several blocks; then the address goes.
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

fn bug_c10_a_send_that_is_dropped_drops_its_message_once_and_takes_no_room(home: &Home) {
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
    assert_eq!(drops.count(), 1, "that one's message");
    go.open();
    // The place of the one that gave up is the next one's.
    home.block_on(second).unwrap();
    assert_eq!(home.block_on(actor.join()).unwrap(), 2);
    until(|| drops.count() == 3);
}

fn bug_d11_the_last_owner_may_go_in_what_it_owns(home: &Home) {
    // The home's own runtime outlives the scenario, so each of these has one more.
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
    // It goes in a task of another runtime first, and is not the last.
    home.block_on(home.spawn_task(async move { drop(own) }));
    held.open();
    ended.pass();
}

/// Drops the last owner, on a thread of its own runtime: it must not wait for itself.
fn home_free(last: Runtime) {
    drop(last);
}

fn bug_d14_the_reason_of_the_end_is_the_first_panic(home: &Home) {
    // What is left in the mailbox panics when it is dropped, and says something else.
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
fn bug_d14_a_panic_of_on_fault_harms_no_later_one() {
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
