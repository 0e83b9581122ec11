//! Workers that join from outside, and leave.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::support::on_workers;

fn external() -> Spool<Job, usize> {
    Spool::external().spawn().unwrap()
}

#[test]
fn without_a_worker_a_request_is_refused_as_unavailable() {
    everywhere(|| async {
        let spool = external();
        let refused = refusal(spool.ask(Job::Say).await);
        assert_eq!(refused.kind(), RefusalKind::Unavailable);
        assert_eq!(
            refused.to_string(),
            "Service temporarily unavailable (no worker and no immediate prospects of one)",
        );
        let worker = work(3);
        spool.join_worker(worker.address());
        assert_eq!(spool.ask(Job::Say).await, Ok(3));
        assert!(spool.leave(&worker.address()));
        assert!(!spool.leave(&worker.address()));
        is_refused(spool.ask(Job::Say).await, RefusalKind::Unavailable);
        // The worker was not stopped.
        assert_eq!(worker.address().ask(|reply| (Job::Say, reply)).await, Ok(3));
        assert_eq!(spool.status().deaths, 0);
    });
}

#[test]
fn a_worker_that_joins_takes_the_oldest_request() {
    everywhere(|| async {
        let spool = external();
        let (first, second) = (work(1), work(2));
        spool.join_worker(first.address());
        let held = hold(&spool).await;
        let gate = Gate::default();
        let oldest = post(&spool, Job::Hold(gate.clone(), gate.clone()));
        let next = post(&spool, Job::Say);
        assert_eq!(spool.status().waiting, 2);
        spool.join_worker(second.address());
        assert_eq!((oldest.await, next.await), (Ok(2), Ok(2)));
        assert_eq!(held.free().await, Ok(1));
    });
}

#[test]
fn the_request_of_a_worker_that_leaves_is_aborted() {
    everywhere(|| async {
        let spool = external();
        let (first, second) = (work(1), work(2));
        spool.join_worker(first.address());
        spool.join_worker(second.address());
        let (one, two) = (hold(&spool).await, hold(&spool).await);
        let waits = post(&spool, Job::Say);
        assert!(spool.leave(&first.address()));
        let refused = refusal(one.answer.await);
        assert_eq!(refused.to_string(), "aborted (user or software interrupt)");
        // The leaver is not put back, so its late answer frees nothing.
        one.until.open();
        first
            .address()
            .ask(|reply| (Job::Say, reply))
            .await
            .unwrap();
        assert_eq!((spool.status().waiting, spool.status().idle), (1, 0));
        assert_eq!((two.free().await, waits.await), (Ok(2), Ok(2)));
        assert_eq!(spool.status().refused_aborted, 1);
    });
}

#[test]
fn the_last_worker_that_leaves_takes_the_prospects_of_those_that_wait() {
    everywhere(|| async {
        let spool = external();
        let worker = work(1);
        spool.join_worker(worker.address());
        let held = hold(&spool).await;
        let waits = [post(&spool, Job::Say), post(&spool, Job::Say)];
        spool.leave(&worker.address());
        is_refused(held.answer.await, RefusalKind::Aborted);
        for answer in waits {
            is_refused(answer.await, RefusalKind::Unavailable);
        }
        held.until.open();
    });
}

#[test]
fn a_joined_worker_that_ends_has_no_successor() {
    simulated(|| async {
        let spool = external();
        let worker = work(1);
        spool.join_worker(worker.address());
        let dies = post(&spool, Job::Panic);
        let waits = post(&spool, Job::Say);
        assert_eq!(cause(dies.await), AskCause::Panicked("bomb 1".to_owned()));
        is_refused(waits.await, RefusalKind::Unavailable);
        sleep(seconds(100.0)).await;
        let status = spool.status();
        assert_eq!((status.deaths, status.standing_down), (1, 0));
        is_refused(spool.ask(Job::Say).await, RefusalKind::Unavailable);
    });
}

#[test]
fn a_worker_joins_once() {
    everywhere(|| async {
        let spool = external();
        let worker = work(1);
        for _ in 0..3 {
            spool.join_worker(worker.address());
        }
        assert_eq!(spool.status().idle, 1);
        let held = hold(&spool).await;
        let waits = post(&spool, Job::Say);
        assert_eq!((spool.status().busy, spool.status().waiting), (1, 1));
        assert_eq!((held.free().await, waits.await), (Ok(1), Ok(1)));
    });
}

#[test]
fn a_spool_with_workers_of_its_own_takes_others_too() {
    everywhere(|| async {
        let spool = spool(2);
        let worker = work(9);
        spool.join_worker(worker.address());
        let answers = [0, 1, 9, 0, 1, 9];
        for expected in answers {
            assert_eq!(spool.ask(Job::Say).await, Ok(expected));
        }
        spool.resize(1).unwrap();
        wait_for(&spool, |it| it.idle == 2).await;
        // One of its own does not leave.
        spool.stop();
        let _ = spool.join().await;
        assert_eq!(worker.address().ask(|reply| (Job::Say, reply)).await, Ok(9));
    });
}

