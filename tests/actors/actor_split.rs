//! A split actor: a future that another executor drives.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context as TaskContext;
use std::time::Duration;

use greenroom::{AskDetail, AskError, Context, Fault, Reply, actor};

use crate::support::{Bomb, CountingWaker, Drops, Gate, WATCH, drive, panic_of, poll_once, within};

enum Word {
    Add(u32),
    Sum(Reply<u32>),
}

async fn sum(mut cx: Context<Word>) -> u32 {
    let mut sum = 0;
    while let Some(word) = cx.recv().await {
        match word {
            Word::Add(number) => sum += number,
            Word::Sum(reply) => reply.send(sum),
        }
    }
    sum
}

/// Uses an address as a user does, on any executor.
async fn talk(address: greenroom::Address<Word>) {
    for _ in 0..100 {
        address.send(Word::Add(1)).await.unwrap();
    }
    let asked = address.ask(Word::Sum).timeout(Duration::from_secs(60));
    assert_eq!(asked.await, Ok(100));
    address.stop();
    address.closed().await;
}

#[test]
fn a_split_actor_runs_on_tokio() {
    within(WATCH, || {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        tokio.block_on(async {
            let (address, future) = actor(sum).name("on tokio").capacity(3).split();
            let running = tokio::spawn(future);
            talk(address).await;
            assert_eq!(running.await.unwrap().unwrap(), 100);
        });
    });
}

#[test]
fn a_split_actor_runs_on_smol() {
    within(WATCH, || {
        smol::block_on(async {
            let (address, future) = actor(sum).capacity(3).split();
            let running = smol::spawn(future);
            talk(address).await;
            assert_eq!(running.await.unwrap(), 100);
        });
    });
}

#[test]
fn timers_of_a_split_actor_work_on_another_executor() {
    within(WATCH, || {
        let (address, future) = actor(|mut cx: Context<u32>| async move {
            greenroom::time::sleep(Duration::from_millis(1)).await;
            let _timer = cx.send_after(Duration::from_millis(1), 7);
            cx.recv().await
        })
        .split();
        assert_eq!(smol::block_on(future).unwrap(), Some(7));
        assert!(address.is_closed());
    });
}

#[test]
fn a_split_actor_on_a_local_executor_need_not_be_send() {
    within(WATCH, || {
        let seen = Rc::new(Cell::new(0));
        let own = seen.clone();
        let (address, future) = actor(move |mut cx: Context<u32>| async move {
            while let Some(number) = cx.recv().await {
                own.set(own.get() + number);
            }
            own
        })
        .split();
        std::thread::spawn(move || (0..10).for_each(|n| address.tell(n).unwrap()));
        let own = drive(future).unwrap();
        assert_eq!(own.get(), 45);
        assert!(Rc::ptr_eq(&own, &seen));
    });
}

#[test]
fn a_message_wakes_the_task_that_polled_it_last() {
    let (address, mut future) = actor(sum).split();
    let (first, waker) = CountingWaker::new();
    let mut cx = TaskContext::from_waker(&waker);
    assert!(Pin::new(&mut future).poll(&mut cx).is_pending());
    let (second, waker) = CountingWaker::new();
    let mut cx = TaskContext::from_waker(&waker);
    assert!(Pin::new(&mut future).poll(&mut cx).is_pending());
    for n in 0..5 {
        address.tell(Word::Add(n)).unwrap();
    }
    assert_eq!((first.count(), second.count()), (0, 1));
    drop(address);
    assert_eq!(drive(future).unwrap(), 10);
}

#[test]
fn a_split_actor_returns_its_panic_as_a_fault() {
    let (address, future) = actor(|mut cx: Context<()>| async move {
        let message = cx.recv().await;
        assert!(message.is_none(), "on another executor");
    })
    .split();
    address.tell(()).unwrap();
    let Err(Fault::Panicked(panic)) = drive(future) else {
        panic!("it panicked")
    };
    assert_eq!(panic.text(), Some("on another executor"));
    assert!(address.tell(()).unwrap_err().is_closed());
}

