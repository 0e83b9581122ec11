//! Affinity: requests of one key go to one worker, in order. And changes of the number of workers.

use super::*;

/// A request with a key, and its rank among those of the key.
type Keyed = (u32, u32, Job);

/// What the workers have handled: the number of the worker, the key and the rank.
type Handled = Log<(usize, u32, u32)>;

async fn keyed(mut cx: Context<(Keyed, Reply<usize>)>, number: usize, handled: Handled) {
    while let Some(((key, rank, job), reply)) = cx.recv().await {
        handled.add((number, key, rank));
        match job {
            Job::Say => reply.send(number),
            Job::Take(time) => {
                sleep(time).await;
                reply.send(number);
            }
            Job::Hold(holds, until) => {
                holds.open();
                until.wait().await;
                reply.send(number);
            }
            Job::Panic => panic!("bomb"),
            _ => drop(reply),
        }
    }
}

fn by_key(objects: usize, handled: &Handled) -> Spool<Keyed, usize> {
    let handled = handled.clone();
    let spool = Spool::builder(move |number| {
        let handled = handled.clone();
        actor(move |cx| keyed(cx, number, handled)).spawn()
    });
    let spool = spool.workers(objects).affinity(|(key, ..): &Keyed| *key);
    spool
        .responsiveness(None)
        .stand_down(seconds(2.0))
        .spawn()
        .unwrap()
}

fn put(spool: &Spool<Keyed, usize>, question: Keyed) -> greenroom::Answer<usize> {
    let (reply, answer) = greenroom::Reply::pair();
    spool.tell(question, reply).unwrap();
    answer
}

/// Returns a key that another worker has.
async fn other_key(spool: &Spool<Keyed, usize>, worker: usize) -> u32 {
    for key in 1.. {
        if spool.ask((key, 0, Job::Say)).await != Ok(worker) {
            return key;
        }
    }
    unreachable!("there is another worker")
}

#[test]
fn requests_of_one_key_go_to_one_worker_in_order() {
    everywhere(|| async {
        let handled = Handled::default();
        let spool = by_key(4, &handled);
        let mut answers = Vec::new();
        for rank in 0..20 {
            for key in 0..8 {
                answers.push(put(&spool, (key, rank, Job::Say)));
            }
            yield_now().await;
        }
        for answer in answers {
            answer.await.unwrap();
        }
        let handled = handled.take();
        for key in 0..8 {
            let of_key: Vec<_> = handled.iter().filter(|it| it.1 == key).collect();
            let ranks: Vec<_> = of_key.iter().map(|it| it.2).collect();
            assert_eq!(ranks, (0..20).collect::<Vec<_>>());
            assert!(of_key.iter().all(|it| it.0 == of_key[0].0), "{of_key:?}");
        }
    });
}

#[test]
fn a_key_waits_for_its_worker_while_others_are_idle() {
    everywhere(|| async {
        let spool = by_key(2, &Handled::default());
        let mine = spool.ask((0, 0, Job::Say)).await.unwrap();
        let other = other_key(&spool, mine).await;
        let (holds, until) = (Gate::default(), Gate::default());
        let held = put(&spool, (0, 1, Job::Hold(holds.clone(), until.clone())));
        holds.wait().await;
        let waits = put(&spool, (0, 2, Job::Say));
        let status = spool.status();
        assert_eq!((status.idle, status.waiting), (1, 1));
        assert_eq!(spool.ask((other, 0, Job::Say)).await, Ok(1 - mine));
        until.open();
        assert_eq!((held.await, waits.await), (Ok(mine), Ok(mine)));
    });
}

#[test]
fn a_key_stays_with_its_worker_and_in_order_across_a_death() {
    simulated(|| async {
        let handled = Handled::default();
        let spool = by_key(3, &handled);
        let mine = spool.ask((7, 0, Job::Say)).await.unwrap();
        let dies = put(&spool, (7, 1, Job::Panic));
        let waiting: Vec<_> = (2..8)
            .map(|rank| put(&spool, (7, rank, Job::Say)))
            .collect();
        assert!(dies.await.is_err());
        for answer in waiting {
            assert_eq!(answer.await, Ok(mine));
        }
        let ranks: Vec<_> = handled.take().into_iter().map(|it| it.2).collect();
        assert_eq!(ranks, (0..8).collect::<Vec<_>>());
        assert_eq!(spool.status().deaths, 1);
    });
}

#[test]
fn a_key_stays_in_order_while_the_number_of_workers_changes() {
    simulated(|| async {
        let handled = Handled::default();
        let spool = by_key(2, &handled);
        let mut answers = Vec::new();
        for (rank, objects) in [5, 1, 8, 3, 1, 2, 8, 1].into_iter().enumerate() {
            for key in 0..10 {
                for part in 0..3 {
                    let rank = 3 * rank as u32 + part;
                    answers.push(put(&spool, (key, rank, Job::Take(seconds(0.1)))));
                }
            }
            spool.resize(objects).unwrap();
            sleep(seconds(0.35)).await;
        }
        for answer in answers {
            assert!(answer.await.is_ok());
        }
        let handled = handled.take();
        assert_eq!(handled.len(), 240);
        for key in 0..10 {
            let ranks: Vec<_> = handled
                .iter()
                .filter(|it| it.1 == key)
                .map(|it| it.2)
                .collect();
            assert_eq!(ranks, (0..24).collect::<Vec<_>>());
        }
        assert_eq!(spool.status().idle, 1);
    });
}

