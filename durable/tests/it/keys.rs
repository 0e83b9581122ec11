//! Jobs of one key: one at a time, in their order.

use greenroom::time::sleep;
use greenroom_durable::{FinalOutcome, Job, Serve};

use crate::support::{Log, Note, Refused, ms, notes, one_worker, secs, simulate};

#[test]
fn jobs_of_one_key_run_one_at_a_time_in_their_order() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let own = log.clone();
        let workers = queue.serve(Serve::workers(4), move |job| {
            let (key, own) = (job.key().unwrap().to_owned(), own.clone());
            async move {
                own.add((key.clone(), job.0, true));
                sleep(ms(5)).await;
                own.add((key, job.0, false));
                Ok::<(), Refused>(())
            }
        });
        let workers = workers.await.unwrap();
        for number in 0..12 {
            let key = ["a", "b", "c"][number as usize % 3];
            queue.put(Job::new(Note(number)).key(key)).await.unwrap();
        }
        queue.drain().await.unwrap();
        workers.stop().await;
        for key in ["a", "b", "c"] {
            let own = log.all().into_iter().filter(|(of, ..)| of == key);
            let own: Vec<_> = own.map(|(_, number, begins)| (number, begins)).collect();
            let first = own[0].0;
            let expected = (0..4).flat_map(|n| [(first + 3 * n, true), (first + 3 * n, false)]);
            assert_eq!(own, expected.collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_job_that_is_due_earlier_goes_before_those_of_its_key() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        for (number, delay) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 0)] {
            let job = Job::new(Note(number)).key("a").after(secs(delay));
            queue.put(job).await.unwrap();
        }
        let own = log.clone();
        let workers = queue.serve(Serve::workers(2), move |job| {
            own.add(job.0);
            async { Ok::<(), Refused>(()) }
        });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
        assert_eq!(log.all(), [5, 2, 4, 3, 1]);
    });
}

#[test]
fn priority_chooses_between_keys_and_not_within_one() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        for (number, key, priority) in [(1, "a", 0), (2, "a", 9), (3, "b", 5), (4, "b", 0)] {
            let job = Job::new(Note(number)).key(key).priority(priority);
            queue.put(job).await.unwrap();
        }
        let own = log.clone();
        let workers = queue.serve(one_worker(), move |job| {
            own.add(job.0);
            async { Ok::<(), Refused>(()) }
        });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
        assert_eq!(log.all(), [3, 1, 2, 4]);
    });
}

/// Puts two jobs of a key, of which the first fails once. Returns the attempts in their order.
fn fails_first(serve: impl Fn(Serve) -> Serve + Copy, expected: &'static [u64]) {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        for number in [1, 2] {
            queue.put(Job::new(Note(number)).key("a")).await.unwrap();
        }
        let own = log.clone();
        let workers = queue.serve(serve(one_worker()), move |job| {
            own.add(job.0);
            let is_refused = job.0 == 1 && job.attempt() == 1;
            async move { if is_refused { Err(Refused) } else { Ok(()) } }
        });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
        assert_eq!(log.all(), expected);
    });
}

#[test]
fn a_job_that_waits_for_its_retry_holds_its_key_back() {
    fails_first(|serve| serve, &[1, 1, 2]);
}

#[test]
fn with_skip_failed_the_others_of_its_key_pass_it() {
    fails_first(Serve::skip_failed, &[1, 2, 1]);
}

#[test]
fn the_next_job_of_a_key_follows_one_that_was_cancelled_or_is_dead() {
    simulate(|_, store| async move {
        let queue = notes(&store).await;
        for (number, id) in [(1, "one"), (2, "two"), (3, "three")] {
            queue
                .put(Job::new(Note(number)).key("a").id(id))
                .await
                .unwrap();
        }
        queue.cancel("one").await.unwrap();
        let workers = queue.serve(one_worker(), |job| async move {
            if job.0 == 2 { Err(Refused) } else { Ok(()) }
        });
        let workers = workers.await.unwrap();
        assert_eq!(queue.outcome("three").await.unwrap(), FinalOutcome::Done);
        let reason = "refused".to_owned();
        assert_eq!(
            queue.outcome("two").await.unwrap(),
            FinalOutcome::Dead { reason }
        );

        store.requeue("notes", 2).await.unwrap();
        queue.drain().await.unwrap();
        assert_eq!(
            store.dead_jobs("notes", 0, 10).await.unwrap()[0].attempts,
            3
        );
        queue.cancel("two").await.unwrap();
        assert_eq!(queue.status().await.unwrap().dead, 0);
        let outcome = queue.outcome("two").await.unwrap();
        assert_eq!(outcome, FinalOutcome::Cancelled);
        workers.stop().await;
    });
}
