//! Workers that end between two requests, and requests whose askers are gone.

use super::*;

use greenroom::{Answer, spawn};

#[test]
fn a_worker_that_answers_and_ends_leaves_the_next_request_to_others() {
    everywhere(|| async {
        let once = async |mut cx: Context<Work>| {
            let (_, reply) = cx.recv().await.unwrap();
            reply.send(1);
        };
        let spool = Spool::builder(move |_| actor(once).spawn());
        let spool = spool.workers(2).stand_down(seconds(2.0)).spawn().unwrap();
        let mut answers: Vec<_> = (0..6).map(|_| post(&spool, Job::Say)).collect();
        // Each of the two workers has one answer.
        let rest = answers.split_off(2);
        for answer in answers {
            assert_eq!(answer.await, Ok(1));
        }
        wait_for(&spool, |it| it.standing_down == 2).await;
        let status = spool.status();
        let counts = (status.answered, status.waiting, status.lost);
        assert_eq!(counts, (2, 4, 0));
        spool.stop();
        assert!(spool.join().await.is_err());
        for answer in rest {
            is_refused(answer.await, RefusalKind::Aborted);
        }
    });
}

#[test]
fn requests_without_askers_make_room_wherever_they_wait() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(1).capacity(3).spawn().unwrap();
        let held = hold(&spool).await;
        let wanted = post(&spool, Job::Say);
        let unwanted: [Answer<usize>; 2] = [post(&spool, Job::Say), post(&spool, Job::Say)];
        drop(unwanted);
        // The lines are looked through once as many requests have come in vain.
        let mut late: Vec<_> = (0..5).map(|_| post(&spool, Job::Say)).collect();
        assert_eq!(spool.status().unwanted, 2);
        let last = late.pop().unwrap();
        assert_eq!(held.free().await, Ok(0));
        assert_eq!(wanted.await, Ok(0));
        assert_eq!(last.await, Ok(0));
    });
}

#[test]
fn a_queue_without_a_limit_forgets_requests_without_askers() {
    everywhere(|| async {
        let spool = spool(1);
        let held = hold(&spool).await;
        for _ in 0..3000 {
            drop(post(&spool, Job::Say));
        }
        assert!(spool.status().waiting <= 1024, "{:?}", spool.status());
        assert_eq!(held.free().await, Ok(0));
    });
}

#[test]
fn a_stop_within_an_answer_ends_the_spool() {
    within(WATCH, || {
        on_two_workers(async {
            let spool = Spool::external()
                .retries(1)
                .responsiveness(None)
                .spawn()
                .unwrap();
            let (silent, own) = (hold_back(&spool), spool.clone());
            let answers: Vec<_> = (0..40).map(|_| post(&spool, Job::Say)).collect();
            let calls = std::sync::atomic::AtomicUsize::new(0);
            let sink = spawn!(async |mut cx: Context<()>| while cx.recv().await.is_some() {});
            let quick = sink.address().map(move |(_, reply): Work| {
                // The 17th answer is left to the manager.
                if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 16 {
                    assert!(own.leave(&silent));
                    own.stop();
                    // Until the stop has answered those that wait.
                    while own.status().waiting > 0 {
                        std::thread::yield_now();
                    }
                }
                reply.send(7);
            });
            spool.join_worker(quick);
            assert!(spool.join().await.is_err());
            for answer in answers {
                let _ = answer.await;
            }
        });
    });
}

/// Lets a worker join that never answers, so that requests wait.
fn hold_back(spool: &Spool<Job, usize>) -> Address<Work> {
    let silent = spawn!(async |mut cx: Context<Work>| {
        let mut kept = Vec::new();
        while let Some(work) = cx.recv().await {
            kept.push(work);
        }
    });
    spool.join_worker(silent.address());
    silent.address()
}

#[test]
fn thousands_of_workers_come_and_go() {
    within(WATCH, || {
        on_two_workers(async {
            let spool = spool(20_000);
            assert_eq!(spool.status().idle, 20_000);
            spool.stop();
            assert!(spool.join().await.is_err());
        });
    });
}
