//! Scenarios of the suite: all tasks run, in order and one at a time, and no task starves.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use greenroom::{
    Context, Detached, Handle, Reply, Runtime, Task, actor, spawn, unblock, yield_now,
};

use super::Case;
use crate::support::{Home, drive, elsewhere, inside};

/// Adds up its messages until its mailbox is closed.
async fn sum(mut cx: Context<u64>) -> u64 {
    let mut sum = 0;
    while let Some(n) = cx.recv().await {
        sum += n;
    }
    sum
}

/// Answers each ask with its number plus one.
async fn next(mut cx: Context<(u64, Reply<u64>)>) {
    while let Some((n, reply)) = cx.recv().await {
        reply.send(n + 1);
    }
}

async fn join_all<T>(tasks: Vec<Task<T>>) -> Vec<T> {
    futures::future::join_all(tasks).await
}

/// Sieves the primes: one actor per prime, which passes on the numbers that it does not divide.
pub fn the_same_program_gives_the_same_results(case: &Case) {
    enum Number {
        Sieve(u64),
        Primes(Vec<u64>, Reply<Vec<u64>>),
    }
    // Boxed: an actor that spawns its own kind would have an infinite type.
    fn prime(mut cx: Context<Number>, own: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut next: Option<Handle<Number, ()>> = None;
            while let Some(message) = cx.recv().await {
                match message {
                    Number::Sieve(n) if n % own == 0 => {}
                    Number::Sieve(n) => match &next {
                        Some(next) => next.tell(Number::Sieve(n)).unwrap(),
                        None => next = Some(actor(move |cx| prime(cx, n)).spawn()),
                    },
                    Number::Primes(mut known, reply) => {
                        known.push(own);
                        match &next {
                            Some(next) => next.tell(Number::Primes(known, reply)).unwrap(),
                            None => reply.send(known),
                        }
                    }
                }
            }
        })
    }
    let home = case.home();
    let primes = home.block_on(async {
        let first = spawn!(|cx: Context<Number>| prime(cx, 2));
        (3..120).for_each(|n| first.tell(Number::Sieve(n)).unwrap());
        first
            .ask(|reply| Number::Primes(Vec::new(), reply))
            .await
            .unwrap()
    });
    let expected: Vec<u64> = (2..120)
        .filter(|n| (2..*n).all(|divisor| n % divisor != 0))
        .collect();
    assert_eq!(primes, expected);
}

pub fn tasks_and_actors_run_wherever_they_are_spawned(case: &Case) {
    let home = case.home();
    let total = spawn!(sum(_), on = &home.runtime);
    let task = |total: greenroom::Address<u64>| async move {
        let inner = total.clone();
        let task = greenroom::spawn(async move { inner.tell(1).unwrap() });
        let inner = total.clone();
        let actor = spawn!(move |_: Context<()>| async move { inner.tell(10).unwrap() });
        task.await;
        actor.join().await.unwrap();
        total.tell(100).unwrap();
    };
    let outside: Vec<_> = (0..100)
        .map(|_| home.spawn_task(task(total.address())))
        .collect();
    let actors: Vec<_> = (0..100)
        .map(|_| {
            let total = total.address();
            home.spawn(actor(move |_: Context<()>| task(total)))
        })
        .collect();
    drive(join_all(outside));
    for actor in actors {
        drive(actor.join()).unwrap();
    }
    assert_eq!(drive(total.join()).unwrap(), 200 * 111);
}

pub fn messages_of_one_sender_are_handled_in_order(case: &Case) {
    const EACH: usize = 500;
    let home = case.home();
    let reader = home.spawn(actor(|mut cx: Context<(usize, usize)>| async move {
        let mut seen = [0; 6];
        while let Some((sender, n)) = cx.recv().await {
            assert_eq!(n, seen[sender], "of sender {sender}");
            seen[sender] += 1;
        }
        seen
    }));
    let threads: Vec<_> = (0..3)
        .map(|sender| {
            let reader = reader.address();
            elsewhere(move || (0..EACH).for_each(|n| reader.tell((sender, n)).unwrap()))
        })
        .collect();
    let tasks = (3..6).map(|sender| {
        let reader = reader.address();
        home.spawn_task(async move {
            for n in 0..EACH {
                reader.tell((sender, n)).unwrap();
                if n % 50 == 0 {
                    yield_now().await;
                }
            }
        })
    });
    drive(join_all(tasks.collect()));
    for thread in threads {
        thread.join();
    }
    assert_eq!(drive(reader.join()).unwrap(), [EACH; 6]);
}

pub fn an_actor_is_never_run_by_two_threads_at_once(case: &Case) {
    let home = case.home();
    let alone = home.spawn(actor(|mut cx: Context<()>| async move {
        let inside = AtomicBool::new(false);
        let mut count = 0;
        while cx.recv().await.is_some() {
            assert!(
                !inside.swap(true, Ordering::Relaxed),
                "another thread runs the actor"
            );
            thread::yield_now();
            inside.store(false, Ordering::Relaxed);
            count += 1;
            if count % 7 == 0 {
                yield_now().await;
            }
        }
        count
    }));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..300).for_each(|_| alone.tell(()).unwrap()));
        }
        let tell = |_| {
            let alone = alone.address();
            home.spawn_task(async move {
                for _ in 0..100 {
                    alone.tell(()).unwrap();
                    yield_now().await;
                }
            })
        };
        drive(join_all((0..4).map(tell).collect()));
    });
    assert_eq!(drive(alone.join()).unwrap(), 1300);
}

