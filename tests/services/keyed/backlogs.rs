//! Messages that have waited for an actor, which has no room for all of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::registry::{Keyed, KeyedBuilder};
use greenroom::supervise::Supervisor;
use greenroom::{Context, Fault, Runtime, actor};

use super::{Book, Order, Set, hold, obey};
use crate::support::{Gate, Home, Log, WATCH, in_every_home, keep_bombs_quiet, panic_of, within};

in_every_home!(
    a_panic_of_conflate_for_the_first_message_of_a_key_reaches_the_caller,
    a_panic_of_conflate_for_a_message_that_has_waited_loses_only_that,
    a_message_in_hand_of_the_set_survives_a_stop,
    a_removed_actor_gets_no_more_of_its_backlog,
    an_actor_with_a_backlog_is_killed_with_its_set,
    a_key_whose_drop_panics_hinders_no_stop_and_no_message,
    messages_whose_drops_panic_are_all_dropped,
);

type Results = Log<Vec<u32>>;

/// The options of a set whose first actor has room for many messages, and each later one for `room`.
/// The key of 9 panics. What each actor was told is in the log, but for those that are killed.
fn narrow(home: &Home, room: usize, log: &Results) -> KeyedBuilder<u32, Order, Vec<u32>> {
    let (made, book) = (AtomicUsize::new(0), Book::default());
    let make = move |key| {
        let book = book.clone();
        let actor = actor(move |cx| obey(cx, key, book));
        let actor = match made.fetch_add(1, Ordering::SeqCst) {
            0 => actor.capacity(100),
            _ => actor.capacity(room),
        };
        actor.conflate(|order| match order {
            Order::Add(number) => {
                assert!(*number != 9, "bomb");
                *number
            }
            _ => 0,
        })
    };
    let log = log.clone();
    Keyed::builder(make)
        .on(&home.runtime)
        .on_end(move |_, result: Result<_, Fault>| {
            if let Ok(told) = result {
                log.add(told);
            }
        })
}

/// Lets these orders wait for the second actor of key 7, which waits in the first one. Returns what
/// lets it go on.
async fn line_up(
    set: &Set,
    first: fn(Gate, Gate) -> Order,
    rest: impl IntoIterator<Item = u32>,
) -> Gate {
    let of_first = hold(set, 7).await;
    set.remove(&7);
    let (begun, end) = (Gate::default(), Gate::default());
    set.tell(&7, first(begun.clone(), end.clone())).unwrap();
    for number in rest {
        set.tell(&7, Order::Add(number)).unwrap();
    }
    of_first.open();
    begun.wait().await;
    // As a rule the mailbox is full then, and the set has the next message in hand.
    for _ in 0..20 {
        greenroom::yield_now().await;
    }
    end
}

fn a_panic_of_conflate_for_the_first_message_of_a_key_reaches_the_caller(home: &Home) {
    let log = Log::default();
    let set = narrow(home, 1, &log).limit(1).build().unwrap();
    home.block_on(async {
        let (text, ..) = panic_of(|| set.tell(&7, Order::Add(9)));
        assert!(text.contains("bomb"), "{text}");
        set.tell(&7, Order::Add(1)).unwrap();
        assert_eq!(set.ask(&7, Order::Look).await.unwrap(), (1, vec![1]));
        set.stop();
        set.ended().await;
    });
    assert_eq!(log.take(), [[1]]);
}

fn a_panic_of_conflate_for_a_message_that_has_waited_loses_only_that(home: &Home) {
    keep_bombs_quiet();
    for room in [1, 10] {
        let log = Log::default();
        let set = narrow(home, room, &log).build().unwrap();
        home.block_on(async {
            let end = line_up(&set, Order::Hold, [1, 9, 2, 3]).await;
            end.open();
            let next = set.get_or_spawn(&7).await.unwrap();
            assert_eq!(next.ask(Order::Look).await, Ok((2, vec![1, 2, 3])));
            set.stop();
            set.ended().await;
        });
        assert_eq!(log.take(), [vec![], vec![1, 2, 3]]);
    }
}

#[test]
fn a_panic_of_conflate_for_a_message_that_has_waited_is_reported() {
    keep_bombs_quiet();
    let faults = Log::default();
    let own = faults.clone();
    let builder = Runtime::builder().on_fault(move |fault| own.add(fault.to_string()));
    within(WATCH, move || {
        let home = Home::built(1, builder);
        for room in [1, 10] {
            let set = narrow(&home, room, &Log::default()).build().unwrap();
            home.block_on(async {
                line_up(&set, Order::Hold, [1, 9]).await.open();
                set.get_or_spawn(&7).await.unwrap();
            });
        }
    });
    let faults = faults.take();
    assert_eq!(faults.len(), 2, "{faults:?}");
    for fault in faults {
        let says = "a task of a set of keyed actors panicked: ";
        assert!(fault.starts_with(says) && fault.contains("bomb"), "{fault}");
    }
}

