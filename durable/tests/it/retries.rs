//! Jobs that fail: retries, leases, dead letters.

use std::fmt;

use futures::future::join_all;
use greenroom::time::{Instant, sleep};
use greenroom_durable::{FinalOutcome, Job, Serve, Store, StoreProblem, Stored};
use serde::{Deserialize, Serialize};

use crate::support::{Log, Note, Refused, ms, notes, one_worker, secs, simulate};

#[test]
fn a_job_that_fails_is_tried_again_after_each_interval_and_then_dead() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let own = log.clone();
        let workers = queue.serve(one_worker(), move |job| {
            own.add((job.attempt(), Instant::now()));
            async { Err::<(), _>(Refused) }
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(5)).id("five")).await.unwrap();
        let reason = "refused".to_owned();
        assert_eq!(
            queue.outcome("five").await.unwrap(),
            FinalOutcome::Dead { reason }
        );
        let log = log.all();
        assert_eq!(
            log.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        for pair in log.windows(2) {
            assert!(pair[1].1.duration_since(pair[0].1) >= secs(1));
        }

        let dead = store.dead_jobs("notes", 0, 10).await.unwrap();
        assert_eq!(dead.len(), 1);
        assert_eq!((dead[0].attempts, &*dead[0].reason), (3, "refused"));
        assert_eq!(dead[0].decode::<Note>().unwrap(), Note(5));
        assert_eq!(queue.status().await.unwrap().dead, 1);
        store.discard("notes", dead[0].number).await.unwrap();
        let again = store.discard("notes", dead[0].number).await.unwrap_err();
        assert_eq!(again.why, StoreProblem::Missing);
        assert_eq!(
            queue.outcome("five").await.unwrap_err().why,
            StoreProblem::Missing
        );
        workers.stop().await;
    });
}

#[test]
fn a_dead_letter_that_is_put_again_has_all_its_attempts() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let own = log.clone();
        let workers = queue.serve(one_worker(), move |job| {
            own.add(job.attempt());
            let fails = own.all().len() < 5;
            async move { if fails { Err(Refused) } else { Ok(()) } }
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(5)).id("five")).await.unwrap();
        queue.outcome("five").await.unwrap();
        let number = store.dead_jobs("notes", 0, 1).await.unwrap()[0].number;
        assert!(
            store
                .dead_jobs("notes", number, 1)
                .await
                .unwrap()
                .is_empty()
        );
        store.requeue("notes", number).await.unwrap();
        assert_eq!(queue.outcome("five").await.unwrap(), FinalOutcome::Done);
        assert_eq!(log.all(), [1, 2, 3, 1, 2]);
        workers.stop().await;
    });
}

#[test]
fn without_retries_a_job_has_one_attempt() {
    simulate(|file, store| async move {
        let queue = notes(&store).await;
        queue.put(Job::new(Note(1)).id("fails")).await.unwrap();
        let serve = one_worker().retries(None);
        let workers = queue.serve(serve.clone(), |_| async { Err::<(), _>(Refused) });
        let workers = workers.await.unwrap();
        queue.outcome("fails").await.unwrap();
        workers.stop().await;
        queue.put(Job::new(Note(2)).id("crashes")).await.unwrap();
        let workers = queue.serve(serve.clone(), |_| async {
            sleep(secs(60)).await;
            Ok::<(), Refused>(())
        });
        let workers = workers.await.unwrap();
        while queue.status().await.unwrap().running == 0 {
            sleep(ms(1)).await;
        }
        file.crash(&store);
        drop(workers);

        let store = Store::simulated(&file).open().await.unwrap();
        let queue = notes(&store).await;
        let workers = queue.serve(serve, |_| async { Ok::<(), Refused>(()) });
        let workers = workers.await.unwrap();
        queue.drain().await.unwrap();
        workers.stop().await;
        let dead = store.dead_jobs("notes", 0, 10).await.unwrap();
        let dead: Vec<_> = dead
            .iter()
            .map(|job| (job.attempts, &*job.reason))
            .collect();
        let lease = "its lease was over in attempt 1, the last one";
        assert_eq!(dead, [(1, "refused"), (1, lease)]);
        // The handler of the process that has crashed ends.
        sleep(secs(100)).await;
    });
}

#[test]
fn a_handler_that_panics_has_failed() {
    simulate(|_, store| async move {
        let queue = notes(&store).await;
        let workers = queue.serve(one_worker(), |job| async move {
            std::panic::resume_unwind(Box::new(format!("no {}", job.0)));
            #[expect(unreachable_code, reason = "it has the type of the result")]
            Ok::<(), Refused>(())
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(5)).id("five")).await.unwrap();
        let reason = "panicked: no 5".to_owned();
        assert_eq!(
            queue.outcome("five").await.unwrap(),
            FinalOutcome::Dead { reason }
        );
        workers.stop().await;
    });
}

#[test]
fn a_job_whose_lease_is_over_goes_to_another_worker_and_the_first_one_is_refused() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let own = log.clone();
        let serve = one_worker().lease(secs(10));
        let workers = join_all((0..2).map(|_| {
            let own = own.clone();
            queue.serve(serve.clone(), move |job| {
                let own = own.clone();
                async move {
                    if job.attempt() == 1 {
                        sleep(secs(15)).await;
                        own.add(job.renew().await.unwrap_err().why);
                        own.add(job.progress(&1).await.unwrap_err().why);
                        job.cancelled().await;
                    } else {
                        sleep(secs(8)).await;
                        job.renew().await.unwrap();
                        sleep(secs(8)).await;
                    }
                    Ok::<(), Refused>(())
                }
            })
        }));
        let workers = workers.await;
        queue.put(Job::new(Note(1)).id("one")).await.unwrap();
        assert_eq!(queue.outcome("one").await.unwrap(), FinalOutcome::Done);
        assert_eq!(log.all(), [StoreProblem::Stale, StoreProblem::Stale]);
        assert_eq!(queue.status().await.unwrap().done, 1);
        for workers in workers {
            workers.unwrap().stop().await;
        }
    });
}

