//! The average response time, and what a spool does when it is too long.

use super::*;

/// Starts a spool of one worker that is busy from an average of one second.
fn responsive(pass_rate: u32) -> Spool<Job, usize> {
    let spool = Spool::builder(work).workers(1).responsiveness(seconds(1.0));
    spool.busy_pass_rate(pass_rate).spawn().unwrap()
}

async fn take(spool: &Spool<Job, usize>, time: f64) {
    assert_eq!(spool.ask(Job::Take(seconds(time))).await, Ok(0));
}

#[test]
fn the_average_covers_the_last_32_answers_with_their_wait() {
    simulated(|| async {
        let spool = Spool::builder(work).workers(1).responsiveness(None);
        let spool = spool.spawn().unwrap();
        assert_eq!(spool.status().average, Duration::ZERO);
        let (first, second) = (
            post(&spool, Job::Take(seconds(1.0))),
            post(&spool, Job::Say),
        );
        assert_eq!((first.await, second.await), (Ok(0), Ok(0)));
        assert_eq!(average(&spool), seconds(1.0));
        take(&spool, 4.0).await;
        assert_eq!(average(&spool), seconds(2.0));
        for _ in 0..29 {
            take(&spool, 0.0).await;
        }
        assert_eq!(average(&spool), rounded(seconds(6.0) / 32));
        // Now the oldest ones leave.
        take(&spool, 3.0).await;
        take(&spool, 0.0).await;
        assert_eq!(average(&spool), rounded(seconds(7.0) / 32));
    });
}

#[test]
fn refusals_and_lost_replies_count_in_the_average_and_timeouts_do_not() {
    simulated(|| async {
        let spool = responsive(1);
        take(&spool, 0.5).await;
        is_refused(
            spool.ask(Job::Take(seconds(6.0))).await,
            RefusalKind::TimedOut,
        );
        assert_eq!(average(&spool), seconds(0.5));
        sleep(seconds(1.0)).await;
        let _ = spool.ask(Job::Refuse).await;
        assert_eq!(average(&spool), seconds(0.25));
        let _ = spool.ask(Job::Drop).await;
        assert_eq!(average(&spool), rounded(seconds(0.5) / 3));
    });
}

#[test]
fn a_busy_spool_lets_one_of_several_requests_pass() {
    simulated(|| async {
        let spool = responsive(10);
        take(&spool, 1.0).await;
        for round in 1..=40 {
            let outcome = spool.ask(Job::Take(seconds(1.0))).await;
            if round % 10 == 0 {
                assert_eq!(outcome, Ok(0), "{round}");
                continue;
            }
            let refused = refusal(outcome);
            assert_eq!(refused.kind(), RefusalKind::Busy);
            assert_eq!(refused.average().map(rounded), Some(seconds(1.0)));
            let text = "message rejected by spool (average response time 1.00)";
            assert_eq!(refused.to_string(), text);
        }
        assert_eq!(spool.status().refused_busy, 36);
    });
}

#[test]
fn the_count_of_judged_requests_is_never_reset() {
    simulated(|| async {
        let spool = Spool::builder(work).workers(2);
        let spool = spool.responsiveness(seconds(1.0)).busy_pass_rate(3);
        let spool = spool.spawn().unwrap();
        let take = |time| post(&spool, Job::Take(seconds(time)));
        let slow = take(1.2);
        sleep(seconds(1.1)).await;
        let quick = take(0.3);
        assert_eq!(slow.await, Ok(0));
        assert_eq!(average(&spool), seconds(1.2));
        // The first one that is judged.
        is_refused(spool.ask(Job::Say).await, RefusalKind::Busy);
        assert_eq!(quick.await, Ok(1));
        // It has recovered: requests are not judged.
        assert_eq!(average(&spool), seconds(0.75));
        assert!(spool.ask(Job::Say).await.is_ok());
        // The count goes on with two when it is busy again.
        assert!(take(3.0).await.is_ok());
        assert_eq!(average(&spool), seconds(4.5 / 4.0));
        is_refused(spool.ask(Job::Say).await, RefusalKind::Busy);
        assert!(spool.ask(Job::Take(seconds(1.0))).await.is_ok());
        for _ in 0..2 {
            is_refused(spool.ask(Job::Say).await, RefusalKind::Busy);
        }
        assert!(spool.ask(Job::Say).await.is_ok());
    });
}

