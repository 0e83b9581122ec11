//! Workers that die: their requests, and their successors.

use super::*;

use greenroom::supervise::Restarts;
use greenroom::time::Instant;
use greenroom::{AskDetail, Detached};

/// Kills a worker, and waits for its end.
async fn kill(worker: &Address<Work>) {
    worker.kill();
    worker.closed().await;
}

#[test]
fn a_dead_worker_leaves_the_idle_line_at_once() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(3);
        let spool = spool.spawn().unwrap();
        kill(&made.take()[0].1).await;
        // The first request finds it closed, whether the spool has heard of the end or not.
        for round in 0..6 {
            assert_eq!(spool.ask(Job::Say).await, Ok(1 + round % 2));
        }
        wait_for(&spool, |it| it.deaths == 1).await;
        let status = spool.status();
        assert_eq!((status.idle, status.standing_down), (2, 1));
        assert_eq!(status.refused_timed_out, 0);
    });
}

#[test]
fn the_request_of_a_dead_worker_is_answered_at_once_with_its_fault() {
    simulated(|| async {
        let spool = spool(1);
        let begun = Instant::now();
        let next = post(&spool, Job::Panic);
        assert_eq!(cause(next.await), AskCause::Panicked("bomb 0".to_owned()));
        assert_eq!(cause(spool.ask(Job::Return).await), AskCause::ReplyDropped);
        assert!(begun.elapsed() < seconds(38.0));
        let status = spool.status();
        assert_eq!((status.lost, status.answered), (2, 0));
    });
}

#[test]
fn the_fault_names_the_worker() {
    everywhere(|| async {
        let spool =
            Spool::builder(|number| actor(move |cx| worker(cx, number)).name("clerk").spawn());
        let spool = spool.workers(1).spawn().unwrap();
        let detail: AskDetail = match spool.ask(Job::Panic).await {
            Err(AskError::NoReply(detail)) => detail,
            other => panic!("{other:?}"),
        };
        assert_eq!(names(&detail.to_string()), "clerk panicked: bomb 0");
    });
}

#[test]
fn a_killed_worker_leaves_its_request_to_its_client_at_once() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(1);
        let spool = spool.spawn().unwrap();
        let held = hold(&spool).await;
        made.take()[0].1.kill();
        assert_eq!(cause(held.answer.await), AskCause::Killed);
        wait_for(&spool, |it| it.deaths == 1 && it.standing_down == 1).await;
    });
}

#[test]
fn a_successor_comes_after_the_delay_give_or_take_a_quarter() {
    let delays = Log::default();
    let log = delays.clone();
    simulated(move || {
        let log = log.clone();
        async move {
            let spool = Spool::builder(work).workers(1).stand_down(seconds(4.0));
            let spool = spool.spawn().unwrap();
            let _ = spool.ask(Job::Panic).await;
            let begun = Instant::now();
            // It waits for the successor, and gets no time-out of a worker meanwhile.
            assert_eq!(spool.ask(Job::Say).await, Ok(0));
            let delay = begun.elapsed();
            assert!(
                delay >= seconds(2.999) && delay <= seconds(5.001),
                "{delay:?}"
            );
            log.add(delay.as_millis());
        }
    });
    let mut delays = delays.take();
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > SEEDS as usize / 2, "{delays:?}");
    // Each quarter of the range has some.
    for from in [3000, 3500, 4000, 4500] {
        let quarter = from..from + 500;
        assert!(delays.iter().any(|it| quarter.contains(it)), "{delays:?}");
    }
}

#[test]
fn a_successor_has_the_number_of_the_dead_worker() {
    simulated(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(3);
        let spool = spool.spawn().unwrap();
        kill(&made.take()[1].1).await;
        sleep(seconds(40.0)).await;
        let successors = made.take();
        assert_eq!(successors.len(), 1);
        assert_eq!(successors[0].0, 1);
        assert_eq!(spool.status().idle, 3);
    });
}

#[test]
fn a_hundred_deaths_leave_all_workers() {
    simulated(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(2);
        let spool = spool.stand_down(seconds(2.0)).spawn().unwrap();
        for death in 1..=100 {
            let latest = made.take();
            kill(&latest.last().unwrap().1).await;
            sleep(seconds(2.6)).await;
            let status = spool.status();
            assert_eq!((status.deaths, status.idle), (death, 2));
        }
    });
}

#[test]
fn without_a_stand_down_a_death_ends_the_spool() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(2).stand_down(None);
        let spool = spool.spawn().unwrap();
        let held = hold(&spool).await;
        let fault = post(&spool, Job::Panic);
        let waits = post(&spool, Job::Say);
        assert_eq!(cause(fault.await), AskCause::Panicked("bomb 1".to_owned()));
        let text = "aborted (the spool has lost a worker and does not replace it)";
        assert_eq!(refusal(waits.await).to_string(), text);
        assert_eq!(held.free().await, Ok(0));
        let ended = spool.join().await.unwrap_err();
        assert_eq!(
            (ended.kind(), ended.to_string()),
            (RefusalKind::Aborted, text.to_owned())
        );
        assert_eq!(refusal(spool.ask(Job::Say).await).to_string(), text);
        assert_eq!(spool.status().deaths, 1);
    });
}