#[test]
fn a_job_that_is_short_is_done_once_also_with_a_lease_of_no_time() {
    simulate(|_, store| async move {
        let queue = notes(&store).await;
        let serve = Serve::workers(2).lease(secs(0));
        let workers = queue.serve(serve, |job| async move {
            assert_eq!(job.attempt(), 1);
            sleep(ms(3)).await;
            job.renew().await
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(1)).id("one")).await.unwrap();
        assert_eq!(queue.outcome("one").await.unwrap(), FinalOutcome::Done);
        workers.stop().await;
    });
}

#[test]
fn a_job_that_ends_its_process_each_time_is_dead_after_its_last_attempt() {
    simulate(|file, _| async move {
        for _ in 0..3 {
            let store = Store::simulated(&file).open().await.unwrap();
            let (queue, log) = (notes(&store).await, Log::new());
            queue.put(Job::new(Note(1)).id("one")).await.unwrap();
            let own = log.clone();
            let workers = queue.serve(one_worker(), move |_| {
                own.add(());
                async {
                    sleep(secs(60)).await;
                    Ok::<(), Refused>(())
                }
            });
            let workers = workers.await.unwrap();
            while log.all().is_empty() {
                sleep(ms(10)).await;
            }
            file.crash(&store);
            drop(workers);
        }
        let store = Store::simulated(&file).open().await.unwrap();
        let queue = notes(&store).await;
        let workers = queue.serve(one_worker(), |_| async { Ok::<(), Refused>(()) });
        let workers = workers.await.unwrap();
        let FinalOutcome::Dead { reason } = queue.outcome("one").await.unwrap() else {
            panic!("it has another outcome");
        };
        assert_eq!(reason, "its lease was over in attempt 3, the last one");
        workers.stop().await;
        // The handlers of the processes that have crashed end.
        sleep(secs(100)).await;
    });
}

#[test]
fn progress_is_there_in_the_next_attempt() {
    simulate(|_, store| async move {
        let queue = notes(&store).await;
        let workers = queue.serve(one_worker(), |job| async move {
            let last: Option<u32> = job.last_progress().unwrap();
            match last {
                Some(3) => Ok(()),
                last => {
                    job.progress(&(last.unwrap_or(1) + 1)).await.unwrap();
                    Err(Refused)
                }
            }
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(1)).id("one")).await.unwrap();
        assert_eq!(queue.outcome("one").await.unwrap(), FinalOutcome::Done);
        workers.stop().await;
    });
}

/// Another version of the note.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LaterNote {
    number: u64,
}

impl Stored for LaterNote {
    const KIND: &'static str = "note/2";

    fn upgrade(kind: &str, bytes: &[u8]) -> Option<Self> {
        let known = serde_json::from_slice(bytes).ok();
        let number = known.filter(|number| kind == "note/1" && *number < 100)?;
        Some(LaterNote { number })
    }
}

#[test]
fn a_job_of_an_older_kind_is_upgraded_and_one_that_is_not_understood_is_dead_with_its_bytes() {
    simulate(|_, store| async move {
        let queue = notes(&store).await;
        queue.put(Job::new(Note(7)).id("known")).await.unwrap();
        queue.put(Job::new(Note(700)).id("unknown")).await.unwrap();
        let later = store.queue::<LaterNote>("notes").open().await.unwrap();
        let workers = later.serve(Serve::workers(1), |job| async move {
            assert_eq!(job.number, 7);
            Ok::<(), Refused>(())
        });
        let workers = workers.await.unwrap();
        assert_eq!(queue.outcome("known").await.unwrap(), FinalOutcome::Done);
        let FinalOutcome::Dead { reason } = queue.outcome("unknown").await.unwrap() else {
            panic!("it has another outcome");
        };
        let why = "its payload cannot be decoded: its kind is \"note/1\", not \"note/2\"";
        assert_eq!(reason, why);
        let dead = store.dead_jobs("notes", 0, 10).await.unwrap();
        assert_eq!((&*dead[0].kind, &*dead[0].payload), ("note/1", &b"700"[..]));
        workers.stop().await;
    });
}

/// A version of the note that panics when it is to be upgraded, or shown.
#[derive(Serialize, Deserialize)]
struct BrittleNote;

impl Stored for BrittleNote {
    const KIND: &'static str = "note/3";

    fn upgrade(_: &str, _: &[u8]) -> Option<Self> {
        std::panic::resume_unwind(Box::new("no upgrade"))
    }
}

impl fmt::Display for BrittleNote {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::panic::resume_unwind(Box::new("no text"))
    }
}

#[test]
fn a_panic_of_what_decodes_a_job_or_shows_an_error_ends_no_worker() {
    simulate(|_, store| async move {
        let brittle = store.queue::<BrittleNote>("notes").open().await.unwrap();
        let workers = brittle.serve(one_worker(), |_| async { Err(BrittleNote) });
        let workers = workers.await.unwrap();
        let queue = notes(&store).await;
        queue.put(Job::new(Note(1)).id("upgrade")).await.unwrap();
        brittle.put(Job::new(BrittleNote).id("text")).await.unwrap();
        for (id, what) in [("upgrade", "no upgrade"), ("text", "no text")] {
            let reason = format!("panicked: {what}");
            let dead = FinalOutcome::Dead { reason };
            assert_eq!(queue.outcome(id).await.unwrap(), dead);
        }
        workers.stop().await;
    });
}
