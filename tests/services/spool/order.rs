//! Which worker gets a request, and how requests wait.

use super::*;

use greenroom::Overflow;
use greenroom::time::Instant;

#[test]
fn the_worker_that_has_been_idle_longest_gets_the_request() {
    everywhere(|| async {
        let spool = spool(3);
        for round in 0..9 {
            assert_eq!(spool.ask(Job::Say).await, Ok(round % 3));
        }
        // A worker that answers goes to the end of the line.
        let first = hold(&spool).await;
        let second = hold(&spool).await;
        assert_eq!(second.free().await, Ok(1));
        assert_eq!(first.free().await, Ok(0));
        for expected in [2, 1, 0] {
            assert_eq!(spool.ask(Job::Say).await, Ok(expected));
        }
    });
}

#[test]
fn each_answer_reaches_its_own_client() {
    everywhere(|| async {
        let (a, b) = (greenroom::Reply::pair(), greenroom::Reply::pair());
        let spool = Spool::builder(|_| {
            actor(|mut cx: Context<(u32, Reply<u32>)>| async move {
                while let Some((number, reply)) = cx.recv().await {
                    reply.send(number * 2);
                }
            })
            .spawn()
        });
        let spool = spool.workers(2).spawn().unwrap();
        spool.tell(1, a.0).unwrap();
        spool.send(2, b.0).await.unwrap();
        assert_eq!((b.1.await, a.1.await), (Ok(4), Ok(2)));
        let requests = (0..50).map(|number| spool.request(number));
        let answers = greenroom::concurrently(requests.collect::<Vec<_>>()).await;
        let expected: Vec<_> = (0..50).map(|number| Ok(number * 2)).collect();
        assert_eq!(answers, expected);
    });
}

#[test]
fn requests_wait_in_order_of_arrival_while_all_workers_are_busy() {
    everywhere(|| async {
        let order = Log::default();
        let log = order.clone();
        let ones = Spool::builder(move |_| {
            let log = log.clone();
            actor(|mut cx: Context<((u32, Gate), Reply<()>)>| async move {
                while let Some(((number, gate), reply)) = cx.recv().await {
                    log.add(number);
                    gate.wait().await;
                    reply.send(());
                }
            })
            .spawn()
        });
        let spool = ones.workers(1).spawn().unwrap();
        let gate = Gate::default();
        let answers: Vec<_> = (0..20)
            .map(|number| {
                let (reply, answer) = greenroom::Reply::pair();
                spool.tell((number, gate.clone()), reply).unwrap();
                answer
            })
            .collect();
        let status = spool.status();
        assert_eq!((status.busy, status.waiting, status.idle), (1, 19, 0));
        gate.open();
        for answer in answers {
            answer.await.unwrap();
        }
        assert_eq!(order.take(), (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn a_full_queue_refuses_the_newest_at_once_and_says_how_many_wait() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(1).capacity(2);
        let spool = spool.spawn().unwrap();
        let held = hold(&spool).await;
        let waiting = [post(&spool, Job::Say), post(&spool, Job::Say)];
        let refused = refusal(spool.ask(Job::Say).await);
        assert_eq!(refused.kind(), RefusalKind::Overloaded);
        assert_eq!(
            refused.to_string(),
            "message rejected by spool (overloaded, 2 pending)",
        );
        assert_eq!((refused.pending(), refused.average()), (Some(2), None));
        assert_eq!(held.free().await, Ok(0));
        for answer in waiting {
            assert_eq!(answer.await, Ok(0));
        }
        let status = spool.status();
        assert_eq!((status.answered, status.refused_overloaded), (3, 1));
    });
}

#[test]
fn a_full_queue_refuses_the_oldest_if_told_so() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(1).capacity(2);
        let spool = spool.overflow(Overflow::Oldest).spawn().unwrap();
        let held = hold(&spool).await;
        let (first, second) = (post(&spool, Job::Say), post(&spool, Job::Say));
        let third = post(&spool, Job::Say);
        let refused = refusal(first.await);
        assert_eq!(refused.pending(), Some(2));
        assert_eq!(spool.status().waiting, 2);
        assert_eq!(held.free().await, Ok(0));
        assert_eq!((second.await, third.await), (Ok(0), Ok(0)));
    });
}

