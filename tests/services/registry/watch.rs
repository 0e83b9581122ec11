//! Who joins and leaves a group, as a watch of it says.

use std::collections::BTreeSet;

use fastrand::Rng;
use futures::{FutureExt, StreamExt};
use greenroom::registry::{Group, GroupWatch, Membership};
use greenroom::{Handle, actor, spawn, yield_now};

use super::{idle, in_simulations, outside};
use crate::support::{Home, WATCH, in_every_home, within};

const TOPIC: Group<u32> = Group::new("topic");
const SEEDS: u64 = 300;
const STEPS: usize = 60;

in_every_home!(
    a_watch_begins_with_the_members_of_now,
    a_watch_sees_members_join_leave_and_end,
    a_member_that_was_there_for_a_moment_is_not_seen,
    a_watch_sees_members_of_its_type_alone,
    each_watch_sees_all_changes,
    a_watch_keeps_no_actor_open,
    a_tag_that_is_replaced_before_a_watch_looks_may_use_the_group_in_its_drop,
);

fn idles(home: &Home) -> [Handle<u32, ()>; 3] {
    [0; 3].map(|_| home.spawn(actor(idle::<u32>)))
}

/// Returns whether the next change is a join, and whose change it is.
async fn next<M: Send + 'static>(watch: &mut GroupWatch<M>) -> (bool, u64) {
    seen(watch.next().await.expect("the runtime lives"))
}

fn seen<M>(change: Membership<M>) -> (bool, u64) {
    match change {
        Membership::Joined(actor) => (true, actor.id()),
        Membership::Left(actor) => (false, actor.id()),
        other => panic!("{other:?}"),
    }
}

fn a_watch_begins_with_the_members_of_now(home: &Home) {
    let [a, b, _] = idles(home);
    home.block_on(async {
        TOPIC.join(&a).unwrap();
        TOPIC.join(&b).unwrap();
        let mut watch = TOPIC.watch();
        let both = [next(&mut watch).await, next(&mut watch).await];
        assert!(both.is_sorted());
        assert!(both.contains(&(true, a.id())) && both.contains(&(true, b.id())));
        assert!(watch.next().now_or_never().is_none());
    });
}

fn a_watch_sees_members_join_leave_and_end(home: &Home) {
    let [a, b, _] = idles(home);
    home.block_on(async {
        let mut watch = TOPIC.watch();
        let (first, second) = (a.address(), b.address());
        let changes = greenroom::spawn(async move {
            TOPIC.join(&first).unwrap();
            TOPIC.join(&first).unwrap();
        });
        assert_eq!(next(&mut watch).await, (true, a.id()));
        changes.await;
        assert!(TOPIC.leave(&a));
        assert_eq!(watch.by_ref().map(seen).next().await, Some((false, a.id())));
        TOPIC.join(&second).unwrap();
        assert_eq!(next(&mut watch).await, (true, b.id()));
        second.kill();
        assert_eq!(next(&mut watch).await, (false, b.id()));
        assert!(watch.next().now_or_never().is_none());
    });
}

fn a_member_that_was_there_for_a_moment_is_not_seen(home: &Home) {
    let [a, b, _] = idles(home);
    home.block_on(async {
        TOPIC.join(&a).unwrap();
        let mut watch = TOPIC.watch();
        assert_eq!(next(&mut watch).await, (true, a.id()));
        TOPIC.join(&b).unwrap();
        assert!(TOPIC.leave(&b) && TOPIC.leave(&a));
        TOPIC.join(&a).unwrap();
        assert!(watch.next().now_or_never().is_none());
        assert!(TOPIC.leave(&a));
        assert_eq!(next(&mut watch).await, (false, a.id()));
    });
}

fn a_watch_sees_members_of_its_type_alone(home: &Home) {
    const TEXTS: Group<&str> = Group::new("topic");
    let [a, ..] = idles(home);
    home.block_on(async {
        TOPIC.join(&a).unwrap();
        let (mut watch, mut other) = (TOPIC.watch(), TEXTS.watch());
        assert_eq!(next(&mut watch).await, (true, a.id()));
        a.kill();
        assert_eq!(next(&mut watch).await, (false, a.id()));
        assert!(other.next().now_or_never().is_none());
        let text = home.spawn(actor(idle::<&str>));
        TEXTS.join(&text).unwrap();
        assert_eq!(next(&mut other).await, (true, text.id()));
        assert!(watch.next().now_or_never().is_none());
    });
}

