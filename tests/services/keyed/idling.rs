//! When a set gives up an address, and that no message is lost then.

use std::time::Duration;

use greenroom::actor;
use greenroom::registry::Keyed;
use greenroom::time::{Instant, sleep};

use super::{Book, MINUTE, Order, Set, options};
use crate::support::{Home, in_every_home};

in_every_home!(
    an_actor_that_is_not_used_ends,
    no_message_is_lost_while_actors_idle,
);

fn idle_set(home: &Home, idle: Duration) -> (Set, Book) {
    let book = Book::default();
    (options(home, &book).idle(idle).build().unwrap(), book)
}

fn an_actor_that_is_not_used_ends(home: &Home) {
    let (set, _book) = idle_set(home, Duration::from_millis(5));
    home.block_on(async {
        for number in 1..=3 {
            let actor = set.get_or_spawn(&7).await.unwrap().downgrade();
            assert_eq!(set.ask(&7, Order::Look).await.unwrap().0, number);
            actor.closed().await;
        }
        set.ended().await;
        assert!(set.is_empty() && set.keys().is_empty());
    });
}

fn no_message_is_lost_while_actors_idle(home: &Home) {
    let (set, log) = (Book::default(), crate::support::Log::default());
    let own = log.clone();
    let idle = options(home, &set).idle(Duration::from_millis(1));
    let set = idle.on_end(move |_, result| own.add(result.unwrap()));
    let set = set.build().unwrap();
    let count = home.many(500) as u32;
    home.block_on(async {
        for number in 0..count {
            set.tell(&(number % 3), Order::Add(number)).unwrap();
            sleep(Duration::from_micros(u64::from(number) * 37 % 3_000)).await;
        }
        set.stop();
        set.ended().await;
    });
    let mut handled = log.take().concat();
    handled.sort();
    assert_eq!(handled, (0..count).collect::<Vec<_>>());
}

/// Runs a test in a simulation, where time passes only when all tasks wait.
fn simulated(test: impl AsyncFn(&Home) + Send + Sync + 'static) {
    let test = std::sync::Arc::new(test);
    crate::support::within(crate::support::WATCH, move || {
        for seed in 0..20 {
            let home = Home::simulated(seed);
            home.block_on(test(&home));
            drop(home);
            crate::support::simulated::forget();
        }
    });
}

#[test]
fn an_actor_stays_for_its_idle_time_and_at_most_an_eighth_longer() {
    simulated(async |home| {
        let (set, _book) = idle_set(home, 8 * MINUTE);
        let begun = Instant::now();
        let actor = set.get_or_spawn(&7).await.unwrap().downgrade();
        actor.closed().await;
        let stayed = begun.elapsed();
        assert!(
            stayed >= 8 * MINUTE && stayed < 9 * MINUTE + Duration::from_secs(1),
            "{stayed:?}"
        );
    });
}

#[test]
fn a_short_idle_time_is_at_most_two_milliseconds_longer() {
    simulated(async |home| {
        for micros in [1, 1_000, 1_500, 4_000] {
            let idle = Duration::from_micros(micros);
            let (set, _book) = idle_set(home, idle);
            let begun = Instant::now();
            let actor = set.get_or_spawn(&7).await.unwrap().downgrade();
            actor.closed().await;
            let stayed = begun.elapsed();
            // The turns meanwhile take time, too.
            let most = idle + Duration::from_millis(4);
            assert!(stayed >= idle && stayed < most, "{idle:?}: {stayed:?}");
        }
    });
}

#[test]
fn each_message_by_the_key_begins_the_idle_time_anew() {
    simulated(async |home| {
        let (set, book) = idle_set(home, 8 * MINUTE);
        for number in 0..10 {
            set.tell(&7, Order::Add(number)).unwrap();
            sleep(7 * MINUTE).await;
        }
        assert_eq!(set.ask(&7, Order::Look).await.unwrap().1.len(), 10);
        assert_eq!(book.begun(7), 1);
    });
}

#[test]
fn an_idle_actor_stays_while_it_has_an_address_and_is_used_again() {
    simulated(async |home| {
        let (set, book) = idle_set(home, 8 * MINUTE);
        let actor = set.get_or_spawn(&7).await.unwrap();
        sleep(60 * MINUTE).await;
        assert!(!actor.is_closed());
        // The set has an address again, which keeps the actor.
        set.tell(&7, Order::Add(1)).unwrap();
        drop(actor);
        sleep(7 * MINUTE).await;
        assert_eq!(set.ask(&7, Order::Look).await.unwrap(), (1, vec![1]));
        assert_eq!(book.begun(7), 1);
        set.ended().await;
    });
}

#[test]
fn an_idle_actor_stays_while_it_has_a_source_or_a_message_in_hand() {
    simulated(async |home| {
        let make = |_key: u32| {
            actor(async |mut cx: greenroom::Context<u32>| {
                cx.send_after(60 * MINUTE, 1).detach();
                let begun = Instant::now();
                let mut seen = Vec::new();
                while let Some(number) = cx.recv().await {
                    sleep(30 * MINUTE).await;
                    seen.push((number, begun.elapsed().as_secs() / 60));
                }
                seen
            })
        };
        let log = crate::support::Log::default();
        let own = log.clone();
        let set = Keyed::builder(make).on(&home.runtime).idle(MINUTE);
        let set = set.on_end(move |_, result| own.add(result.unwrap()));
        let set = set.build().unwrap();
        set.tell(&7, 0).unwrap();
        set.ended().await;
        assert_eq!(log.take(), [vec![(0, 30), (1, 90)]]);
    });
}

#[test]
fn a_set_without_an_idle_time_keeps_its_actors() {
    simulated(async |home| {
        let (set, book) = super::set(home);
        set.tell(&7, Order::Add(1)).unwrap();
        sleep(10_000 * MINUTE).await;
        assert_eq!(set.ask(&7, Order::Look).await.unwrap(), (1, vec![1]));
        assert_eq!(book.begun(7), 1);
    });
}

#[test]
fn a_set_without_actors_sets_no_timer() {
    simulated(async |home| {
        let (set, _book) = idle_set(home, MINUTE);
        for _ in 0..3 {
            set.tell(&7, Order::Add(1)).unwrap();
            set.ended().await;
            let before = Instant::now();
            home.runtime.quiescent().await;
            assert!(before.elapsed() < MINUTE);
        }
    });
}