#[test]
fn a_spool_that_stops_adds_no_worker() {
    everywhere(|| async {
        let spool = external();
        spool.stop();
        let _ = spool.join().await;
        let worker = work(1);
        spool.join_worker(worker.address());
        assert_eq!(spool.status(), SpoolStatus::default());
        // It keeps no address of the worker either.
        let ended = worker.address().downgrade();
        drop(worker);
        drop(spool);
        ended.closed().await;
    });
}

#[test]
fn a_stop_waits_for_the_requests_of_joined_workers_and_leaves_them_alone() {
    everywhere(|| async {
        let spool = external();
        let worker = work(1);
        spool.join_worker(worker.address());
        let held = hold(&spool).await;
        let waits = post(&spool, Job::Say);
        spool.stop();
        is_refused(waits.await, RefusalKind::Aborted);
        assert_eq!(held.free().await, Ok(1));
        assert_eq!(spool.join().await.unwrap_err().kind(), RefusalKind::Aborted);
        assert_eq!(worker.ask(|reply| (Job::Say, reply)).await, Ok(1));
    });
}

#[test]
fn a_worker_that_has_rejoined_while_it_was_full_is_idle_once() {
    simulated(|| async {
        let spool = Spool::external()
            .responsiveness(seconds(0.5))
            .busy_pass_rate(1);
        let spool = spool.spawn().unwrap();
        let bounded = actor(move |cx| worker(cx, 1)).capacity(1).spawn();
        spool.join_worker(bounded.address());
        // The worker sleeps, and its mailbox has no room.
        is_refused(
            spool.ask(Job::Take(seconds(8.0))).await,
            RefusalKind::TimedOut,
        );
        is_refused(spool.ask(Job::Say).await, RefusalKind::TimedOut);
        let waits = post(&spool, Job::Say);
        sleep(seconds(0.1)).await;
        assert!(spool.leave(&bounded.address()));
        is_refused(waits.await, RefusalKind::Unavailable);
        spool.join_worker(bounded.address());
        assert_eq!(spool.status().idle, 1);
        sleep(seconds(10.0)).await;
        assert_eq!(spool.status().idle, 1);
        let held = hold(&spool).await;
        let waits = post(&spool, Job::Say);
        assert_eq!(spool.status().waiting, 1);
        assert_eq!((held.free().await, waits.await), (Ok(1), Ok(1)));
    });
}

#[test]
fn a_request_gets_room_in_its_turn_among_other_senders() {
    // Without a turn, a request waits until the others have sent all.
    const MOST: usize = 100_000;
    on_workers(1, async {
        let bounded = actor(move |cx| worker(cx, 1)).capacity(1).spawn();
        let sent = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let (bounded, sent) = (bounded.address(), sent.clone());
            let others = async move {
                while sent.fetch_add(1, Ordering::Relaxed) < MOST {
                    let (reply, _answer) = greenroom::Reply::pair();
                    if bounded.send((Job::Say, reply)).await.is_err() {
                        return;
                    }
                }
            };
            greenroom::spawn(others).detach();
        }
        let spool = Spool::external().responsiveness(None).spawn().unwrap();
        spool.join_worker(bounded.address());
        while sent.load(Ordering::Relaxed) == 0 {
            yield_now().await;
        }
        for _ in 0..20 {
            assert_eq!(spool.ask(Job::Say).await, Ok(1));
        }
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < MOST, "{sent} messages went before");
    });
}

#[test]
fn requests_that_come_back_from_closed_workers_stay_in_order() {
    simulated(|| async {
        let spool = Spool::external().responsiveness(seconds(0.5));
        let spool = spool.spawn().unwrap();
        let closed = [work(1), work(2)];
        for worker in &closed {
            spool.join_worker(worker.address());
        }
        // The workers are given up at the same time. Their next requests come back together.
        let never = Gate::default();
        let hanging = [0; 2].map(|_| post(&spool, Job::Hold(Gate::default(), never.clone())));
        closed.iter().for_each(|worker| worker.address().stop());
        sleep(seconds(1.0)).await;
        let third = work(3);
        spool.join_worker(third.address());
        let held = hold(&spool).await;
        let gates = [0; 3].map(|_| Gate::default());
        let waiting = [0, 1, 2].map(|it| post(&spool, Job::Hold(gates[it].clone(), never.clone())));
        for answer in hanging {
            is_refused(answer.await, RefusalKind::TimedOut);
        }
        assert_eq!((held.free().await, spool.status().waiting), (Ok(3), 2));
        gates[0].wait().await;
        assert!(!gates[1].is_open() && !gates[2].is_open());
        never.open();
        for answer in waiting {
            assert_eq!(answer.await, Ok(3));
        }
    });
}

#[test]
fn a_spool_does_not_join_itself() {
    everywhere(|| async {
        let spool = external();
        spool.join_worker(spool.address());
        is_refused(spool.ask(Job::Say).await, RefusalKind::Unavailable);
        let weak = spool.address().downgrade();
        drop(spool);
        weak.closed().await;
    });
}
