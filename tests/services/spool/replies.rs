//! What workers do with their replies, and the two ways into a spool.

use super::*;

use greenroom::{AskError, spawn};

/// Waits until a reply was passed on.
async fn passed_on(to: &Replies) -> Reply<usize> {
    loop {
        if let Some(reply) = to.lock().unwrap().pop() {
            return reply;
        }
        yield_now().await;
    }
}

#[test]
fn a_reply_that_was_passed_on_keeps_its_worker_busy_until_it_is_settled() {
    everywhere(|| async {
        let spool = spool(1);
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        let reply = passed_on(&kept).await;
        let waits = post(&spool, Job::Say);
        assert_eq!((spool.status().busy, spool.status().waiting), (1, 1));
        reply.send(42);
        assert_eq!(answer.await, Ok(42));
        assert_eq!(waits.await, Ok(0));
    });
}

#[test]
fn a_reply_is_given_on_a_thread_that_knows_no_runtime() {
    within(WATCH, || {
        on_two_workers(async {
            let spool = spool(1);
            let kept = Replies::default();
            let answer = post(&spool, Job::Forward(kept.clone()));
            let waits = post(&spool, Job::Say);
            let reply = passed_on(&kept).await;
            let elsewhere = std::thread::spawn(move || reply.send(42));
            assert_eq!((answer.await, waits.await), (Ok(42), Ok(0)));
            elsewhere.join().unwrap();
        });
    });
}

#[test]
fn a_reply_that_was_passed_on_and_dropped_frees_its_worker() {
    everywhere(|| async {
        let spool = spool(1);
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        let waits = post(&spool, Job::Say);
        drop(passed_on(&kept).await);
        assert_eq!(cause(answer.await), AskCause::ReplyDropped);
        assert_eq!(waits.await, Ok(0));
        let status = spool.status();
        assert_eq!((status.lost, status.answered, status.deaths), (1, 1, 0));
    });
}

#[test]
fn a_reply_outlives_its_worker() {
    simulated(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(1).retries(2);
        let spool = spool.responsiveness(None).spawn().unwrap();
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        let reply = passed_on(&kept).await;
        let waits = post(&spool, Job::Say);
        made.take()[0].1.kill();
        // The successor serves while the reply lives.
        assert_eq!(waits.await, Ok(0));
        assert!(reply.is_wanted());
        reply.send(42);
        assert_eq!(answer.await, Ok(42));
        let status = spool.status();
        assert_eq!(
            (status.answered, status.deaths, status.busy, status.idle),
            (2, 1, 0, 1)
        );
    });
}

#[test]
fn a_stop_aborts_requests_whose_workers_have_ended() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(1).responsiveness(None);
        let spool = spool.spawn().unwrap();
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        let reply = passed_on(&kept).await;
        spool.stop();
        spool.join().await.unwrap_err();
        is_refused(answer.await, RefusalKind::Aborted);
        assert!(!reply.is_wanted());
        reply.send(1);
        assert_eq!(settled(spool.status()), 1);
    });
}

#[test]
fn a_key_waits_for_a_reply_that_outlives_its_worker() {
    simulated(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made))
            .workers(1)
            .affinity(|_: &Job| 1);
        let spool = spool.responsiveness(None).spawn().unwrap();
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        let reply = passed_on(&kept).await;
        let waits = post(&spool, Job::Say);
        made.take()[0].1.kill();
        sleep(seconds(100.0)).await;
        assert_eq!((spool.status().idle, spool.status().waiting), (1, 1));
        reply.send(42);
        assert_eq!((answer.await, waits.await), (Ok(42), Ok(0)));
    });
}

#[test]
fn a_joined_worker_that_ends_after_it_has_passed_on_its_reply_leaves_no_prospects() {
    everywhere(|| async {
        let spool = Spool::external().spawn().unwrap();
        let worker = work(1);
        spool.join_worker(worker.address());
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        let reply = passed_on(&kept).await;
        let waits = post(&spool, Job::Say);
        worker.kill();
        is_refused(waits.await, RefusalKind::Unavailable);
        assert!(!spool.leave(&worker.address()));
        is_refused(spool.ask(Job::Say).await, RefusalKind::Unavailable);
        reply.send(3);
        assert_eq!(answer.await, Ok(3));
    });
}

#[test]
fn the_right_to_answer_is_taken_once() {
    everywhere(|| async {
        let spool = spool(1);
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        let reply = passed_on(&kept).await;
        let (first, second) = (reply.take(), reply.take());
        assert!(second.is_none() && !reply.is_wanted());
        drop(reply);
        assert_eq!(spool.status().busy, 1);
        first.unwrap().send(4);
        assert_eq!(answer.await, Ok(4));
        assert_eq!(spool.status().idle, 1);
    });
}

#[test]
fn a_refusal_of_a_worker_reaches_the_asker_as_it_is() {
    everywhere(|| async {
        let spool = spool(1);
        let refused = refusal(spool.ask(Job::Refuse).await);
        assert_eq!(
            (refused.kind(), refused.condition()),
            (RefusalKind::Fault, "no")
        );
        assert_eq!((spool.status().answered, spool.status().refused()), (1, 0));
    });
}