fn each_watch_sees_all_changes(home: &Home) {
    let [a, ..] = idles(home);
    home.block_on(async {
        let mut watches = [(); 3].map(|()| TOPIC.watch());
        drop(TOPIC.watch());
        TOPIC.join(&a).unwrap();
        for watch in &mut watches {
            assert_eq!(next(watch).await, (true, a.id()));
        }
        let [first, mut second, third] = watches;
        drop((first, third));
        assert!(TOPIC.leave(&a));
        assert_eq!(next(&mut second).await, (false, a.id()));
    });
}

fn a_watch_keeps_no_actor_open(home: &Home) {
    let [a, ..] = idles(home);
    home.block_on(async {
        let mut watch = TOPIC.watch();
        TOPIC.join(&a).unwrap();
        let joined = watch.next().await;
        a.join().await.unwrap();
        drop(joined);
        assert!(matches!(watch.next().await, Some(Membership::Left(_))));
    });
}

/// A tag that uses its group when it is dropped.
struct UsesGroup;

impl Drop for UsesGroup {
    fn drop(&mut self) {
        assert!(TOPIC.members().len() < 2);
    }
}

fn a_tag_that_is_replaced_before_a_watch_looks_may_use_the_group_in_its_drop(home: &Home) {
    let [a, ..] = idles(home);
    home.block_on(async {
        let mut watch = TOPIC.watch();
        for _ in 0..3 {
            TOPIC.join_tagged(&a, UsesGroup).unwrap();
        }
        assert!(TOPIC.leave(&a));
        assert!(watch.next().now_or_never().is_none());
        TOPIC.join_tagged(&a, UsesGroup).unwrap();
        TOPIC.join(&a).unwrap();
        assert_eq!(next(&mut watch).await, (true, a.id()));
    });
}

#[test]
fn a_watch_ends_with_its_runtime() {
    within(WATCH, || {
        let home = Home::workers(1);
        let group = TOPIC.on(&home.runtime);
        let (mut watch, mut early) = (group.watch(), group.watch());
        let member = home.spawn(actor(idle::<u32>));
        group.join(&member).unwrap();
        outside(home.runtime.shutdown());
        let mut left = group.watch();
        for watch in [&mut watch, &mut early, &mut left] {
            assert!(watch.next().now_or_never().is_some_and(|it| it.is_none()));
        }
    });
}

/// A naive model of a group: the ids of its members.
async fn steps(mut random: Rng) {
    let spawn = || spawn!(idle::<u32>(_));
    let mut actors: [Handle<u32, ()>; 4] = [(); 4].map(|()| spawn());
    let (mut watch, mut members, mut told) = (TOPIC.watch(), BTreeSet::new(), BTreeSet::new());
    for _ in 0..STEPS {
        let one = &mut actors[random.usize(..4)];
        match random.u8(..5) {
            0 => {
                one.kill();
                one.closed().await;
                members.remove(&one.id());
                *one = spawn();
            }
            1 => {
                assert_eq!(TOPIC.leave(one), members.remove(&one.id()));
            }
            2 | 3 => {
                TOPIC.join(one).unwrap();
                members.insert(one.id());
            }
            _ => {
                // The removal of an actor that has ended may come a moment later.
                for _ in 0..random.usize(..8) {
                    yield_now().await;
                }
                while let Some(change) = watch.next().now_or_never() {
                    let (joined, id) = seen(change.unwrap());
                    let is_change = match joined {
                        true => told.insert(id),
                        false => told.remove(&id),
                    };
                    assert!(is_change, "{id} was told twice");
                }
                assert_eq!(told, members);
            }
        }
    }
}

#[test]
fn a_watch_agrees_with_a_naive_model() {
    in_simulations(SEEDS, steps);
}
