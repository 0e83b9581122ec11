//! All parts of greenroom at once, on many small runtimes: for tools that check the execution of a
//! program, such as ThreadSanitizer.
//!
//! `GREENROOM_STRESS_ROUNDS` sets how many rounds each test runs. The tests share only `Arc`s,
//! atomics and greenroom values between threads: ThreadSanitizer does not see the order that other
//! locks of `std` establish.
#![forbid(unsafe_code)]

mod rounds;

use std::panic::resume_unwind;
use std::pin::pin;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::{Either, select};
use futures::stream;
use greenroom::supervise::Restarts;
use greenroom::time::{Interval, sleep, timeout};
use greenroom::{
    Address, AskError, Context, Detached, Handle, Pinned, Reply, Runtime, actor, spawn, unblock,
    yield_now,
};

use rounds::{rounds, runtime};

const MOMENT: Duration = Duration::from_micros(200);
const SOON: Duration = Duration::from_millis(1);

enum Message {
    Add(u64),
    Total(Reply<u64>),
    Hold(Vec<u8>),
}

async fn sum(mut cx: Context<Message>) -> u64 {
    let mut sum = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Message::Add(n) => sum += n,
            Message::Total(reply) => reply.send(sum),
            Message::Hold(bytes) => {
                sum += bytes.len() as u64;
                if sum.is_multiple_of(7) {
                    yield_now().await;
                }
            }
        }
    }
    sum
}

type Sum = Handle<Message, u64>;

fn sums(runtime: &Runtime, pinned: &Pinned) -> Vec<Sum> {
    let spawned = (0..6).map(|n| {
        let one = actor(sum).name("sum");
        let one = if n % 2 == 0 { one.capacity(2) } else { one };
        if n == 5 {
            one.on(pinned).spawn()
        } else {
            one.on(runtime).spawn()
        }
    });
    spawned.collect()
}

fn addresses(sums: &[Sum]) -> Vec<Address<Message>> {
    sums.iter().map(Handle::address).collect()
}

/// Starts a thread outside any runtime that sends to, maps, kills and clones addresses.
fn tells_from_outside(sums: &[Sum], first: usize) -> thread::JoinHandle<()> {
    let sums = addresses(sums);
    thread::spawn(move || {
        for n in 0..150 {
            let to = &sums[(n + first) % sums.len()];
            let _ = to.tell(Message::Add(n as u64));
            if n % 50 == 49 {
                let bytes = to.map(|byte: u8| Message::Hold(vec![byte; 300]));
                let _ = bytes.tell(1);
            }
            if n == 100 && first == 0 {
                sums[1].kill();
            }
            drop(to.clone());
        }
    })
}

/// Exercises everything that a task does with actors and other tasks.
async fn does_everything(seed: u64, sums: Vec<Address<Message>>) {
    for step in 0..30 {
        let to = &sums[((seed + step) % 6) as usize];
        match step % 6 {
            0 => drop(to.send(Message::Hold(vec![0; 100 * step as usize])).await),
            1 => drop(timeout(MOMENT, to.ask(Message::Total)).await),
            2 => drop(to.ask(Message::Total).timeout(SOON).await),
            3 => {
                let task = spawn(async move {
                    yield_now().await;
                    step
                });
                if step % 4 == 3 {
                    drop(task);
                } else {
                    // Cancelled by a shutdown, or done.
                    task.fallible().await;
                }
            }
            4 if step % 12 == 4 => {
                let done = unblock(move || step).fallible().await;
                assert!(done.is_none_or(|done| done == step));
            }
            4 => Runtime::current().block_on(yield_now()),
            _ => sleep(MOMENT).await,
        }
    }
}

#[test]
fn actors_and_tasks() {
    rounds(|seed| {
        let runtime = runtime(seed);
        let pinned = runtime.spawn_pinned("stress").unwrap();
        let sums = sums(&runtime, &pinned);
        let outside = [0, 1].map(|first| tells_from_outside(&sums, first));
        let task = |n| runtime.spawn(does_everything(n, addresses(&sums)));
        let tasks: Vec<_> = (0..6).map(task).collect();
        let detached = actor(async |mut cx: Context<u8>| Runtime::current().block_on(cx.recv()));
        let detached = runtime.block_on(async { detached.on(Detached).spawn() });
        detached.tell(1).unwrap();
        if seed.is_multiple_of(4) {
            tasks.into_iter().for_each(|task| task.detach());
        } else {
            let all = async {
                for task in tasks {
                    task.await;
                }
            };
            runtime.block_on(all);
        }
        outside
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        if seed.is_multiple_of(2) {
            sums.iter().for_each(|sum| sum.stop());
            let all = async {
                for sum in sums {
                    let _ = sum.join().await;
                }
            };
            runtime.block_on(all);
        }
        assert_eq!(block_on(detached.join()).unwrap(), Some(1));
    });
}