#[test]
fn a_busy_spool_recovers_when_its_workers_do() {
    simulated(|| async {
        let spool = responsive(2);
        for _ in 0..32 {
            let _ = spool.ask(Job::Take(seconds(4.0))).await;
        }
        assert!(spool.status().average >= seconds(1.0));
        let mut sent = 0;
        while spool.status().average >= seconds(1.0) {
            let _ = spool.ask(Job::Say).await;
            sent += 1;
        }
        assert!(sent <= 64, "{sent}");
        for _ in 0..10 {
            assert_eq!(spool.ask(Job::Say).await, Ok(0));
        }
    });
}

#[test]
fn load_is_judged_before_the_queue() {
    simulated(|| async {
        let spool = Spool::builder(work).workers(1).capacity(1);
        let spool = spool.responsiveness(seconds(1.0)).spawn().unwrap();
        take(&spool, 2.0).await;
        for _ in 0..9 {
            is_refused(spool.ask(Job::Say).await, RefusalKind::Busy);
        }
        let passes = post(&spool, Job::Take(seconds(1.5)));
        for _ in 0..9 {
            is_refused(spool.ask(Job::Say).await, RefusalKind::Busy);
        }
        let waits = post(&spool, Job::Say);
        for _ in 0..9 {
            is_refused(spool.ask(Job::Say).await, RefusalKind::Busy);
        }
        is_refused(spool.ask(Job::Say).await, RefusalKind::Overloaded);
        assert_eq!((passes.await, waits.await), (Ok(0), Ok(0)));
    });
}

#[test]
fn an_admitted_request_is_not_refused_for_load_and_is_not_overtaken() {
    simulated(|| async {
        let spool = responsive(10);
        let slow = post(&spool, Job::Take(seconds(3.0)));
        let waiting = [post(&spool, Job::Say), post(&spool, Job::Say)];
        assert_eq!(slow.await, Ok(0));
        // The spool is busy from now on.
        is_refused(spool.ask(Job::Say).await, RefusalKind::Busy);
        for answer in waiting {
            assert_eq!(answer.await, Ok(0));
        }
    });
}

#[test]
fn a_worker_that_does_not_answer_in_time_is_given_up() {
    simulated(|| async {
        let spool = responsive(10);
        let begun = greenroom::time::Instant::now();
        let late = post(&spool, Job::Take(seconds(7.0)));
        let next = post(&spool, Job::Take(seconds(1.0)));
        let refused = refusal(late.await);
        assert_eq!(rounded(begun.elapsed()), seconds(5.0));
        assert_eq!(refused.to_string(), "timed out (no answer within 5 s)");
        assert_eq!(refused.kind(), RefusalKind::TimedOut);
        // Its next request waits in its mailbox, and the late answer has no effect.
        assert_eq!(next.await, Ok(0));
        assert_eq!(rounded(begun.elapsed()), seconds(8.0));
        let status = spool.status();
        assert_eq!((status.answered, status.refused_timed_out), (1, 1));
    });
}

#[test]
fn the_time_of_a_worker_begins_when_it_gets_the_request() {
    simulated(|| async {
        let spool = Spool::builder(work).workers(1).responsiveness(seconds(1.0));
        let spool = spool.busy_pass_rate(1).spawn().unwrap();
        let answers = [4.0, 4.0, 4.0].map(|time| post(&spool, Job::Take(seconds(time))));
        for answer in answers {
            assert_eq!(answer.await, Ok(0));
        }
        assert_eq!(average(&spool), seconds(8.0));
    });
}

#[test]
fn a_late_reply_is_not_wanted_and_settles_nothing() {
    simulated(|| async {
        let spool = responsive(1);
        let kept = Replies::default();
        is_refused(
            spool.ask(Job::Forward(kept.clone())).await,
            RefusalKind::TimedOut,
        );
        let late = kept.lock().unwrap().pop().unwrap();
        assert!(!late.is_wanted());
        let held = hold(&spool).await;
        late.send(99);
        assert_eq!(spool.status().busy, 1);
        assert_eq!(held.free().await, Ok(0));
        assert_eq!(spool.status().answered, 1);
    });
}
