//! Jobs that are put, taken and done once.

use futures_lite::future::or;
use greenroom::sim;
use greenroom::time::{Instant, sleep};
use greenroom_durable::{FinalOutcome, Job, Limits, Serve, Store, StoreProblem};

use crate::support::{Log, Note, Refused, ms, notes, one_worker, secs, simulate};

#[test]
fn a_job_is_done_once() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let own = log.clone();
        let workers = queue.serve(Serve::workers(3), move |job| {
            own.add(job.0);
            async { Ok::<(), Refused>(()) }
        });
        let workers = workers.await.unwrap();
        for number in 0..10 {
            assert!(queue.put(Job::new(Note(number))).await.unwrap());
        }
        queue.drain().await.unwrap();
        workers.stop().await;
        let mut done = log.all();
        done.sort();
        assert_eq!(done, (0..10).collect::<Vec<_>>());
        let status = queue.status().await.unwrap();
        assert_eq!((status.waiting, status.running, status.done), (0, 0, 10));
        assert_eq!(status.rate, 10);
    });
}

#[test]
fn a_job_that_was_put_is_there_after_a_crash() {
    simulate(|file, store| async move {
        let queue = notes(&store).await;
        queue.put(Job::new(Note(7)).id("seven")).await.unwrap();
        file.crash(&store);
        let error = queue.put(Job::new(Note(8))).await.unwrap_err();
        assert_eq!(
            (error.why, error.job.into_inner()),
            (StoreProblem::Closed, Note(8))
        );

        let store = Store::simulated(&file).open().await.unwrap();
        let queue = notes(&store).await;
        let workers = queue.serve(one_worker(), |job| async move {
            assert_eq!(*job, Note(7));
            Ok::<(), Refused>(())
        });
        let workers = workers.await.unwrap();
        assert_eq!(queue.outcome("seven").await.unwrap(), FinalOutcome::Done);
        workers.stop().await;
    });
}

#[test]
fn a_job_whose_put_was_dropped_can_be_put_again_and_is_done_once() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        for round in 0..3 {
            // What a time-out does: the first one comes at any moment.
            let put = queue.put(Job::new(Note(7)).id("seven"));
            let _ = or(async { Some(put.await) }, async {
                sleep(ms(sim::random() % 20 * round)).await;
                None
            })
            .await;
        }
        queue.put(Job::new(Note(7)).id("seven")).await.unwrap();
        let own = log.clone();
        let workers = queue.serve(one_worker(), move |job| {
            own.add(job.0);
            async { Ok::<(), Refused>(()) }
        });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        assert_eq!(log.all(), [7]);
        workers.stop().await;
    });
}

#[test]
fn a_second_job_of_an_id_is_not_stored_until_the_window_is_over() {
    simulate(|_, store| async move {
        let queue = store
            .queue::<Note>("notes")
            .window(secs(60))
            .open()
            .await
            .unwrap();
        let job = || Job::new(Note(1)).id("one");
        assert!(queue.put(job()).await.unwrap());
        assert!(!queue.put(job()).await.unwrap());
        let workers = queue.serve(one_worker(), |_| async { Ok::<(), Refused>(()) });
        let workers = workers.await.unwrap();
        assert_eq!(queue.outcome("one").await.unwrap(), FinalOutcome::Done);
        assert!(!queue.put(job()).await.unwrap());
        sleep(secs(61)).await;
        assert!(queue.put(job()).await.unwrap());
        queue.drain().await.unwrap();
        assert_eq!(queue.status().await.unwrap().done, 2);
        workers.stop().await;
    });
}

#[test]
fn a_delayed_job_is_taken_when_it_is_due_and_not_before() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let (own, start) = (log.clone(), Instant::now());
        let workers = queue.serve(one_worker(), move |job| {
            own.add((job.0, start.elapsed()));
            async { Ok::<(), Refused>(()) }
        });
        let workers = workers.await.unwrap();
        queue
            .put(Job::new(Note(1)).after(secs(3600)))
            .await
            .unwrap();
        queue.put(Job::new(Note(2)).after(secs(30))).await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
        let log = log.all();
        let numbers: Vec<_> = log.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 1]);
        for ((_, at), due) in log.iter().zip([secs(30), secs(3600)]) {
            assert!((due..due + ms(500)).contains(at), "{at:?}");
        }
    });
}