#[test]
fn a_killed_split_actor_is_dropped_at_its_next_poll() {
    let drops = Drops::default();
    let dropped = drops.one();
    let (address, mut future) = actor(|mut cx: Context<()>| async move {
        let _dropped = dropped;
        cx.recv().await
    })
    .split();
    assert!(poll_once(&mut future).is_pending());
    address.kill();
    assert_eq!(drops.count(), 0);
    assert!(matches!(drive(future), Err(Fault::Killed)));
    assert_eq!(drops.count(), 1);
}

#[test]
fn dropping_a_split_actor_cancels_it_and_drops_its_messages() {
    let drops = Drops::default();
    for polled in [false, true] {
        let dropped = drops.one();
        let (address, mut future) = actor(|mut cx: Context<Reply<()>>| async move {
            let _dropped = dropped;
            while cx.recv().await.is_some() {}
        })
        .split();
        if polled {
            assert!(poll_once(&mut future).is_pending());
        }
        let mut asked = address.ask(|reply| reply);
        assert!(poll_once(&mut Box::pin(&mut asked).as_mut()).is_pending());
        drop(future);
        assert_eq!(drive(asked), Err(AskError::NoReply(AskDetail::default())));
        assert!(address.is_closed());
        drive(address.closed());
    }
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_panic_in_the_drop_of_a_split_actor_is_contained() {
    crate::support::keep_bombs_quiet();
    let drops = Drops::default();
    let bomb = Bomb::new(true, &drops);
    let (_address, mut future) = actor(|mut cx: Context<()>| async move {
        let _bomb = bomb;
        cx.recv().await
    })
    .split();
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    assert_eq!(drops.count(), 1);
}

/// The drop waits for a wake-up in progress on another thread, so the actor is dropped on this
/// thread.
#[test]
fn a_split_actor_dropped_during_wake_ups_is_dropped_on_the_dropping_thread() {
    within(WATCH, || {
        for _ in 0..200 {
            let here = std::thread::current().id();
            let drops = Drops::default();
            #[expect(dead_code, reason = "counted by its drop, and not `Send`")]
            struct Here(std::thread::ThreadId, crate::support::Dropped, Rc<()>);
            impl Drop for Here {
                fn drop(&mut self) {
                    assert_eq!(std::thread::current().id(), self.0);
                }
            }
            let state = Here(here, drops.one(), Rc::new(()));
            let (address, mut future) = actor(|mut cx: Context<u32>| async move {
                let _state = &state;
                while cx.recv().await.is_some() {}
            })
            .split();
            assert!(poll_once(&mut future).is_pending());
            let gate = Gate::default();
            let told = Arc::new(address);
            let teller = std::thread::spawn({
                let (gate, told) = (gate.clone(), told.clone());
                move || {
                    gate.open();
                    while told.tell(1).is_ok() {}
                }
            });
            gate.pass();
            drop(future);
            assert_eq!(drops.count(), 1);
            teller.join().unwrap();
        }
    });
}

#[test]
fn split_panics_at_the_call_for_an_impossible_option() {
    let here = line!() + 1;
    let (text, file, line) = panic_of(|| actor(sum).name("none").capacity(0).split());
    assert!(
        text.contains("\"none\"") && text.contains("capacity is 0"),
        "{text}"
    );
    assert_eq!((file.as_str(), line), (file!(), here));
}

#[test]
fn a_split_actor_that_has_ended_keeps_no_waker() {
    for finished in [true, false] {
        let (address, mut future) = actor(sum).split();
        let (counter, waker) = CountingWaker::new();
        let mut cx = TaskContext::from_waker(&waker);
        assert!(Pin::new(&mut future).poll(&mut cx).is_pending());
        if finished {
            address.stop();
            assert!(Pin::new(&mut future).poll(&mut cx).is_ready());
        } else {
            drop(future);
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&counter), 1, "the address keeps no waker");
        drop(address);
    }
}
