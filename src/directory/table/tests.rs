//! The size of a table, and names of one hash.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Wake, Waker};

use super::{CHANGED_MIN, HashSeeds, KEPT, NameShard, NameTable, SHARDS, Value};
use crate::actor::{Context, actor};
use crate::registry::{Group, Name};
use crate::runtime::Runtime;
use crate::sync::Mutex;

impl Value for u32 {
    fn is_empty(&self) -> bool {
        *self == 0
    }
}

impl<V> NameTable<V> {
    /// Returns the number of hashes, and the number for which there is memory.
    fn size(&self) -> (usize, usize) {
        self.shards.iter().fold((0, 0), |(len, room), shard| {
            shard.with(|NameShard { values, .. }| (len + values.len(), room + values.capacity()))
        })
    }
}

#[test]
fn names_of_one_hash_have_values_of_their_own() {
    let table: NameTable<u32> = NameTable {
        seeds: HashSeeds {
            first: 0,
            factor: 1,
        },
        ..NameTable::new()
    };
    let names = ["1111111122222222", "2222222211111111"];
    let hash = |name| table.seeds.of_name(name);
    assert_eq!(hash(names[0]), hash(names[1]));
    let seen = |name| table.look(name, |value| value.copied()).unwrap();
    table.change(names[0], |value| *value = 1);
    assert_eq!(names.map(seen), [Some(1), None]);
    table.change(names[1], |value| *value = 2);
    assert_eq!((names.map(seen), table.size().0), ([Some(1), Some(2)], 1));
    table.change(names[0], |value| *value = 0);
    assert_eq!(names.map(seen), [None, Some(2)]);
    table.change(names[1], |value| *value = 0);
    assert_eq!((names.map(seen), table.size().0), ([None, None], 0));
}

#[test]
fn a_closed_table_accepts_nothing() {
    let table = NameTable::new();
    table.change("a", |value| *value = 1);
    assert_eq!(table.close().collect::<Vec<u32>>(), [1]);
    assert_eq!(table.look("a", |value| value.copied()), None);
    assert_eq!(table.change("a", |value| *value = 1), None);
}

/// Spawns actors with names and in groups of their own, and ends them.
async fn churn(thread: usize, count: usize) {
    let live = count / 10;
    let mut actors = Vec::new();
    for number in 0..count {
        let text = format!("{thread} {number}");
        let one = actor(async |mut cx: Context<()>| cx.recv().await).spawn();
        Name::owned(&*text).register(&one).unwrap();
        Group::owned(text).join(&one).unwrap();
        actors.push(one);
        if actors.len() == live {
            for one in actors.drain(..) {
                one.stop();
                one.join().await.unwrap();
            }
        }
    }
}

#[test]
fn ten_thousand_names_that_came_and_went_leave_no_memory() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let threads = [0, 1].map(|thread| {
        let runtime = runtime.clone();
        std::thread::spawn(move || runtime.block_on(churn(thread, 5_000)))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    let directory = runtime.inner().directory_made();
    // The removal comes a moment after the end.
    let is_empty = || directory.names.size().0 + directory.groups.size().0 == 0;
    while !is_empty() {
        std::thread::yield_now();
    }
    let room = directory.names.size().1.max(directory.groups.size().1);
    assert!(room <= SHARDS * 4 * KEPT, "memory for {room} names");
}

#[test]
fn waits_that_were_dropped_leave_no_names() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async {
        let waits = (0..100).map(|number| {
            let name = Name::<()>::owned(number.to_string());
            crate::spawn(name.wait())
        });
        let waits: Vec<_> = waits.collect();
        let names = &runtime.inner().directory_made().names;
        while names.size().0 < 100 {
            crate::yield_now().await;
        }
        for wait in waits {
            wait.cancel().await;
        }
        assert_eq!(names.size().0, 0);
        for _ in 0..2 {
            assert!(!Name::<()>::new("unknown").unregister());
        }
        assert_eq!(names.size().0, 0);
    });
}

/// Drops a wait when it is woken.
struct Leaves<W>(Mutex<Option<W>>);

impl<W: Send + 'static> Wake for Leaves<W> {
    fn wake(self: Arc<Self>) {
        let wait = self.0.lock().take();
        drop(wait);
    }
}

#[test]
fn a_wait_that_ends_within_the_registration_leaves_no_name() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async {
        let name = Name::new("one");
        let one = actor(async |mut cx: Context<()>| cx.recv().await).spawn();
        let mut wait = name.wait();
        let leaves = Arc::new(Leaves(Mutex::new(None)));
        let waker = Waker::from(leaves.clone());
        let polled = Pin::new(&mut wait).poll(&mut TaskContext::from_waker(&waker));
        assert!(polled.is_pending());
        *leaves.0.lock() = Some(wait);
        name.register(&one).unwrap();
        assert!(leaves.0.lock().is_none(), "it was woken");
        assert!(name.unregister());
        assert_eq!(runtime.inner().directory_made().names.size().0, 0);
    });
}

#[test]
fn what_has_changed_is_read_or_everything_after_many_changes() {
    let table = NameTable::new();
    let read = |is_first| {
        let (mut read, are_all) = table.read_changed(is_first, |value: &u32| Some(*value));
        read.sort();
        let read = read.iter().map(|(name, value)| (&**name, *value));
        (format!("{:?}", read.collect::<Vec<_>>()), are_all)
    };
    let is = |text: &str, are_all| (text.to_owned(), are_all);
    table.change("a", |value| *value = 1);
    assert_eq!(read(true), is(r#"[("a", Some(1))]"#, true));
    assert_eq!(read(false), is("[]", false));
    table.change("b", |value| *value = 2);
    table.change("a", |value| *value = 0);
    assert_eq!(read(false), is(r#"[("a", None), ("b", Some(2))]"#, false));
    for _ in 0..=CHANGED_MIN {
        table.change("b", |value| *value = 3);
    }
    assert_eq!(read(false), is(r#"[("b", Some(3))]"#, true));
    assert_eq!(read(false), is("[]", false));
}
