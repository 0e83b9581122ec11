//! Keyed actors with restarts, with priorities and places, and sets below supervisors.

use std::time::Duration;

use greenroom::registry::{KeyError, Keyed};
use greenroom::supervise::{Restarts, Strategy, Supervisor};
use greenroom::{Context, Detached, Reply, actor};

use super::{Order, hold, set};
use crate::support::{Gate, Home, in_every_home, keep_bombs_quiet, on_threads};

in_every_home!(
    a_keyed_actor_may_be_restarted,
    a_restartable_actor_that_gives_up_is_followed_by_another,
    a_set_below_a_supervisor_ends_before_it,
    a_set_below_a_supervisor_is_killed_after_the_grace,
    a_set_that_is_restarted_starts_its_actors_anew,
);

on_threads!(
    // A simulation has no thread for it.
    keyed_actors_may_have_threads_of_their_own
);

/// Answers with the number of its incarnation and its key, or panics.
async fn number(mut cx: Context<Option<Reply<(u64, u32)>>>, key: u32) {
    while let Some(reply) = cx.recv().await {
        reply.expect("bomb").send((cx.incarnation_number(), key));
    }
}

fn a_keyed_actor_may_be_restarted(home: &Home) {
    keep_bombs_quiet();
    let make = |key| actor(move |cx| number(cx, key)).restart(Restarts::on_fault());
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let actor = set.get_or_spawn(&7).await.unwrap();
        for incarnation in 0..3 {
            assert_eq!(set.ask(&7, Some).await.unwrap(), (incarnation, 7));
            set.tell(&7, None).unwrap();
        }
        assert_eq!(set.get_or_spawn(&7).await.unwrap(), actor);
    });
}

fn a_restartable_actor_that_gives_up_is_followed_by_another(home: &Home) {
    keep_bombs_quiet();
    let make = |key| {
        let once = Restarts::on_fault().intensity(1, Duration::from_secs(10_000));
        actor(move |cx| number(cx, key)).restart(once)
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let first = set.get_or_spawn(&7).await.unwrap();
        set.tell(&7, None).unwrap();
        set.tell(&7, None).unwrap();
        first.closed().await;
        assert_eq!(set.ask(&7, Some).await.unwrap(), (0, 7));
    });
}

fn a_set_below_a_supervisor_ends_before_it(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        let tree = Supervisor::builder().spawn().unwrap();
        let own = set.clone();
        let served = tree
            .start(actor(move |cx| own.serve(cx)).name("set"))
            .unwrap();
        let end = hold(&set, 7).await;
        set.tell(&7, Order::Add(1)).unwrap();
        tree.stop();
        while !served.is_closed() {
            greenroom::yield_now().await;
        }
        end.open();
        drop(served);
        tree.join().await.unwrap();
        assert!(set.is_empty());
        let refused = set.get_or_spawn(&7).await;
        assert!(matches!(refused, Err(KeyError::Stopped)));
    });
}

fn a_set_below_a_supervisor_is_killed_after_the_grace(home: &Home) {
    let (set, _book) = set(home);
    home.block_on(async {
        let tree = Supervisor::builder().grace(Duration::from_millis(1));
        let tree = tree.spawn().unwrap();
        let own = set.clone();
        tree.start(actor(move |cx| own.serve(cx))).unwrap();
        let _never = hold(&set, 7).await;
        let actor = set.get_or_spawn(&7).await.unwrap();
        tree.stop();
        tree.join().await.unwrap();
        assert_eq!(actor.ended().await, greenroom::End::Killed);
        set.ended().await;
    });
}

fn a_set_that_is_restarted_starts_its_actors_anew(home: &Home) {
    keep_bombs_quiet();
    let (set, _book) = set(home);
    home.block_on(async {
        let tree = Supervisor::builder().strategy(Strategy::OneForAll);
        let tree = tree.spawn().unwrap();
        let own = set.clone();
        tree.start(actor(move |cx| own.serve(cx))).unwrap();
        let bomb = tree
            .start(actor(async |mut cx: Context<()>| {
                cx.recv().await;
                panic!("bomb");
            }))
            .unwrap();
        let first = set.get_or_spawn(&7).await.unwrap();
        // It has begun.
        assert_eq!(first.ask(Order::Look).await.unwrap(), (1, vec![]));
        bomb.tell(()).unwrap();
        assert_eq!(first.ended().await, greenroom::End::Killed);
        let next = loop {
            match set.ask(&7, Order::Look).await {
                Ok(seen) => break seen,
                // Until the set begins again.
                Err(_stopped) => greenroom::yield_now().await,
            }
        };
        assert_eq!(next, (2, vec![]));
        tree.stop();
        tree.join().await.unwrap();
    });
}

fn keyed_actors_may_have_threads_of_their_own(home: &Home) {
    let make = |_key: u32| {
        let blocks = async |mut cx: Context<(Gate, Gate)>| {
            while let Some((begun, end)) = cx.recv().await {
                begun.open();
                end.pass();
            }
        };
        actor(blocks).name("own").on(Detached)
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    let gates = [1, 2].map(|key| {
        let (begun, end) = (Gate::default(), Gate::default());
        set.tell(&key, (begun.clone(), end.clone())).unwrap();
        begun.pass();
        end
    });
    set.stop();
    gates.iter().for_each(Gate::open);
    home.block_on(set.ended());
}