#[test]
fn of_due_jobs_the_highest_priority_goes_first_and_of_equals_the_oldest() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        for (number, priority) in [(1, 0), (2, 9), (3, 0), (4, 255), (5, 9)] {
            queue
                .put(Job::new(Note(number)).priority(priority))
                .await
                .unwrap();
        }
        queue
            .put(Job::new(Note(6)).priority(255).after(secs(60)))
            .await
            .unwrap();
        let own = log.clone();
        let workers = queue.serve(one_worker(), move |job| {
            own.add(job.0);
            async { Ok::<(), Refused>(()) }
        });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
        assert_eq!(log.all(), [4, 2, 5, 1, 3, 6]);
    });
}

#[test]
fn a_waiting_job_is_cancelled_at_once_and_a_running_one_is_asked_to_end() {
    simulate(|_, store| async move {
        let queue = notes(&store).await;
        queue
            .put(Job::new(Note(1)).id("waits").after(secs(60)))
            .await
            .unwrap();
        queue.cancel("waits").await.unwrap();
        assert_eq!(
            queue.outcome("waits").await.unwrap(),
            FinalOutcome::Cancelled
        );
        assert_eq!(
            queue.cancel("waits").await.unwrap_err().why,
            StoreProblem::Missing
        );

        // In its first attempt and in its last one.
        for attempt in [1, 3] {
            let workers = queue.serve(one_worker(), move |job| async move {
                if job.attempt() == attempt {
                    job.cancelled().await;
                }
                Err(Refused)
            });
            let workers = workers.await.unwrap();
            let id = format!("runs {attempt}");
            queue.put(Job::new(Note(2)).id(&id)).await.unwrap();
            sleep(secs(5)).await;
            assert_eq!(queue.status().await.unwrap().running, 1);
            queue.cancel(&id).await.unwrap();
            let outcome = queue.outcome(&id).await.unwrap();
            assert_eq!(outcome, FinalOutcome::Cancelled);
            workers.stop().await;
        }
    });
}

#[test]
fn a_paused_queue_gives_no_job_in_any_process() {
    simulate(|file, store| async move {
        let queue = notes(&store).await;
        queue.pause().await.unwrap();
        let other = Store::simulated(&file).open().await.unwrap();
        let theirs = notes(&other).await;
        let workers = theirs.serve(one_worker(), |_| async { Ok::<(), Refused>(()) });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(1))).await.unwrap();
        sleep(secs(100)).await;
        let status = queue.status().await.unwrap();
        assert!(status.is_paused);
        assert_eq!((status.waiting, status.late), (1, 1));
        assert!(status.oldest.unwrap() >= secs(99));
        queue.resume().await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
    });
}

#[test]
fn what_exceeds_a_limit_is_refused_with_the_limit_and_given_back() {
    simulate(|file, _| async move {
        let limits = Limits {
            payload: 3,
            waiting: 1,
            name: 6,
            key: 3,
            queues: 1,
        };
        let store = Store::simulated(&file).limits(limits).open().await.unwrap();
        let too_large = |what, bytes, limit| StoreProblem::TooLarge { what, bytes, limit };
        let error = store.queue::<Note>("my notes").open().await.unwrap_err();
        assert_eq!(error.why, too_large("name", 8, 6));
        let queue = notes(&store).await;
        let error = store.queue::<Note>("more").open().await.unwrap_err();
        let limit = 1;
        assert_eq!(
            error.why,
            StoreProblem::TooMany {
                what: "queues",
                limit
            }
        );
        assert_eq!(
            error.to_string(),
            "\"more\": there are 1 queues, as many as may be"
        );

        let error = queue.put(Job::new(Note(1)).key("long")).await.unwrap_err();
        assert_eq!(error.why, too_large("key", 4, 3));
        let error = queue.put(Job::new(Note(1)).id("long")).await.unwrap_err();
        assert_eq!(error.why, too_large("id", 4, 3));
        let error = queue.put(Job::new(Note(1234))).await.unwrap_err();
        assert_eq!(error.why, too_large("payload", 4, 3));
        assert_eq!(error.job.into_inner(), Note(1234));
        queue.put(Job::new(Note(1))).await.unwrap();
        let error = queue.put(Job::new(Note(2))).await.unwrap_err();
        assert_eq!(
            error.why,
            StoreProblem::TooMany {
                what: "waiting jobs",
                limit
            }
        );
    });
}
