//! Handlers that block, on the threads of a market.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures::channel::oneshot;
use futures::future::{join, join_all};
use greenroom::market::{self, Market};
use greenroom::{Runtime, unblock};
use greenroom_durable::{FinalOutcome, Job, Serve, Store};

use crate::support::{
    Log, Note, Refused, is_done_at_its_first_attempt, ms, notes, one_worker, secs, simulate,
};

/// Runs a test with a store in a real file, whose handlers are on real threads.
fn with_file<Fut: Future<Output = ()>>(test: impl FnOnce(Store) -> Fut) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    greenroom::run(async {
        let store = Store::sqlite(&path).open().await.unwrap();
        test(store.clone()).await;
        store.close().await;
    });
}

#[test]
fn a_handler_in_a_market_is_tried_again_and_a_panic_is_an_error() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let market = Market::<()>::builder().build().unwrap();
        let own = log.clone();
        let workers = queue.serve_blocking(one_worker(), &market, move |job| {
            own.add(job.attempt());
            match job.attempt() {
                1 => Err(Refused),
                2 => panic!("a handler"),
                _ => Ok(()),
            }
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(1)).id("one")).await.unwrap();
        assert_eq!(queue.outcome("one").await.unwrap(), FinalOutcome::Done);
        assert_eq!(log.all(), [1, 2, 3]);
        workers.stop().await;

        // Attempts that a market refuses have failed.
        market.stop();
        let workers = queue.serve_blocking(one_worker(), &market, |_| Ok::<(), Refused>(()));
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(2)).id("two")).await.unwrap();
        let reason = "the market accepts no more jobs".to_owned();
        assert_eq!(
            queue.outcome("two").await.unwrap(),
            FinalOutcome::Dead { reason }
        );
        workers.stop().await;
    });
}

#[test]
fn workers_wait_while_the_board_of_the_market_is_full() {
    with_file(|store| async move {
        let queue = notes(&store).await;
        let market = Market::<()>::builder().max_workers(1).capacity(1);
        let market = market.build().unwrap();
        let running = Arc::new(AtomicUsize::new(0));
        let workers = queue.serve_blocking(Serve::workers(8), &market, move |_| {
            let before = running.fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::Relaxed);
            if before == 0 {
                Ok(())
            } else {
                Err("beside another one")
            }
        });
        let workers = workers.await.unwrap();
        let puts = (0..50).map(|number| queue.put(Job::new(Note(number))));
        for put in join_all(puts).await {
            assert!(put.unwrap());
        }
        queue.drain().await.unwrap();
        let status = queue.status().await.unwrap();
        assert_eq!((status.done, status.dead), (50, 0));
        workers.stop().await;
    });
}

#[test]
fn a_handler_in_a_market_sees_that_its_job_is_cancelled_and_one_that_waits_never_runs() {
    with_file(|store| async move {
        let queue = notes(&store).await;
        let market = Market::<()>::builder().max_workers(1).build().unwrap();
        let log = Log::new();
        let own = log.clone();
        let workers = queue.serve_blocking(Serve::workers(2), &market, move |job| {
            own.add(job.0);
            while !market::is_cancelled() {
                std::thread::yield_now();
            }
            Err(Refused)
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(1)).id("runs")).await.unwrap();
        while log.all().is_empty() {
            greenroom::yield_now().await;
        }
        queue.put(Job::new(Note(2)).id("waits")).await.unwrap();
        while queue.status().await.unwrap().running < 2 {
            greenroom::yield_now().await;
        }
        for id in ["waits", "runs"] {
            queue.cancel(id).await.unwrap();
            assert_eq!(queue.outcome(id).await.unwrap(), FinalOutcome::Cancelled);
        }
        assert_eq!(log.all(), [1]);
        workers.stop().await;
    });
}

#[test]
fn a_job_whose_worker_is_gone_is_given_back_when_its_handler_has_ended_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let runtime = Runtime::builder().grace(ms(1)).build().unwrap();
    let (go, goes) = mpsc::channel::<()>();
    let store = runtime.block_on(async {
        let store = Store::sqlite(&path).open().await.unwrap();
        let queue = notes(&store).await;
        let (begins, begun) = oneshot::channel();
        let once = std::sync::Mutex::new(Some((begins, goes)));
        let serve = Serve::workers(1).lease(secs(1_000_000));
        let workers = queue.serve(serve, move |job| {
            let (begins, goes) = once.lock().unwrap().take().unwrap();
            unblock(move || {
                begins.send(()).unwrap();
                goes.recv().unwrap();
                drop(job);
                Ok::<(), Refused>(())
            })
        });
        let _workers = workers.await.unwrap();
        let put = queue.put(Job::new(Note(1)).id("one"));
        let (put, begun) = join(put, begun).await;
        assert!(put.unwrap());
        begun.unwrap();
        store
    });
    // It leaves the thread of the handler behind.
    futures::executor::block_on(runtime.shutdown());
    greenroom::run(async {
        let queue = notes(&store).await;
        assert_eq!(queue.status().await.unwrap().running, 1);
        go.send(()).unwrap();
        is_done_at_its_first_attempt(&queue, "one").await;
    });
}