#[test]
fn a_request_waits_no_longer_than_the_queue_timeout() {
    simulated(|| async {
        let spool = Spool::builder(work).workers(1).responsiveness(None);
        let spool = spool.queue_timeout(seconds(1.5)).spawn().unwrap();
        let begun = Instant::now();
        let slow = post(&spool, Job::Take(seconds(2.0)));
        sleep(seconds(1.0)).await;
        let in_time = post(&spool, Job::Take(seconds(10.0)));
        let late = post(&spool, Job::Say);
        assert_eq!(slow.await, Ok(0));
        let refused = refusal(late.await);
        assert_eq!(rounded(begun.elapsed()), seconds(2.5));
        assert_eq!(refused.to_string(), "timed out (no answer within 1.5 s)");
        assert_eq!(refused.kind(), RefusalKind::TimedOut);
        // It limits the wait in the queue, and not the work.
        assert_eq!(in_time.await, Ok(0));
        assert_eq!(rounded(begun.elapsed()), seconds(12.0));
        assert_eq!(spool.status().refused_timed_out, 1);
    });
}

#[test]
fn requests_that_have_expired_make_room_in_the_queue() {
    simulated(|| async {
        let spool = Spool::builder(work).workers(1).capacity(1);
        let spool = spool.queue_timeout(seconds(1.0)).spawn().unwrap();
        let held = hold(&spool).await;
        for _ in 0..5 {
            let waits = post(&spool, Job::Say);
            sleep(seconds(1.0)).await;
            let next = post(&spool, Job::Say);
            is_refused(waits.await, RefusalKind::TimedOut);
            is_refused(next.await, RefusalKind::TimedOut);
        }
        assert_eq!(spool.status().refused_overloaded, 0);
        held.free().await.unwrap();
    });
}

#[test]
fn a_request_without_an_asker_is_dropped_unhandled() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(1).capacity(2);
        let spool = spool.spawn().unwrap();
        let held = hold(&spool).await;
        let kept = Replies::default();
        drop(post(&spool, Job::Forward(kept.clone())));
        let mut ask = Box::pin(spool.ask(Job::Forward(kept.clone())));
        assert!(crate::support::poll_here(&mut ask).await.is_pending());
        drop(ask);
        // They also make room for others.
        let wanted = post(&spool, Job::Say);
        assert_eq!(held.free().await, Ok(0));
        assert_eq!(wanted.await, Ok(0));
        assert!(kept.lock().unwrap().is_empty());
        let status = spool.status();
        assert_eq!((status.answered, status.unwanted), (2, 2));
        assert_eq!(settled(status), 4);
    });
}

#[test]
fn an_open_request_without_an_asker_is_not_wanted() {
    everywhere(|| async {
        let spool = spool(1);
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        while kept.lock().unwrap().is_empty() {
            yield_now().await;
        }
        let reply = kept.lock().unwrap().pop().unwrap();
        assert!(reply.is_wanted());
        drop(answer);
        assert!(!reply.is_wanted());
        // Its worker stays busy until the reply is settled.
        assert_eq!(spool.status().busy, 1);
        drop(reply);
        assert_eq!(spool.ask(Job::Say).await, Ok(0));
        assert_eq!(spool.status().lost, 1);
    });
}

#[test]
fn the_counters_add_up_to_the_requests() {
    simulated(|| async {
        let spool = Spool::builder(work).workers(2).capacity(3);
        let spool = spool.responsiveness(seconds(0.5)).spawn().unwrap();
        let jobs = [
            Job::Say,
            Job::Drop,
            Job::Refuse,
            Job::Panic,
            Job::Take(seconds(4.0)),
        ];
        let mut answers = Vec::new();
        for job in jobs.iter().cycle().take(60) {
            answers.push(post(&spool, job.clone()));
            sleep(seconds(0.4)).await;
        }
        drop(answers.pop());
        for answer in answers {
            let _ = answer.await;
        }
        spool.stop();
        let _ = spool.join().await;
        let status = spool.status();
        assert_eq!(settled(status), 60, "{status:?}");
        assert_eq!((status.busy, status.waiting, status.idle), (0, 0, 0));
    });
}