pub fn a_task_that_is_woken_in_its_turn_runs_again(case: &Case) {
    let home = case.home();
    let turns = Arc::new(AtomicUsize::new(0));
    let yields = |_| {
        let turns = turns.clone();
        home.spawn_task(async move {
            for _ in 0..300 {
                turns.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        })
    };
    drive(join_all((0..10).map(yields).collect()));
    assert_eq!(turns.load(Ordering::Relaxed), 3000);
}

/// Asserts that other tasks get their turns while some tasks are always ready.
fn others_have_their_turns(home: &Home) {
    for n in 0..30 {
        assert_eq!(drive(home.spawn_task(async move { n })), n);
    }
    let yields = |_| {
        home.spawn_task(async {
            for _ in 0..20 {
                yield_now().await;
            }
        })
    };
    drive(join_all((0..10).map(yields).collect()));
    let sum = spawn!(sum(_), on = &home.runtime);
    (0..300).for_each(|n| sum.tell(n).unwrap());
    assert_eq!(drive(sum.join()).unwrap(), 299 * 300 / 2);
}

pub fn an_actor_that_messages_itself_forever_does_not_starve_other_tasks(case: &Case) {
    let home = case.home();
    let chatter = |_| {
        let chatter = home.spawn(actor(|mut cx: Context<()>| async move {
            let me = cx.downgrade();
            while cx.recv().await.is_some() {
                let _ = me.tell(());
            }
        }));
        chatter.tell(()).unwrap();
        chatter
    };
    let chatters: Vec<_> = (0..case.workers + 1).map(chatter).collect();
    others_have_their_turns(&home);
    for chatter in chatters {
        chatter.kill();
        drive(chatter.closed());
    }
}

pub fn a_task_that_yields_forever_does_not_starve_other_tasks(case: &Case) {
    let home = case.home();
    let restless = |_| {
        home.spawn_task(async {
            loop {
                yield_now().await;
            }
        })
    };
    let restless: Vec<Task<()>> = (0..case.workers + 1).map(restless).collect();
    others_have_their_turns(&home);
    drop(restless);
}

pub fn blocking_calls_return_their_values(case: &Case) {
    let home = case.home();
    let calls = |n| home.spawn_task(async move { unblock(move || n * 2).await });
    let doubled = drive(join_all((0..50).map(calls).collect()));
    assert!(doubled.into_iter().eq((0..50).map(|n| n * 2)));
}

pub fn a_task_may_block_on_another_task(case: &Case) {
    let home = case.home();
    for n in 0..20 {
        let waits = home.spawn_task(async move {
            let there = greenroom::spawn(async move { n });
            Runtime::current().block_on(async move { there.await + 1 })
        });
        assert_eq!(drive(waits), n + 1);
    }
}

pub fn all_workers_may_wait_in_block_on_at_once(case: &Case) {
    let home = case.home();
    for _ in 0..5 {
        let meeting = Arc::new(Barrier::new(case.workers));
        let waits = |n| {
            let meeting = meeting.clone();
            home.spawn_task(async move {
                meeting.wait();
                let value = Runtime::current().block_on(async {
                    yield_now().await;
                    greenroom::spawn(async move { n }).await
                });
                // The task may yield afterwards like any other.
                yield_now().await;
                value
            })
        };
        let values = drive(join_all((0..case.workers).map(waits).collect()));
        assert!(values.into_iter().eq(0..case.workers));
    }
}

pub fn pinned_threads_and_workers_talk_to_each_other(case: &Case) {
    let home = case.home();
    let pinned = home.runtime.spawn_pinned("pinned").unwrap();
    let there = spawn!(next(_), on = &pinned);
    let here = spawn!(next(_), on = &home.runtime);
    let (asked, asks) = (there.address(), here.address());
    let from_worker = home.spawn_task(async move {
        let mut n = 0;
        while n < 300 {
            n = asked.ask(|reply| (n, reply)).await.unwrap();
        }
        n
    });
    let from_pinned = pinned.spawn(move || async move {
        let mut n = 0;
        while n < 300 {
            n = asks.ask(|reply| (n, reply)).await.unwrap();
        }
        n
    });
    assert_eq!((drive(from_worker), drive(from_pinned)), (300, 300));
}

pub fn detached_actors_and_workers_talk_to_each_other(case: &Case) {
    let home = case.home();
    let here = spawn!(next(_), on = &home.runtime);
    let asks = here.address();
    let detached = inside(&home.runtime, || {
        spawn!(
            |mut cx: Context<u64>| async move {
                let mut n = 0;
                while let Some(limit) = cx.recv().await {
                    while n < limit {
                        // The actor may block while the workers continue.
                        n = Runtime::current()
                            .block_on(asks.ask(|reply| (n, reply)))
                            .unwrap();
                    }
                }
                n
            },
            on = Detached
        )
    });
    detached.tell(100).unwrap();
    detached.tell(200).unwrap();
    assert_eq!(drive(detached.join()).unwrap(), 200);
}
