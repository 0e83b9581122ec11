//! How a spool ends, and what becomes of its requests.

use super::*;

use greenroom::supervise::{Restarts, Supervisor};

use crate::support::Drops;

#[test]
fn a_stop_answers_everybody_and_lets_the_workers_finish() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(2);
        let spool = spool.spawn().unwrap();
        let (one, two) = (hold(&spool).await, hold(&spool).await);
        let waiting = [0; 3].map(|_| post(&spool, Job::Say));
        spool.stop();
        for answer in waiting {
            let refused = refusal(answer.await);
            assert_eq!(refused.to_string(), "aborted (user or software interrupt)");
            assert_eq!(refused.kind(), RefusalKind::Aborted);
        }
        is_refused(spool.ask(Job::Say).await, RefusalKind::Aborted);
        assert_eq!((one.free().await, two.free().await), (Ok(0), Ok(1)));
        let ended = spool.join().await.unwrap_err();
        assert_eq!(ended.to_string(), "aborted (user or software interrupt)");
        for (_, worker) in made.take() {
            assert_eq!(worker.ended().await, greenroom::End::Returned);
        }
        let status = spool.status();
        assert_eq!(
            (status.answered, status.refused_aborted, status.deaths),
            (2, 3, 0)
        );
        assert_eq!((status.idle, status.busy, status.waiting), (0, 0, 0));
    });
}

#[test]
fn no_request_waits_any_more_when_a_stop_has_returned() {
    everywhere(|| async {
        for at_once in [true, false] {
            let spool = spool(1);
            let (holds, until) = (Gate::default(), Gate::default());
            let held = post(&spool, Job::Hold(holds.clone(), until.clone()));
            holds.wait().await;
            let waits = post(&spool, Job::Say);
            assert_eq!(spool.status().waiting, 1);
            match at_once {
                true => spool.stop_now(),
                false => spool.stop(),
            }
            assert_eq!(spool.status().waiting, 0);
            is_refused(waits.await, RefusalKind::Aborted);
            until.open();
            assert_eq!(held.await, Ok(0));
            spool.join().await.unwrap_err();
        }
    });
}

#[test]
fn a_stop_at_once_aborts_what_a_worker_has_not_begun() {
    everywhere(|| async {
        for at_once in [true, false] {
            let made = Made::default();
            let spool = Spool::builder(noting(&made)).workers(1).retries(3);
            let spool = spool.spawn().unwrap();
            assert_eq!(spool.ask(Job::Say).await, Ok(0));
            // The worker gets a message that is not of the spool, and so the request waits there.
            let (_, worker) = made.take().pop().unwrap();
            let (holds, until) = (Gate::default(), Gate::default());
            let (reply, own) = Reply::pair();
            worker
                .tell((Job::Hold(holds.clone(), until.clone()), reply))
                .unwrap();
            holds.wait().await;
            let (given, waits) = (post(&spool, Job::Say), post(&spool, Job::Say));
            match at_once {
                true => spool.stop_now(),
                false => spool.stop(),
            }
            is_refused(waits.await, RefusalKind::Aborted);
            while !worker.is_closed() {
                yield_now().await;
            }
            until.open();
            match at_once {
                true => is_refused(given.await, RefusalKind::Aborted),
                false => assert_eq!(given.await, Ok(0)),
            }
            assert_eq!(own.await, Ok(0));
            spool.join().await.unwrap_err();
            assert_eq!(worker.ended().await, greenroom::End::Returned);
        }
    });
}

#[test]
fn a_request_to_a_spool_that_has_ended_is_aborted_or_comes_back() {
    everywhere(|| async {
        let spool = spool(1);
        let asks = (spool.request(Job::Say), spool.address());
        spool.stop();
        spool.stop();
        spool.join().await.unwrap_err();
        spool.join().await.unwrap_err();
        is_refused(spool.ask(Job::Say).await, RefusalKind::Aborted);
        is_refused(asks.0.await, RefusalKind::Aborted);
        let ask = asks.1.ask(|reply| (Job::Say, reply));
        is_refused(ask.await, RefusalKind::Aborted);
        let (reply, answer) = greenroom::Reply::pair();
        let closed = spool.tell(Job::Say, reply).unwrap_err();
        assert!(closed.is_closed());
        assert_eq!(closed.actor().id(), spool.address().id());
        let (Job::Say, reply) = closed.into_inner() else {
            panic!("it was told");
        };
        let sent = spool.send(Job::Say, reply).await.unwrap_err();
        sent.into_inner().1.send(5);
        assert_eq!(answer.await, Ok(5));
    });
}