/// Shuts down while all parts are in use.
#[test]
fn a_shutdown_amid_work() {
    rounds(|seed| {
        let runtime = runtime(seed);
        let pinned = runtime.spawn_pinned("stress").unwrap();
        let sums = sums(&runtime, &pinned);
        let outside = [0, 1].map(|first| tells_from_outside(&sums, first));
        for n in 0..4 {
            let all = addresses(&sums);
            runtime.spawn(does_everything(n, all)).detach();
        }
        let reads = runtime.clone();
        let reads = thread::spawn(move || (0..50).map(|_| reads.stats().total().runs).max());
        if seed.is_multiple_of(2) {
            drop(runtime);
            drop(sums);
        } else {
            let ends = runtime.clone();
            let closing = thread::spawn(move || block_on(ends.shutdown()));
            drop((pinned, runtime));
            closing.join().unwrap();
        }
        outside
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        reads.join().unwrap();
    });
}

/// Timers, streams and results as messages; other threads than the actor's produce them.
#[test]
fn sources() {
    rounds(|seed| {
        let runtime = runtime(seed);
        let reads = |n: u64| {
            actor(move |mut cx: Context<u64>| async move {
                let guard = cx.send_every(MOMENT, || 1);
                cx.send_after(SOON, 100).detach();
                cx.attach(stream::iter(0..20)).detach();
                cx.on_return(spawn(async move { n }), Result::unwrap);
                cx.on_return(unblock(move || n), Result::unwrap);
                let mut sum = 0;
                while let Some(number) = cx.recv().await {
                    sum += number;
                    if number == 100 {
                        cx.stop();
                    }
                }
                drop(guard);
                sum
            })
        };
        let readers: Vec<_> = (0..4).map(|n| reads(n).on(&runtime).spawn()).collect();
        let weak: Vec<_> = readers.iter().map(|reader| reader.downgrade()).collect();
        let outside = thread::spawn(move || {
            for n in 0..100 {
                if let Some(address) = weak[n % 4].upgrade() {
                    let _ = address.tell(2);
                }
            }
        });
        runtime.block_on(async {
            let mut ticks = Interval::new(MOMENT);
            for reader in readers {
                ticks.tick().await;
                assert!(reader.join().await.unwrap() >= 100);
            }
        });
        outside.join().unwrap();
    });
}

/// Calls tasks and hosted values of pinned threads from workers and other threads.
#[test]
fn pinned_threads_and_stages() {
    rounds(|seed| {
        let runtime = runtime(seed);
        let pinned = runtime.spawn_pinned("stress").unwrap();
        let hosted = block_on(pinned.host(Vec::new)).unwrap();
        let calls: Vec<_> = (0..4)
            .map(|n| {
                let hosted = hosted.clone();
                runtime.spawn(async move {
                    for step in 0..20 {
                        hosted.with_mut(move |all| all.push(step)).await.unwrap();
                        let call = pin!(hosted.with(|all| all.len()));
                        // The call is dropped at once, or answered.
                        if let Either::Left((len, _)) = select(call, pin!(yield_now())).await {
                            assert!(len.unwrap() > step, "{n}");
                        }
                    }
                })
            })
            .collect();
        let stage_of = runtime.clone();
        let staged = thread::spawn(move || {
            let stage = stage_of.pinned_here();
            let tasks: Vec<_> = (0..4)
                .map(|n| {
                    stage.spawn(move || {
                        let own = Rc::new(n);
                        async move {
                            for _ in 0..10 {
                                spawn(yield_now()).await;
                            }
                            *own
                        }
                    })
                })
                .collect();
            stage.run_ready();
            for (n, task) in tasks.into_iter().enumerate() {
                assert_eq!(stage.block_on(task), n);
            }
        });
        let called = async {
            for call in calls {
                call.await;
            }
            hosted.with(|all| all.len()).await.unwrap()
        };
        assert_eq!(runtime.block_on(called), 80);
        staged.join().unwrap();
    });
}

/// Actors that another executor polls, with threads that send to them, await their end and kill
/// them.
#[test]
fn actors_of_another_executor() {
    rounds(|seed| {
        for n in 0..8 {
            let builder = actor(sum);
            let builder = if n % 2 == 0 {
                builder.capacity(1)
            } else {
                builder
            };
            let (address, actor) = builder.split();
            let polls = thread::spawn(move || block_on(actor).unwrap_or(0));
            let sends = [1, 2].map(|bytes| {
                let address = address.clone();
                thread::spawn(move || {
                    for _ in 0..20 {
                        let _ = block_on(address.send(Message::Hold(vec![0; bytes])));
                    }
                    let _ = block_on(address.ask(Message::Total));
                })
            });
            let waits = address.clone();
            let waits = thread::spawn(move || block_on(waits.closed()));
            if (seed + n).is_multiple_of(4) {
                address.kill();
            }
            sends.into_iter().for_each(|thread| thread.join().unwrap());
            address.stop();
            assert!(polls.join().unwrap() <= 60);
            waits.join().unwrap();
        }
    });
}