#[test]
fn a_moved_key_waits_for_its_request_at_the_old_worker() {
    everywhere(|| async {
        let handled = Handled::default();
        let spool = by_key(1, &handled);
        let gates: Vec<_> = (0..2).map(|_| Gate::default()).collect();
        let held = put(
            &spool,
            (0, 0, Job::Hold(gates[0].clone(), gates[1].clone())),
        );
        gates[0].wait().await;
        let next = put(&spool, (0, 1, Job::Say));
        // One of these numbers moves the key.
        for objects in 2..12 {
            spool.resize(objects).unwrap();
            while spool.status().idle < objects - 1 {
                yield_now().await;
            }
            assert_eq!((spool.status().busy, spool.status().waiting), (1, 1));
        }
        gates[1].open();
        assert!(held.await.is_ok() && next.await.is_ok());
        assert_eq!(handled.take().len(), 2);
    });
}

#[test]
fn keys_move_when_workers_join_and_leave() {
    simulated(|| async {
        let handled = Handled::default();
        let spool = Spool::external()
            .affinity(|(key, ..): &Keyed| *key)
            .responsiveness(None);
        let spool = spool.spawn().unwrap();
        let workers: Vec<_> = (0..3)
            .map(|number| {
                let handled = handled.clone();
                actor(move |cx| keyed(cx, number, handled)).spawn()
            })
            .collect();
        is_refused(spool.ask((0, 0, Job::Say)).await, RefusalKind::Unavailable);
        spool.join_worker(workers[0].address());
        let mut answers = Vec::new();
        for rank in 0..30 {
            for key in 0..4 {
                answers.push(put(&spool, (key, rank, Job::Take(seconds(0.01)))));
            }
            match rank {
                4 => spool.join_worker(workers[1].address()),
                9 => spool.join_worker(workers[2].address()),
                15 => assert!(spool.leave(&workers[0].address())),
                20 => workers[1].address().kill(),
                _ => {}
            }
            sleep(seconds(0.02)).await;
        }
        let mut refused = 0;
        for answer in answers {
            refused += u32::from(answer.await.is_err());
        }
        assert!(refused <= 2, "{refused}");
        let handled = handled.take();
        for key in 0..4 {
            let ranks: Vec<_> = handled
                .iter()
                .filter(|it| it.1 == key)
                .map(|it| it.2)
                .collect();
            assert!(ranks.is_sorted(), "{ranks:?}");
        }
        spool.leave(&workers[2].address());
        is_refused(spool.ask((0, 0, Job::Say)).await, RefusalKind::Unavailable);
    });
}

#[test]
fn a_larger_spool_serves_waiting_requests_with_its_new_workers() {
    everywhere(|| async {
        let spool = spool(1);
        let held = hold(&spool).await;
        let waits = post(&spool, Job::Say);
        spool.resize(2).unwrap();
        assert_eq!(waits.await, Ok(1));
        assert_eq!(held.free().await, Ok(0));
        wait_for(&spool, |it| it.idle == 2).await;
    });
}

#[test]
fn a_smaller_spool_stops_workers_once_they_have_no_request() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).workers(3);
        let spool = spool.spawn().unwrap();
        let held = [hold(&spool).await, hold(&spool).await];
        let waits = post(&spool, Job::Hold(Gate::default(), held[0].until.clone()));
        spool.resize(1).unwrap();
        let workers: Vec<_> = made.take().into_iter().map(|(_, worker)| worker).collect();
        let next = post(&spool, Job::Say);
        assert_eq!((spool.status().busy, spool.status().waiting), (3, 1));
        let [first, second] = held;
        assert_eq!(second.free().await, Ok(1));
        assert_eq!(workers[1].ended().await, greenroom::End::Returned);
        assert_eq!(first.free().await, Ok(0));
        assert_eq!((waits.await, next.await), (Ok(2), Ok(0)));
        assert_eq!(workers[2].ended().await, greenroom::End::Returned);
        let status = spool.status();
        assert_eq!((status.idle, status.deaths, status.lost), (1, 0, 0));
        // The numbers are used again.
        spool.resize(2).unwrap();
        wait_for(&spool, |it| it.idle == 2).await;
        assert_eq!(made.take()[0].0, 1);
    });
}

#[test]
fn a_resize_under_load_loses_no_request() {
    everywhere(|| async {
        let spool = spool(1);
        let mut answers = Vec::new();
        for round in 0..40 {
            for _ in 0..20 {
                answers.push(post(&spool, Job::Say));
            }
            spool.resize(if round % 2 == 0 { 8 } else { 1 }).unwrap();
            yield_now().await;
        }
        for answer in answers {
            assert!(answer.await.is_ok());
        }
        let status = spool.status();
        assert_eq!((status.answered, settled(status)), (800, 800));
        wait_for(&spool, |it| it.idle == 1).await;
    });
}