/// The outcome of a request in a few words.
fn words(outcome: Result<usize, AskError>) -> String {
    match outcome {
        Ok(_) => "answered".to_owned(),
        Err(AskError::NoReply(detail)) => format!("{:?}", detail.why()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_address_of_a_spool_has_the_outcomes_of_the_spool() {
    simulated(|| async {
        let mut outcomes = Vec::new();
        for is_address in [true, false] {
            let spool = Spool::builder(work).workers(1).capacity(1);
            let spool = spool
                .responsiveness(seconds(1.0))
                .queue_timeout(seconds(3.0));
            let spool = spool.stand_down(seconds(2.0)).spawn().unwrap();
            let address = spool.address();
            let ask = |job: Job| match is_address {
                true => address.request(move |reply| (job, reply)),
                false => spool.request(job),
            };
            let mut seen = Vec::new();
            for job in [Job::Say, Job::Drop, Job::Refuse, Job::Panic] {
                seen.push(words(ask(job).await));
            }
            sleep(seconds(9.0)).await;
            let long = || ask(Job::Take(seconds(7.0)));
            let together = greenroom::concurrently([long(), long(), long()]).await;
            seen.extend(together.into_iter().map(words));
            sleep(seconds(9.0)).await;
            // Brings the average to two seconds.
            seen.push(words(ask(Job::Take(seconds(4.9))).await));
            seen.push(words(ask(Job::Say).await));
            spool.stop();
            seen.push(words(ask(Job::Say).await));
            outcomes.push(seen);
        }
        assert_eq!(outcomes[0], outcomes[1]);
        let kinds = outcomes[0].join("; ");
        for part in [
            "answered",
            "ReplyDropped",
            "no",
            "bomb",
            "timed out",
            "overloaded",
            "abort",
        ] {
            assert!(kinds.contains(part), "{part}: {kinds}");
        }
        assert!(kinds.contains("average response time"), "{kinds}");
    });
}

#[test]
fn an_actor_asks_a_spool_as_it_asks_a_worker() {
    everywhere(|| async {
        async fn client(mut cx: Context<Result<usize, AskError>>, clerk: Address<Work>) -> usize {
            cx.on_answer(clerk.request(|reply| (Job::Say, reply)), |answer| answer);
            cx.recv().await.unwrap().unwrap()
        }
        let (spool, worker) = (spool(3), work(5));
        let addresses = [spool.address(), worker.address()];
        let clients = addresses.map(|clerk| actor(move |cx| client(cx, clerk)).spawn());
        let mut answers = Vec::new();
        for client in clients {
            answers.push(client.join().await.unwrap());
        }
        assert_eq!(answers, [0, 5]);
        // A worker sees the request alone, and not the spool.
        let mapped = spool.address().map(|(number, reply): (u32, Reply<usize>)| {
            assert_eq!(number, 9);
            (Job::Say, reply)
        });
        assert_eq!(mapped.ask(|reply| (9, reply)).await, Ok(1));
        assert_eq!(
            (spool.address().len(), spool.address().capacity()),
            (0, None)
        );
        assert_eq!(spool.address(), spool.clone().address());
        let weak = spool.address().downgrade();
        let upgraded = weak.upgrade().unwrap();
        assert_eq!(upgraded.ask(|reply| (Job::Say, reply)).await, Ok(2));
        let place = upgraded.reserve().await.unwrap();
        let (reply, answer) = greenroom::Reply::pair();
        place.send((Job::Say, reply));
        assert_eq!(answer.await, Ok(0));
    });
}

#[test]
fn a_spool_is_a_worker_of_another_spool() {
    everywhere(|| async {
        let outer = Spool::external().spawn().unwrap();
        let inner = [spool(2), spool(1)];
        inner
            .iter()
            .for_each(|spool| outer.join_worker(spool.address()));
        let requests = (0..40).map(|_| outer.request(Job::Say)).collect::<Vec<_>>();
        for answer in greenroom::concurrently(requests).await {
            assert!(answer.is_ok());
        }
        let answered = inner.each_ref().map(|spool| spool.status().answered);
        assert_eq!(answered[0] + answered[1], 40);
        assert!(answered[0] > 0 && answered[1] > 0);
        assert!(matches!(
            cause(outer.ask(Job::Panic).await),
            AskCause::Panicked(_)
        ));
        assert_eq!(outer.status().deaths, 0);
        // An asker that goes makes the request unwanted at each level.
        let kept = Replies::default();
        let answer = post(&outer, Job::Forward(kept.clone()));
        let reply = passed_on(&kept).await;
        assert!(reply.is_wanted());
        drop(answer);
        // While a thread is in the outer spool, the inner one does not wait for it.
        while reply.is_wanted() {
            yield_now().await;
        }
        drop(reply);
        // The end of a spool is the death of a worker.
        for spool in &inner {
            spool.kill();
            spool.join().await.unwrap_err();
        }
        wait_for(&outer, |it| it.deaths == 2).await;
        is_refused(outer.ask(Job::Say).await, RefusalKind::Unavailable);
    });
}

#[test]
fn spools_that_help_each_other_do_not_wait_for_each_other() {
    everywhere(|| async {
        let (one, two) = (spool(1), spool(1));
        one.join_worker(two.address());
        two.join_worker(one.address());
        let spools = [one, two];
        let mut answers = Vec::new();
        for number in 0..200 {
            let answer = post(&spools[number % 2], Job::Say);
            // Some askers go away while their requests are under way.
            if number % 7 != 0 {
                answers.push(answer);
            }
            if number % 16 == 0 {
                yield_now().await;
            }
        }
        for answer in answers {
            assert!(answer.await.is_ok());
        }
        spools.iter().for_each(Spool::kill);
    });
}

#[test]
fn a_spool_is_used_from_threads_outside_of_the_runtime() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let spool = runtime.block_on(async { spool(3) });
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let spool = spool.clone();
                std::thread::spawn(move || {
                    let answers: Vec<_> = (0..200).map(|_| post(&spool, Job::Say)).collect();
                    for answer in answers {
                        futures::executor::block_on(answer).unwrap();
                    }
                    futures::executor::block_on(spool.ask(Job::Say)).unwrap();
                    let _ = spool.resize(2 + spool.status().idle % 2);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(spool.status().answered, 804);
        spool.stop();
        futures::executor::block_on(spool.join()).unwrap_err();
    });
}

#[test]
fn a_spool_answers_on_a_runtime_that_detects_deadlocks() {
    within(WATCH, || {
        for seed in 0..SEEDS {
            let runtime = Runtime::builder()
                .policy(Simulated::new(seed))
                .detect_deadlocks(true);
            runtime.on_fault(|_| {}).build().unwrap().block_on(async {
                let spool = Spool::builder(work).workers(1).responsiveness(seconds(0.5));
                let spool = spool.busy_pass_rate(1).spawn().unwrap();
                let slow = spool.request(Job::Take(seconds(2.0)));
                let waits = spool.request(Job::Say);
                let answers = greenroom::concurrently([slow, waits]).await;
                assert_eq!(answers, [Ok(0), Ok(0)]);
                // A worker that waits for its own spool is given up.
                let own: Arc<Mutex<Option<Address<Work>>>> = Arc::default();
                let asks = own.clone();
                let circle = Spool::builder(move |_| {
                    let asks = asks.clone();
                    actor(move |mut cx: Context<Work>| async move {
                        while let Some((job, reply)) = cx.recv().await {
                            let own = asks.lock().unwrap().clone().unwrap();
                            let outcome = own.ask(|reply| (job, reply)).await;
                            reply.settle_as(outcome);
                        }
                    })
                    .spawn()
                });
                let circle = circle.workers(1).responsiveness(seconds(0.5));
                let circle = circle.spawn().unwrap();
                *own.lock().unwrap() = Some(circle.address());
                is_refused(circle.ask(Job::Say).await, RefusalKind::TimedOut);
                circle.kill();
            });
        }
    });
}

/// Passes an outcome on.
trait SettleAs {
    fn settle_as(self, outcome: Result<usize, AskError>);
}

impl SettleAs for Reply<usize> {
    fn settle_as(self, outcome: Result<usize, AskError>) {
        match outcome {
            Ok(answer) => self.send(answer),
            Err(error) => self.refuse(Refusal::new("no", error.to_string())),
        }
    }
}

#[test]
fn a_worker_that_helps_itself_lets_others_run() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).batch(10).build().unwrap();
        runtime.block_on(async {
            let spool = spool(1);
            let held = hold(&spool).await;
            let answers: Vec<_> = (0..1000).map(|_| post(&spool, Job::Say)).collect();
            let own = spool.clone();
            let neighbor = greenroom::spawn(async move {
                held.until.open();
                let (mut before, mut longest) = (0, 0);
                while before <= 1000 {
                    yield_now().await;
                    let now = own.status().answered;
                    longest = longest.max(now - before);
                    before = now;
                }
                longest
            });
            let longest = neighbor.await;
            assert!((1..=20).contains(&longest), "{longest}");
            for answer in answers {
                assert_eq!(answer.await, Ok(0));
            }
        });
    });
}

#[test]
fn a_reply_is_not_lost_when_its_worker_ends_before_it_is_told() {
    within(WATCH, || {
        on_two_workers(async {
            for _ in 0..300 {
                let made = Made::default();
                let spool = Spool::builder(noting(&made)).workers(2);
                let spool = spool.spawn().unwrap();
                let stopped = made.take().swap_remove(0).1;
                let stops = spawn!(|_: Context<()>| async move { stopped.stop() });
                for _ in 0..4 {
                    // The end of an idle worker loses no request.
                    assert!(spool.ask(Job::Say).await.is_ok());
                }
                stops.join().await.unwrap();
            }
        });
    });
}