#[test]
fn a_kill_aborts_open_and_waiting_requests_at_once() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(2).retries(3);
        let spool = spool.spawn().unwrap();
        let (one, two) = (hold(&spool).await, hold(&spool).await);
        let waits = post(&spool, Job::Say);
        spool.kill();
        for answer in [one.answer, two.answer, waits] {
            is_refused(answer.await, RefusalKind::Aborted);
        }
        spool.join().await.unwrap_err();
        for (_, worker) in made.take() {
            assert_eq!(worker.ended().await, greenroom::End::Killed);
        }
        let status = spool.status();
        assert_eq!((settled(status), status.refused_aborted), (3, 3));
    });
}

#[test]
fn a_kill_during_a_stop_ends_a_worker_that_hangs() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(1).responsiveness(None);
        let spool = spool.spawn().unwrap();
        let held = hold(&spool).await;
        spool.stop();
        while !spool.address().is_closed() {
            yield_now().await;
        }
        spool.kill();
        spool.join().await.unwrap_err();
        is_refused(held.answer.await, RefusalKind::Aborted);
    });
}

#[test]
fn dropping_the_last_handle_ends_the_spool_and_its_workers() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(2);
        let spool = spool.spawn().unwrap();
        let (clone, address) = (spool.clone(), spool.address());
        let held = hold(&spool).await;
        drop(spool);
        assert_eq!(clone.ask(Job::Say).await, Ok(1));
        drop(clone);
        assert_eq!(address.ask(|reply| (Job::Say, reply)).await, Ok(1));
        let (reply, fills) = greenroom::Reply::pair();
        let gate = Gate::default();
        address
            .tell((Job::Hold(gate.clone(), held.until.clone()), reply))
            .unwrap();
        gate.wait().await;
        let (reply, waits) = greenroom::Reply::pair();
        address.tell((Job::Say, reply)).unwrap();
        drop(address);
        is_refused(waits.await, RefusalKind::Aborted);
        assert_eq!(held.free().await, Ok(0));
        assert_eq!(fills.await, Ok(1));
        for (_, worker) in made.take() {
            assert_eq!(worker.ended().await, greenroom::End::Returned);
        }
    });
}

#[test]
fn a_shutdown_of_the_runtime_answers_everybody() {
    within(WATCH, || {
        keep_bombs_quiet();
        for round in 0..60 {
            let simulated = Runtime::builder()
                .policy(Simulated::new(round))
                .on_fault(|_| {});
            let threads = Runtime::builder().workers(2).on_fault(|_| {});
            let builder = if round % 2 == 0 { simulated } else { threads };
            let runtime = builder.build().unwrap();
            let (spool, answers) = runtime.block_on(async move {
                let spool = Spool::builder(work).workers(2).retries(round as u32 % 3);
                let spool = spool.stand_down(seconds(2.0)).spawn().unwrap();
                let held = [hold(&spool).await.answer, hold(&spool).await.answer];
                let waiting = [0; 10].map(|_| post(&spool, Job::Say));
                let answers: Vec<_> = held.into_iter().chain(waiting).collect();
                (spool, answers)
            });
            drop(runtime);
            for answer in answers {
                let outcome = futures::executor::block_on(answer);
                let is_over = matches!(outcome, Err(AskError::Refused(_) | AskError::NoReply(_)));
                assert!(is_over, "{outcome:?}");
            }
            let outcome = futures::executor::block_on(spool.ask(Job::Say));
            is_refused(outcome, RefusalKind::Aborted);
            let ended = futures::executor::block_on(spool.join());
            assert_eq!(ended.unwrap_err().kind(), RefusalKind::Aborted);
            assert_eq!(settled(spool.status()), 12);
            spool.resize(5).unwrap();
            assert_eq!(spool.status().waiting, 0);
        }
    });
}