#[test]
fn a_request_is_tried_again_with_another_worker() {
    simulated(|| async {
        let log = Log::default();
        let notes = log.clone();
        let spool = Spool::builder(move |number| {
            let log = notes.clone();
            actor(move |mut cx: Context<(u32, Reply<usize>)>| async move {
                while let Some((fatal, reply)) = cx.recv().await {
                    log.add(number);
                    assert!(log.len() as u32 > fatal, "bomb");
                    reply.send(number);
                }
            })
            .spawn()
        });
        let spool = spool.workers(2).retries(3).responsiveness(None);
        let spool = spool.spawn().unwrap();
        // The third and the fourth worker are successors.
        let outcome = spool.ask(3).await;
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(log.len(), 4);
        assert_eq!(spool.status().lost, 0);
        let outcome = spool.ask(100).await;
        assert_eq!(cause(outcome), AskCause::Panicked("bomb".to_owned()));
        assert_eq!(log.len(), 8);
        wait_for(&spool, |it| it.deaths == 7).await;
        let status = spool.status();
        assert_eq!((status.lost, status.answered), (1, 1));
    });
}

#[test]
fn a_request_that_is_tried_again_comes_before_those_that_wait() {
    simulated(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(1).retries(1);
        let spool = spool.spawn().unwrap();
        let first = post(&spool, Job::Take(seconds(1.0)));
        let second = post(&spool, Job::Say);
        sleep(seconds(0.5)).await;
        kill(&made.take()[0].1).await;
        let begun = Instant::now();
        assert_eq!(first.await, Ok(0));
        assert!(begun.elapsed() > seconds(23.0));
        assert_eq!(second.await, Ok(0));
    });
}

#[test]
fn only_a_death_leads_to_another_try() {
    everywhere(|| async {
        let spool = Spool::builder(work).workers(2).retries(5);
        let spool = spool.spawn().unwrap();
        assert_eq!(cause(spool.ask(Job::Drop).await), AskCause::ReplyDropped);
        assert_eq!(refusal(spool.ask(Job::Refuse).await).to_string(), "no");
        assert_eq!(spool.status().deaths, 0);
    });
}

#[test]
fn a_worker_that_was_stopped_by_another_gets_no_more_requests() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(2);
        let spool = spool.spawn().unwrap();
        let held = hold(&spool).await;
        let stopped = made.take().swap_remove(0).1;
        stopped.stop();
        assert_eq!(spool.ask(Job::Say).await, Ok(1));
        // It answers what it has, and is a worker no more.
        assert_eq!(held.free().await, Ok(0));
        for _ in 0..3 {
            assert_eq!(spool.ask(Job::Say).await, Ok(1));
        }
        wait_for(&spool, |it| it.deaths == 1 && it.standing_down == 1).await;
        assert_eq!(spool.status().lost, 0);
    });
}

#[test]
fn a_dead_worker_from_the_factory_loses_no_request() {
    simulated(|| async {
        let made = Log::default();
        let log = made.clone();
        let spool = Spool::builder(move |number| {
            let worker = work(number);
            log.add(());
            if log.len() == 1 {
                worker.kill();
            }
            worker
        });
        let spool = spool.workers(1).spawn().unwrap();
        assert_eq!(spool.ask(Job::Say).await, Ok(0));
        assert_eq!((made.len(), spool.status().deaths), (2, 1));
    });
}

#[test]
fn a_worker_that_restarts_by_itself_serves_on() {
    simulated(|| async {
        let spool = Spool::builder(|number| {
            let restarts = Restarts::on_fault().intensity(u32::MAX, seconds(1.0));
            let supervised = actor(move |cx| worker(cx, number)).restart(restarts);
            supervised.spawn()
        });
        let spool = spool.workers(1).spawn().unwrap();
        for _ in 0..5 {
            let begun = Instant::now();
            assert_eq!(
                cause(spool.ask(Job::Panic).await),
                AskCause::Panicked("bomb 0".into())
            );
            assert_eq!(spool.ask(Job::Say).await, Ok(0));
            assert!(begun.elapsed() < seconds(1.0));
        }
        let status = spool.status();
        assert_eq!((status.deaths, status.idle, status.lost), (0, 1, 5));
    });
}

#[test]
fn a_bounded_worker_without_room_is_passed_over_until_it_has() {
    simulated(|| async {
        let spool =
            Spool::builder(|number| actor(move |cx| worker(cx, number)).capacity(1).spawn());
        let spool = spool
            .workers(1)
            .responsiveness(seconds(0.5))
            .busy_pass_rate(1);
        let spool = spool.spawn().unwrap();
        // Each of the first two is given up after 2.5 s, and the second one fills the mailbox.
        let slow = post(&spool, Job::Take(seconds(9.0)));
        let unread = post(&spool, Job::Say);
        let waits = post(&spool, Job::Say);
        is_refused(slow.await, RefusalKind::TimedOut);
        is_refused(unread.await, RefusalKind::TimedOut);
        sleep(seconds(1.0)).await;
        let status = spool.status();
        assert_eq!((status.idle, status.busy, status.waiting), (0, 0, 1));
        assert_eq!(waits.await, Ok(0));
        assert_eq!(spool.status().idle, 1);
    });
}

#[test]
fn a_pinned_worker_and_one_on_a_thread_of_its_own_serve() {
    within(WATCH, || {
        on_two_workers(async {
            let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
            let spool = Spool::builder(move |number| {
                let worker = actor(move |cx| worker(cx, number));
                match number {
                    0 => worker.on(&pinned).spawn(),
                    _ => worker.on(Detached).spawn(),
                }
            });
            let spool = spool.workers(2).spawn().unwrap();
            for round in 0..100 {
                assert_eq!(spool.ask(Job::Say).await, Ok(round % 2));
            }
            spool.stop();
            let _ = spool.join().await;
        });
    });
}
