//! How many actors are open at a time, and which of them goes for another one.

use std::time::Duration;

use greenroom::registry::KeyError;
use greenroom::time::sleep;

use super::{Book, Order, Set, hold, options, poll_in_turn};
use crate::support::{Home, in_every_home};

in_every_home!(
    the_actor_that_was_used_longest_ago_goes,
    an_actor_with_an_address_elsewhere_stays,
    a_call_is_refused_if_no_actor_can_go,
    an_actor_that_goes_handles_what_it_has_accepted,
    an_actor_that_ends_does_not_count,
    a_message_that_waits_for_the_next_actor_counts,
    of_many_actors_with_addresses_elsewhere_calls_find_the_one_without,
);

fn limited(home: &Home, limit: usize) -> (Set, Book) {
    let book = Book::default();
    (options(home, &book).limit(limit).build().unwrap(), book)
}

fn the_actor_that_was_used_longest_ago_goes(home: &Home) {
    let (set, book) = limited(home, 3);
    home.block_on(async {
        for key in [1, 2, 3, 1, 4, 5, 1] {
            set.tell(&key, Order::Add(key)).unwrap();
            assert!(set.len() <= 3);
        }
        let mut keys = set.keys();
        keys.sort();
        assert_eq!(keys, [1, 4, 5]);
        // The other two begin anew.
        assert_eq!(set.ask(&1, Order::Look).await.unwrap(), (1, vec![1, 1, 1]));
        assert_eq!(set.ask(&2, Order::Look).await.unwrap(), (2, vec![]));
        assert_eq!(book.begun(2), 2);
        assert!(!set.contains(&4));
    });
}

fn an_actor_with_an_address_elsewhere_stays(home: &Home) {
    let (set, _book) = limited(home, 2);
    home.block_on(async {
        let first = set.get_or_spawn(&1).await.unwrap();
        set.tell(&2, Order::Add(2)).unwrap();
        set.tell(&3, Order::Add(3)).unwrap();
        assert!(set.contains(&1) && !set.contains(&2) && set.contains(&3));
        assert_eq!(first.ask(Order::Look).await, Ok((1, vec![])));
        // Without the address it is the one that was used longest ago.
        drop(first);
        greenroom::yield_now().await;
        set.tell(&2, Order::Add(2)).unwrap();
        assert!(!set.contains(&1));
    });
}

fn a_call_is_refused_if_no_actor_can_go(home: &Home) {
    let (set, _book) = limited(home, 2);
    home.block_on(async {
        let first = set.get_or_spawn(&1).await.unwrap();
        let _second = set.get_or_spawn(&2).await.unwrap();
        let refused = set.tell(&3, Order::Add(3)).unwrap_err();
        assert!(matches!(
            refused.key_error(),
            Some(KeyError::Limit { limit: 2, .. })
        ));
        let says = "2 actors are open, which is the limit, and none of them can be stopped";
        assert_eq!(refused.to_string(), says);
        let refused = set.get_or_spawn(&3).await;
        assert!(matches!(refused, Err(KeyError::Limit { .. })));
        assert!(!set.contains(&3));
        // Those that are there are not refused.
        set.tell(&1, Order::Add(1)).unwrap();
        drop(first);
        greenroom::yield_now().await;
        set.tell(&3, Order::Add(3)).unwrap();
        assert!(!set.contains(&1));
    });
}

fn an_actor_that_goes_handles_what_it_has_accepted(home: &Home) {
    let (log, book) = (crate::support::Log::default(), Book::default());
    let own = log.clone();
    let set = options(home, &book).limit(1);
    let set = set.on_end(move |key, result| own.add((*key, result.unwrap())));
    let set = set.build().unwrap();
    home.block_on(async {
        for key in 1..=5 {
            for number in 0..3 {
                set.tell(&key, Order::Add(number)).unwrap();
            }
        }
        set.stop();
        set.ended().await;
    });
    let mut results = log.take();
    results.sort();
    assert_eq!(results, [1, 2, 3, 4, 5].map(|key| (key, vec![0, 1, 2])));
}

fn an_actor_that_ends_does_not_count(home: &Home) {
    let (set, _book) = limited(home, 1);
    home.block_on(async {
        let end = hold(&set, 1).await;
        set.remove(&1);
        assert_eq!(set.len(), 0);
        let _address = set.get_or_spawn(&2).await.unwrap();
        assert_eq!(set.keys(), [2]);
        end.open();
    });
}

fn a_message_that_waits_for_the_next_actor_counts(home: &Home) {
    let (set, _book) = limited(home, 1);
    home.block_on(async {
        let end = hold(&set, 1).await;
        set.remove(&1);
        set.tell(&1, Order::Add(1)).unwrap();
        // Neither the actor that ends nor the next one can go.
        let refused = set.tell(&2, Order::Add(2)).unwrap_err();
        assert!(matches!(refused.key_error(), Some(KeyError::Limit { .. })));
        let mut other = Box::pin(set.get_or_spawn(&1));
        assert!(poll_in_turn(&mut other).await.is_pending());
        end.open();
        let next = other.await.unwrap();
        assert_eq!(next.ask(Order::Look).await, Ok((2, vec![1])));
    });
}

fn of_many_actors_with_addresses_elsewhere_calls_find_the_one_without(home: &Home) {
    let count = 3_000;
    // Some are released meanwhile, or none. The task that releases the one without has an address of it
    // until the system lets that task go on, so then no number of calls is certain.
    let no_limit = usize::MAX;
    let cases = [
        (Duration::from_millis(1), no_limit),
        (Duration::from_secs(10_000), 2 * 3_000 / 512),
    ];
    for (idle, calls_at_most) in cases {
        let set = options(home, &Book::default()).limit(count as usize);
        let set = set.idle(idle).build().unwrap();
        home.block_on(async {
            let mut held = Vec::new();
            for key in 0..count {
                held.push(set.get_or_spawn(&key).await.unwrap());
            }
            sleep(Duration::from_millis(3)).await;
            for key in [count, count + 1] {
                // A call looks at a part of them.
                for _ in 0..3 {
                    let refused = set.tell(&key, Order::Add(0)).unwrap_err();
                    assert!(matches!(refused.key_error(), Some(KeyError::Limit { .. })));
                }
                let free = held.swap_remove(held.len() / 2);
                free.tell(Order::Add(0)).unwrap();
                assert_eq!(free.ask(Order::Look).await.unwrap().1, [0]);
                drop(free);
                let calls = (1..).find(|_| set.tell(&key, Order::Add(0)).is_ok());
                assert!(calls.unwrap() <= calls_at_most, "{calls:?} calls");
                held.push(set.get_or_spawn(&key).await.unwrap());
            }
        });
    }
}