fn a_message_in_hand_of_the_set_survives_a_stop(home: &Home) {
    let log = Log::default();
    let set = narrow(home, 1, &log).build().unwrap();
    home.block_on(async {
        let end = line_up(&set, Order::Last, [1, 2]).await;
        set.stop();
        end.open();
        set.ended().await;
    });
    let handled = log.take().concat();
    // The second actor may leave the first one unread.
    assert!(matches!(handled[..], [2] | [1, 2]), "{handled:?}");
}

fn a_removed_actor_gets_no_more_of_its_backlog(home: &Home) {
    let log = Log::default();
    let set = narrow(home, 1, &log).build().unwrap();
    home.block_on(async {
        let end = line_up(&set, Order::Hold, 1..=5).await;
        assert!(set.remove(&7));
        end.open();
        let next = set.get_or_spawn(&7).await.unwrap();
        assert_eq!(next.ask(Order::Look).await.unwrap().0, 3);
        set.stop();
        set.ended().await;
    });
    let results = log.take();
    assert_eq!(results.concat(), [1, 2, 3, 4, 5]);
    // It had room for one.
    assert!(results[1].len() <= 1, "{results:?}");
}

fn an_actor_with_a_backlog_is_killed_with_its_set(home: &Home) {
    let log = Log::default();
    let set = narrow(home, 1, &log).build().unwrap();
    home.block_on(async {
        let tree = Supervisor::builder().grace(Duration::from_millis(1));
        let tree = tree.spawn().unwrap();
        let own = set.clone();
        tree.start(actor(move |cx| own.serve(cx))).unwrap();
        let _never = line_up(&set, Order::Hold, [1, 2]).await;
        tree.stop();
        tree.join().await.unwrap();
        set.ended().await;
    });
    // What has not reached the actor is for the next one.
    let [first, rest @ ..] = &log.take()[..] else {
        panic!("the first actor has returned");
    };
    assert!(first.is_empty());
    assert!(matches!(rest.concat()[..], [2] | [1, 2]), "{rest:?}");
}

/// A key whose drop panics on a thread that says so.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(u32);

thread_local! {
    static DROPS_PANIC: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Drop for Key {
    fn drop(&mut self) {
        if DROPS_PANIC.get() && !std::thread::panicking() {
            panic!("bomb in a drop");
        }
    }
}

fn a_key_whose_drop_panics_hinders_no_stop_and_no_message(home: &Home) {
    keep_bombs_quiet();
    let (log, made) = (Log::default(), AtomicUsize::new(0));
    let own = log.clone();
    let make = move |_: Key| {
        let log = own.clone();
        let actor = actor(async move |mut cx: Context<(u32, Gate, Gate)>| {
            while let Some((number, begun, end)) = cx.recv().await {
                log.add(number);
                begun.open();
                end.wait().await;
            }
        });
        match made.fetch_add(1, Ordering::SeqCst) {
            0 => actor.capacity(100),
            _ => actor.capacity(1),
        }
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let (key, [begun, next, end, last]) = (Key(7), [(); 4].map(|()| Gate::default()));
        set.tell(&key, (0, begun.clone(), end.clone())).unwrap();
        begun.wait().await;
        set.remove(&key);
        DROPS_PANIC.set(true);
        for number in 1..=3 {
            // Of the second call on, the line has a key.
            let told = set.tell(&key, (number, next.clone(), last.clone()));
            assert!(told.is_ok());
        }
        DROPS_PANIC.set(false);
        end.open();
        next.wait().await;
        for _ in 0..20 {
            greenroom::yield_now().await;
        }
        DROPS_PANIC.set(true);
        set.stop();
        DROPS_PANIC.set(false);
        last.open();
        set.ended().await;
    });
    assert_eq!(log.take(), [0, 1, 2, 3]);
}

fn messages_whose_drops_panic_are_all_dropped(home: &Home) {
    keep_bombs_quiet();
    struct Loud(Log<u32>, Option<Gate>);
    impl Drop for Loud {
        fn drop(&mut self) {
            self.0.add(1);
            assert!(self.1.is_some(), "bomb in a drop");
        }
    }
    let (dropped, made, begun) = (Log::default(), AtomicUsize::new(0), Gate::default());
    let has_begun = begun.clone();
    let make = move |_: u32| {
        assert_eq!(made.fetch_add(1, Ordering::SeqCst), 0, "bomb");
        let begun = has_begun.clone();
        actor(async move |mut cx: Context<Loud>| {
            let first = cx.recv().await.unwrap();
            begun.open();
            first.1.as_ref().unwrap().wait().await;
        })
    };
    let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
    home.block_on(async {
        let end = Gate::default();
        set.tell(&7, Loud(dropped.clone(), Some(end.clone())))
            .map_err(|_| "refused")
            .unwrap();
        begun.wait().await;
        set.remove(&7);
        for _ in 0..3 {
            assert!(set.tell(&7, Loud(dropped.clone(), None)).is_ok());
        }
        end.open();
        set.ended().await;
    });
    assert_eq!(dropped.len(), 4);
}
