//! Leases: one holder at a time, and tokens that only grow.

use greenroom::time::{Instant, sleep};
use greenroom_durable::Store;

use crate::support::{Log, ms, secs, simulate};

#[test]
fn a_lease_has_one_holder_at_a_time_and_its_tokens_grow() {
    simulate(|file, _| async move {
        let log = Log::new();
        let tasks = (0..4).map(|_| {
            let (file, log) = (file.clone(), log.clone());
            greenroom::spawn(async move {
                let store = Store::simulated(&file).open().await.unwrap();
                let lease = store.lease("leader").time(secs(3)).hold().await.unwrap();
                log.add((lease.token(), true));
                sleep(secs(20)).await;
                assert!(lease.is_held());
                log.add((lease.token(), false));
            })
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.await;
        }
        let log = log.all();
        assert_eq!(log.len(), 8);
        assert!(
            log.chunks(2)
                .all(|pair| pair[0].0 == pair[1].0 && pair[0].1)
        );
        assert!(log.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    });
}

#[test]
fn the_lease_of_a_process_that_has_ended_is_free_after_its_time() {
    simulate(|file, store| async move {
        let lease = store.lease("leader").time(secs(10)).hold().await.unwrap();
        sleep(secs(100)).await;
        assert!(lease.is_held());
        file.crash(&store);
        let start = Instant::now();
        let store = Store::simulated(&file).open().await.unwrap();
        let next = store.lease("leader").hold().await.unwrap();
        assert!(next.token() > lease.token());
        // The old holder has noticed before.
        assert!(!lease.is_held());
        lease.lost().await;
        assert!(
            (secs(6)..secs(11)).contains(&start.elapsed()),
            "{:?}",
            start.elapsed()
        );
    });
}

#[test]
fn a_lease_that_cannot_be_renewed_is_lost_before_another_one_holds_it() {
    simulate(|file, store| async move {
        let lease = store.lease("leader").time(secs(10)).hold().await.unwrap();
        file.fails(1.0);
        let start = Instant::now();
        lease.lost().await;
        assert!(
            (secs(9)..secs(12)).contains(&start.elapsed()),
            "{:?}",
            start.elapsed()
        );
        assert!(!lease.is_held());
        file.fails(0.0);
        let next = store.lease("leader").hold().await.unwrap();
        assert!(next.token() > lease.token());
    });
}

#[test]
fn a_lease_that_is_dropped_is_free_at_once() {
    simulate(|_, store| async move {
        let lease = store.lease("leader").time(secs(1000)).hold().await.unwrap();
        let start = Instant::now();
        drop(lease);
        drop(store.lease("leader").hold().await.unwrap());
        assert!(start.elapsed() < ms(100));
    });
}