#[test]
fn a_spool_is_killed_by_the_address_that_looks_like_a_worker() {
    everywhere(|| async {
        let spool = spool(1);
        let held = hold(&spool).await;
        let address = spool.address();
        address.kill();
        address.closed().await;
        is_refused(held.answer.await, RefusalKind::Aborted);
        assert_eq!(address.ended().await, greenroom::End::Killed);
    });
}

#[test]
fn a_supervised_spool_begins_anew_after_it_has_lost_a_worker() {
    everywhere(|| async {
        async fn serves(cx: Context<Work>) -> Result<(), Refusal> {
            let spool = Spool::builder(work).workers(2).stand_down(None);
            spool.spawn().unwrap().serve(cx).await
        }
        let tree = Supervisor::builder().spawn().unwrap();
        let restarts = Restarts::when(|result| !matches!(result, Ok(Ok(()))));
        let spool = actor(serves).name("spool").restart(restarts);
        let address = tree.start(spool).unwrap();
        let ask = |job| address.ask(move |reply| (job, reply));
        for _ in 0..3 {
            assert_eq!(ask(Job::Say).await, Ok(0));
            assert!(matches!(
                cause(ask(Job::Panic).await),
                AskCause::Panicked(_)
            ));
            // Requests wait for the next incarnation, or are aborted with this one.
            while ask(Job::Say).await != Ok(1) {
                yield_now().await;
            }
        }
        tree.stop();
        tree.join().await.unwrap();
        assert!(address.is_closed());
    });
}

#[test]
fn an_actor_that_serves_a_spool_waits_for_its_workers() {
    everywhere(|| async {
        let own = spool(1);
        let serves = own.clone();
        let actor = actor(move |cx: Context<Work>| serves.serve(cx)).spawn();
        let held = hold(&own).await;
        let ask = actor.address();
        let request = ask.request(|reply| (Job::Say, reply));
        let mut request = Box::pin(request);
        assert!(crate::support::poll_here(&mut request).await.is_pending());
        wait_for(&own, |it| it.waiting == 1).await;
        ask.stop();
        is_refused(request.await, RefusalKind::Aborted);
        assert_eq!(held.free().await, Ok(0));
        actor.join().await.unwrap().unwrap();
        assert_eq!(own.join().await.unwrap_err().kind(), RefusalKind::Aborted);
    });
}

#[test]
fn joins_and_leaves_race_with_a_stop_and_leave_nothing_behind() {
    everywhere(|| async {
        let spool = Spool::<Job, usize>::external().spawn().unwrap();
        let workers: Vec<_> = (0..6).map(work).collect();
        let racing: Vec<_> = workers
            .iter()
            .map(|worker| {
                let (spool, worker) = (spool.clone(), worker.address());
                greenroom::spawn(async move {
                    spool.join_worker(worker.clone());
                    yield_now().await;
                    let _ = spool.ask(Job::Say).await;
                    if worker.id() % 2 == 0 {
                        spool.leave(&worker);
                    }
                })
            })
            .collect();
        let stops = spool.clone();
        greenroom::spawn(async move {
            yield_now().await;
            stops.stop();
        })
        .await;
        for racer in racing {
            racer.await;
        }
        spool.join().await.unwrap_err();
        let status = spool.status();
        assert_eq!((status.idle, status.busy, status.waiting), (0, 0, 0));
        // The spool holds no address of a worker, so each ends with its handle.
        for worker in workers {
            let weak = worker.address().downgrade();
            drop(worker);
            weak.closed().await;
        }
    });
}

#[test]
fn the_end_is_told_after_the_state_of_the_workers_is_dropped() {
    everywhere(|| async {
        for is_killed in [false, true] {
            let drops = Drops::default();
            let counts = drops.clone();
            let spool = Spool::builder(move |number| {
                let state = counts.one();
                actor(move |cx| async move {
                    let _state = state;
                    worker(cx, number).await;
                })
                .spawn()
            });
            let spool = spool.workers(3).name("clerks").spawn().unwrap();
            assert_eq!(spool.ask(Job::Say).await, Ok(0));
            if is_killed {
                spool.kill();
            }
            spool.stop();
            spool.join().await.unwrap_err();
            assert_eq!(drops.count(), 3);
        }
    });
}
