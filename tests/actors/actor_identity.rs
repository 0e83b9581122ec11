//! The identity of an actor: id and name, and their use in equality, hashes and debug texts.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use greenroom::{Context, actor};

use crate::support::{Home, in_every_home, on_threads};

async fn idle(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

// Several threads spawn at the same time.
on_threads!(ids_are_unique_across_threads_and_stay_the_same);

in_every_home!(
    addresses_of_one_actor_are_equal_and_hash_alike,
    a_name_may_be_any_text_and_need_not_be_unique,
    debug_text_names_id_and_name,
);

fn ids_are_unique_across_threads_and_stay_the_same(home: &Home) {
    const EACH: usize = 2_000;
    let spawn = || (0..EACH).map(|_| home.spawn(actor(idle)));
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let others: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| spawn().map(|actor| actor.id()).collect()))
            .collect();
        let mut ids: Vec<u64> = spawn().map(|actor| actor.id()).collect();
        for other in others {
            ids.extend::<Vec<u64>>(other.join().unwrap());
        }
        ids
    });
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4 * EACH);

    let one = home.spawn(actor(idle));
    let (address, weak) = (one.address(), one.downgrade());
    assert_eq!([address.id(), weak.id(), weak.clone().id()], [one.id(); 3]);
    home.block_on(async {
        one.stop();
        one.closed().await;
        assert_eq!(weak.id(), address.id());
    });
}

fn addresses_of_one_actor_are_equal_and_hash_alike(home: &Home) {
    let (one, other) = (home.spawn(actor(idle)), home.spawn(actor(idle)));
    assert_eq!(one.address(), one.address().clone());
    assert_ne!(one.address(), other.address());
    assert_eq!(one.downgrade(), one.downgrade().clone());
    assert_ne!(one.downgrade(), other.downgrade());
    let hasher = RandomState::new();
    assert_eq!(
        hasher.hash_one(one.address()),
        hasher.hash_one(one.address())
    );
    assert_eq!(
        hasher.hash_one(one.downgrade()),
        hasher.hash_one(one.address())
    );
    let set: HashSet<_> = [one.address(), one.address(), other.address()].into();
    assert_eq!(set.len(), 2);
    assert!(set.contains(&*other));
}

fn a_name_may_be_any_text_and_need_not_be_unique(home: &Home) {
    let long = "x".repeat(1 << 20);
    for name in ["tally", "", "two\nlines", "with \0 in it", "ünïcode", &long] {
        let named = home.spawn(actor(idle).name(name));
        assert_eq!(named.name(), Some(name));
        assert_eq!(named.downgrade().name(), Some(name));
    }
    let (one, other) = (
        home.spawn(actor(idle).name("same")),
        home.spawn(actor(idle).name("same")),
    );
    assert_eq!(one.name(), other.name());
    assert_ne!(one.address(), other.address(), "a name need not be unique");
    assert_eq!(home.spawn(actor(idle)).name(), None);
}

fn debug_text_names_id_and_name(home: &Home) {
    // Works for any message type: this one has no `Debug`.
    struct Opaque;
    let named = home.spawn(actor(async |_cx: Context<Opaque>| ()).name("tally"));
    let id = named.id();
    let text = format!("{:?}", named.address());
    assert_eq!(text, format!("Address {{ id: {id}, name: \"tally\" }}"));
    let text = format!("{:?}", named.downgrade());
    assert_eq!(text, format!("WeakAddress {{ id: {id}, name: \"tally\" }}"));
    assert!(format!("{named:?}").contains("tally"));
    let nameless = home.spawn(actor(idle));
    assert_eq!(
        format!("{:?}", nameless.address()),
        format!("Address {{ id: {} }}", nameless.id())
    );
}
