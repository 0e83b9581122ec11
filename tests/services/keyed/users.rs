//! Keys whose functions panic, or use the set.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

use futures::FutureExt;
use greenroom::registry::Keyed;
use greenroom::{Context, Reply, actor};

use crate::support::{Home, in_every_home, panic_of};

in_every_home!(
    a_hash_an_eq_or_a_clone_that_panics_changes_nothing,
    a_key_whose_drop_panics_leaves_the_set,
    keys_of_one_hash_are_told_apart,
);

thread_local! {
    static PANICS: Cell<&'static str> = const { Cell::new("") };
}

fn may_panic(what: &'static str) {
    assert!(PANICS.get() != what, "bomb in {what}");
}

/// All keys have one hash.
#[derive(Debug)]
struct Key(u32);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        may_panic("hash");
        state.write_u8(1);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        may_panic("eq");
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        may_panic("clone");
        Key(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        if PANICS.get() == "drop" && !std::thread::panicking() {
            panic!("bomb in drop");
        }
    }
}

async fn echo(mut cx: Context<Reply<u32>>, key: Key) {
    while let Some(reply) = cx.recv().await {
        reply.send(key.0);
    }
}

type KeyCall = fn(&Keyed<Key, Reply<u32>>);

fn set(home: &Home) -> Keyed<Key, Reply<u32>> {
    let make = |key| actor(move |cx| echo(cx, key));
    Keyed::builder(make)
        .on(&home.runtime)
        .limit(5)
        .build()
        .unwrap()
}

fn a_hash_an_eq_or_a_clone_that_panics_changes_nothing(home: &Home) {
    let set = set(home);
    home.block_on(async {
        assert_eq!(set.ask(&Key(1), |reply| reply).await.unwrap(), 1);
        let calls: [KeyCall; 4] = [
            |set| drop(set.tell(&Key(2), Reply::pair().0)),
            |set| drop(set.get_or_spawn(&Key(2)).now_or_never()),
            |set| _ = set.contains(&Key(2)),
            |set| _ = set.remove(&Key(2)),
        ];
        for what in ["hash", "eq", "clone"] {
            // The last two calls clone no key.
            let calls = if what == "clone" { &calls[..2] } else { &calls };
            for call in calls {
                PANICS.set(what);
                let (text, ..) = panic_of(|| call(&set));
                PANICS.set("");
                assert_eq!(text, format!("bomb in {what}"));
                assert_eq!((set.len(), set.contains(&Key(2))), (1, false));
            }
        }
        PANICS.set("clone");
        let (text, ..) = panic_of(|| set.keys());
        PANICS.set("");
        assert_eq!(text, "bomb in clone");
        for key in 1..=5 {
            assert_eq!(set.ask(&Key(key), |reply| reply).await.unwrap(), key);
        }
        assert_eq!(set.len(), 5);
    });
}

fn a_key_whose_drop_panics_leaves_the_set(home: &Home) {
    crate::support::keep_bombs_quiet();
    struct Loud(u32);
    impl Drop for Loud {
        fn drop(&mut self) {
            if self.0 > 100 && !std::thread::panicking() {
                panic!("bomb in a drop");
            }
        }
    }
    #[derive(Clone)]
    struct Shared(std::sync::Arc<Loud>);
    impl Hash for Shared {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.0.hash(state);
        }
    }
    impl PartialEq for Shared {
        fn eq(&self, other: &Self) -> bool {
            self.0.0 == other.0.0
        }
    }
    impl Eq for Shared {}
    let make =
        |_key: Shared| actor(async |mut cx: Context<u32>| while cx.recv().await.is_some() {});
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        for round in 0..3 {
            let key = Shared(std::sync::Arc::new(Loud(101)));
            set.tell(&key, round).unwrap();
            // The set has the last one, which it drops at the end.
            let actor = set.get_or_spawn(&key).await.unwrap();
            drop(key);
            actor.stop();
            drop(actor);
            set.ended().await;
            assert!(set.is_empty());
        }
    });
}

fn keys_of_one_hash_are_told_apart(home: &Home) {
    let set = set(home);
    home.block_on(async {
        for round in 0..3 {
            for key in 0..5 {
                assert_eq!(set.ask(&Key(key), |reply| reply).await.unwrap(), key);
            }
            assert!(set.remove(&Key(round)));
            assert!(!set.contains(&Key(round)));
        }
    });
}