type Fails = Handle<u64, ()>;

/// Spawns actors that panic and return often, and that lend their context or give it away.
fn failing(runtime: &Runtime, holder: &Address<Context<u64>>) -> Vec<Fails> {
    let to = holder.clone();
    let gives = move |cx| async move { drop(to.tell(cx)) };
    let fails = move |mut cx: Context<u64>| async move {
        while let Some(number) = cx.recv().await {
            match number % 8 {
                0 => resume_unwind(Box::new(number)),
                1 => return gives(cx).await,
                2 | 3 => drop(cx.incarnation(gives.clone()).await),
                // If the time is over before the context is back, the mailbox is closed.
                4 if number.is_multiple_of(3) => {
                    drop(timeout(MOMENT, cx.incarnation(gives.clone())).await);
                }
                _ => yield_now().await,
            }
        }
    };
    let spawned = (0..6).map(|n| {
        let rules = Restarts::always().intensity(u32::MAX, Duration::from_secs(3600));
        let rules = match n % 3 {
            0 => rules.stand_down(MOMENT),
            _ => rules,
        };
        let one = actor(fails.clone()).restart(rules).on(runtime);
        let one = if n % 2 == 0 { one.capacity(2) } else { one };
        one.on_undelivered(drop).spawn()
    });
    spawned.collect()
}

/// Actors that begin anew, and contexts that another actor has for a moment.
#[test]
fn restarts_and_loans() {
    rounds(|seed| {
        let runtime = runtime(seed);
        let holder = actor(async |mut cx: Context<Context<u64>>| {
            while let Some(mut lent) = cx.recv().await {
                let _ = timeout(MOMENT, lent.recv()).await;
            }
        });
        let holder = holder.on(&runtime).spawn();
        let fails = failing(&runtime, &holder);
        let outside = [0, 1].map(|first| {
            let fails: Vec<_> = fails.iter().map(Handle::address).collect();
            thread::spawn(move || {
                for n in 0..200 {
                    let to = &fails[(n + first) % fails.len()];
                    let _ = match n % 5 {
                        0 => block_on(to.send(n as u64)).is_ok(),
                        _ => to.tell(n as u64).is_ok(),
                    };
                }
                if first == 0 {
                    fails[2].kill();
                }
            })
        });
        outside
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        fails.iter().for_each(|fails| fails.stop());
        runtime.block_on(async {
            for fails in fails {
                let _ = fails.join().await;
            }
            holder.join().await.unwrap();
        });
    });
}

/// Frees queued messages by a kill while the actor reads the one before them.
#[test]
fn kills_amid_messages() {
    rounds(|seed| {
        let runtime = runtime(seed);
        for kill in 0..50 {
            let drain = async |mut cx: Context<Box<usize>>| while cx.recv().await.is_some() {};
            let drain = actor(drain).capacity(4).on(&runtime).spawn();
            let address = drain.address();
            let sends = runtime.spawn(async move {
                let mut number = 0;
                while address.send(Box::new(number)).await.is_ok() {
                    number += 1;
                }
            });
            for _ in 0..100 * kill {
                std::hint::spin_loop();
            }
            drain.kill();
            block_on(drain.join()).unwrap_err();
            block_on(sends);
        }
    });
}

/// Lets two actors ask each other, who get a deadlock error, and waits for quiescence.
#[test]
fn deadlocks_and_quiescence() {
    type Ring = Address<(u32, Reply<u32>)>;
    async fn asks_on(mut cx: Context<(u32, Reply<u32>)>, next: Option<Ring>) {
        let next = next.unwrap_or_else(|| cx.address());
        while let Some((left, reply)) = cx.recv().await {
            let answer = match left.checked_sub(1) {
                None => Ok(0),
                Some(left) => next.ask(|reply| (left, reply)).await,
            };
            if let Ok(answer) = answer {
                reply.send(answer);
            }
        }
    }
    rounds(|seed| {
        let workers = 1 + seed % 3;
        let builder = Runtime::builder().workers(workers).detect_deadlocks(true);
        let runtime = builder.grace(SOON).build().unwrap();
        let end = actor(|cx| asks_on(cx, None)).on(&runtime).spawn();
        let to_end = Some(end.address());
        let begin = actor(move |cx| asks_on(cx, to_end)).on(&runtime).spawn();
        let holds = runtime.keep_alive();
        let outside = runtime.clone();
        let outside = thread::spawn(move || {
            for _ in 0..20 {
                outside.spawn(yield_now()).detach();
            }
            drop(holds);
        });
        runtime.block_on(async {
            assert_eq!(begin.ask(|reply| (1, reply)).await.unwrap(), 0);
            // The last actor asks itself.
            let stuck = begin.ask(|reply| (5, reply)).await;
            assert!(
                matches!(stuck, Err(AskError::Deadlock(_) | AskError::NoReply(_))),
                "{stuck:?}"
            );
        });
        runtime.run_until_quiescent();
        outside.join().unwrap();
    });
}
