//! The context as a stream.

use futures::{FutureExt, StreamExt, select_biased};
use greenroom::{Context, actor, spawn};

use crate::support::{CountingWaker, Home, drive, in_every_home, on_workers, poll_here};

in_every_home!(
    a_context_is_a_stream_that_ends_when_recv_returns_none,
    recv_and_the_stream_take_from_the_same_mailbox,
);

fn a_context_is_a_stream_that_ends_when_recv_returns_none(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let all: Vec<_> = cx.by_ref().collect().await;
        assert_eq!(cx.next().await, None);
        assert_eq!(cx.recv().await, None);
        all
    }));
    (0..200).for_each(|number| handle.tell(number).unwrap());
    handle.stop();
    assert!(home.block_on(handle.join()).unwrap().into_iter().eq(0..200));
}

fn recv_and_the_stream_take_from_the_same_mailbox(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let mut all = Vec::new();
        loop {
            all.extend(cx.next().await);
            match cx.recv().await {
                Some(number) => all.push(number),
                None => return all,
            }
        }
    }));
    (0..101).for_each(|number| handle.tell(number).unwrap());
    assert!(home.block_on(handle.join()).unwrap().into_iter().eq(0..101));
}

#[test]
fn a_stream_in_a_select_loses_no_message() {
    on_workers(2, async {
        let sum = spawn!(|mut cx: Context<u64>| async move {
            let (mut sum, mut ticks) = (0, 0);
            loop {
                select_biased! {
                    () = greenroom::yield_now().fuse() => ticks += 1,
                    number = cx.next().fuse() => match number {
                        Some(number) => sum += number,
                        None => return (sum, ticks),
                    },
                }
            }
        });
        for number in 1..=1000 {
            sum.tell(number).unwrap();
            if number % 10 == 0 {
                greenroom::yield_now().await;
            }
        }
        assert_eq!(sum.join().await.unwrap().0, 500_500);
    });
}

#[test]
fn a_message_wakes_the_task_that_polled_the_stream_last() {
    on_workers(1, async {
        let (give, take) = futures::channel::oneshot::channel();
        let gives = spawn!(|cx: Context<u32>| async move {
            let _ = give.send(cx);
            std::future::pending::<()>().await;
        });
        let mut cx = take.await.unwrap();
        assert!(poll_here(&mut cx.next()).await.is_pending());
        let (counter, waker) = CountingWaker::new();
        let mut other = std::task::Context::from_waker(&waker);
        assert!(cx.poll_next_unpin(&mut other).is_pending());
        gives.tell(1).unwrap();
        gives.tell(2).unwrap();
        assert_eq!(counter.count(), 1);
        assert_eq!(drive(cx.next()), Some(1));
        assert_eq!(drive(cx.next()), Some(2));
        gives.kill();
    });
}

/// `try_recv` registers no waker and takes no wake-up from the waiting stream.
#[test]
fn try_recv_takes_no_wake_up_from_a_stream_that_waits_for_a_source() {
    on_workers(1, async {
        let handle = spawn!(|mut cx: Context<u32>| async move {
            let _timer = cx.send_after(std::time::Duration::from_millis(2), 7);
            std::future::poll_fn(|task| match cx.poll_next_unpin(task) {
                std::task::Poll::Pending => cx.try_recv().map_or(std::task::Poll::Pending, |m| {
                    std::task::Poll::Ready(Some(m))
                }),
                ready => ready,
            })
            .await
        });
        assert_eq!(handle.join().await.unwrap(), Some(7));
    });
}

#[test]
fn an_unpolled_recv_takes_no_wake_up_from_the_stream() {
    on_workers(1, async {
        let (waits, waiting) = futures::channel::oneshot::channel();
        let handle = spawn!(|mut cx: Context<u32>| async move {
            let mut waits = Some(waits);
            std::future::poll_fn(|task| {
                let next = cx.poll_next_unpin(task);
                if next.is_pending() {
                    drop(cx.recv());
                    let _ = waits.take().map(|waits| waits.send(()));
                }
                next
            })
            .await
        });
        waiting.await.unwrap();
        handle.tell(7).unwrap();
        assert_eq!(handle.join().await.unwrap(), Some(7));
    });
}
