//! Watching an actor: how it ended, and that a watch keeps no actor open.

use std::time::Duration;

use greenroom::{Address, Context, End, Runtime, actor};

use crate::support::{
    Gate, Home, WATCH, drive, drive_elsewhere, in_every_home, keep_bombs_quiet, within,
};

in_every_home!(
    each_way_to_end_is_told,
    the_end_of_a_dead_actor_is_told_at_once,
    many_watches_of_one_actor_are_told,
    a_watch_keeps_neither_actor_open,
    a_watch_whose_guard_is_dropped_tells_nothing,
    a_watch_through_a_map_keeps_no_actor_open,
    an_actor_may_watch_itself,
    a_stopped_actor_drops_its_watches,
);

async fn idle(mut cx: Context<()>) {
    while cx.recv().await.is_some() {}
}

/// Receives this many ends, and keeps itself open meanwhile.
async fn ends(mut cx: Context<End>, addresses: Vec<Address<()>>, count: usize) -> Vec<End> {
    let _myself = cx.address();
    for address in &addresses {
        cx.watch(address, |end| end).detach();
    }
    drop(addresses);
    let mut ends = Vec::new();
    while ends.len() < count {
        ends.push(cx.recv().await.unwrap());
    }
    ends
}

fn each_way_to_end_is_told(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let returns = home.spawn(actor(idle));
        let panics = home.spawn(actor(|mut cx: Context<()>| async move {
            cx.recv().await;
            panic!("bomb")
        }));
        let killed = home.spawn(actor(idle));
        let watch = |address: Address<()>| {
            let watcher = actor(|cx| ends(cx, vec![address], 1));
            home.spawn(watcher).join()
        };
        let returned = (watch(returns.address()), returns.address());
        let panicked = (watch(panics.address()), panics.address());
        let was_killed = (watch(killed.address()), killed.address());
        returns.stop();
        panics.stop();
        killed.kill();
        for ((watcher, address), end) in [
            (returned, End::Returned),
            (panicked, End::Panicked),
            (was_killed, End::Killed),
        ] {
            assert_eq!(watcher.await.unwrap(), [end]);
            assert_eq!(address.ended().await, end);
        }
    });
}

#[test]
fn a_shutdown_cancels_or_never_starts_an_actor() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).grace(Duration::ZERO);
        let runtime = runtime.build().unwrap();
        let begun = Gate::default();
        let has_begun = begun.clone();
        let stuck = actor(|_cx: Context<()>| async move {
            has_begun.open();
            std::future::pending::<()>().await
        });
        let stuck = stuck.on(&runtime).spawn();
        begun.pass();
        let watched = stuck.address();
        let cancelled = drive_elsewhere(async move { watched.ended().await });
        drive(runtime.shutdown());
        assert_eq!(cancelled.join(), End::Cancelled);
        let late = actor(idle).on(&runtime).spawn();
        assert_eq!(
            drive_elsewhere(async move { late.ended().await }).join(),
            End::NotStarted
        );
    });
}

fn the_end_of_a_dead_actor_is_told_at_once(home: &Home) {
    home.block_on(async {
        let dead = home.spawn(actor(idle));
        dead.kill();
        dead.closed().await;
        let address = dead.address();
        let watcher = home.spawn(actor(|mut cx: Context<End>| async move {
            let _myself = cx.address();
            let _watch = cx.watch(&address, |end| end);
            cx.try_recv()
        }));
        assert_eq!(watcher.join().await.unwrap(), Some(End::Killed));
    });
}

fn many_watches_of_one_actor_are_told(home: &Home) {
    let many = home.many(5_000);
    home.block_on(async move {
        let watched = home.spawn(actor(idle));
        let addresses = vec![watched.address(); many];
        let watcher = home.spawn(actor(move |cx| ends(cx, addresses, many)));
        watched.stop();
        assert_eq!(watcher.join().await.unwrap(), vec![End::Returned; many]);
    });
}

fn a_watch_keeps_neither_actor_open(home: &Home) {
    home.block_on(async {
        let watched = home.spawn(actor(idle));
        let (address, gate) = (watched.address(), Gate::default());
        let watches = gate.clone();
        let watcher = home.spawn(actor(|mut cx: Context<End>| async move {
            cx.watch(&address, |end| end).detach();
            drop(address);
            watches.wait().await;
            cx.recv().await
        }));
        let watcher = watcher.join();
        // The watched actor has one address, which `join` gives up.
        watched.join().await.unwrap();
        gate.open();
        // Either the watch or the lack of senders comes first.
        let end = watcher.await.unwrap();
        assert!(matches!(end, None | Some(End::Returned)), "{end:?}");

        let watched = home.spawn(actor(idle));
        let address = watched.address();
        let watcher = home.spawn(actor(|mut cx: Context<End>| async move {
            let _watch = cx.watch(&address, |end| end);
            cx.recv().await
        }));
        assert_eq!(watcher.join().await.unwrap(), None);
        watched.join().await.unwrap();
    });
}

fn a_watch_whose_guard_is_dropped_tells_nothing(home: &Home) {
    home.block_on(async {
        let watched = home.spawn(actor(idle));
        let address = watched.address();
        let watcher = home.spawn(actor(|mut cx: Context<u32>| async move {
            let _myself = cx.address();
            let left = cx.watch(&address, |_| 1);
            let _kept = cx.watch(&address, |_| 2);
            address.stop();
            address.closed().await;
            drop(left);
            (cx.recv().await, cx.try_recv())
        }));
        assert_eq!(watcher.join().await.unwrap(), (Some(2), None));
        watched.join().await.unwrap();
    });
}

fn a_watch_through_a_map_keeps_no_actor_open(home: &Home) {
    home.block_on(async {
        let watched = home.spawn(actor(idle));
        // The function of the map has an address of the watched actor.
        let own = watched.address();
        let mapped: Address<u32> = watched.map(move |_| drop(own.clone()));
        let watcher = home.spawn(actor(|mut cx: Context<End>| async move {
            let _myself = cx.address();
            let _watch = cx.watch(&mapped, |end| end);
            drop(mapped);
            cx.recv().await
        }));
        watched.join().await.unwrap();
        assert_eq!(watcher.join().await.unwrap(), Some(End::Returned));
    });
}

fn an_actor_may_watch_itself(home: &Home) {
    home.block_on(async {
        let itself = home.spawn(actor(|mut cx: Context<End>| async move {
            let myself = cx.address();
            cx.watch(&myself, |end| end).detach();
            drop(myself);
            cx.recv().await
        }));
        assert_eq!(itself.join().await.unwrap(), None);
    });
}

fn a_stopped_actor_drops_its_watches(home: &Home) {
    home.block_on(async {
        let watched = home.spawn(actor(idle));
        let address = watched.address();
        let watcher = home.spawn(actor(|mut cx: Context<End>| async move {
            cx.watch(&address, |end| end).detach();
            cx.stop();
            cx.watch(&address, |end| end).detach();
            address.kill();
            address.closed().await;
            cx.recv().await
        }));
        assert_eq!(watcher.join().await.unwrap(), None);
    });
}
