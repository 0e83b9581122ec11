//! The items that tokio has, too.

use std::future::poll_fn;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::task::AtomicWaker;

use super::meter::{Meter, count_one, counted, counting_waker};
use crate::way::Way;

/// About the bytes of a dormant actor.
const PLAIN: usize = 128;
/// Longer than any measurement. The deadlines differ by up to as much.
const HOUR: Duration = Duration::from_secs(3600);
/// The time in which the deadlines are that fire.
const SPREAD: Duration = Duration::from_micros(50);
/// As long as a runtime may be late: the resolution of tokio's timers is a millisecond.
const LATE: Duration = Duration::from_micros(1100);

/// Allocates, writes and frees.
pub fn plain(meter: &mut Meter) {
    let order = meter.order();
    while meter.next_lap() {
        let mut held = places(meter.count());
        meter.start_to_create();
        held.fill_with(|| Some(Box::new([1_u8; PLAIN])));
        meter.created("allocate");
        meter.start();
        for &at in &order {
            let bytes = held[at].as_mut().expect("it is held");
            bytes[0] = bytes[0].wrapping_add(1);
        }
        black_box(&mut held);
        meter.end("write");
        meter.start();
        order.iter().for_each(|&at| held[at] = None);
        meter.end("free");
    }
}

/// Spawns actors, tells each one a message, and drops their addresses.
pub async fn actors<W: Way>(meter: &mut Meter) {
    let (order, count) = (meter.order(), meter.count());
    while meter.next_lap() {
        let mut held = places(count);
        meter.start_to_create();
        held.fill_with(|| Some(W::actor(counts::<W>)));
        counted(count).await;
        meter.created("spawn");
        meter.start();
        for &at in &order {
            W::tell(held[at].as_ref().expect("it is held"), 1);
        }
        counted(count).await;
        meter.end("message");
        meter.start();
        order.iter().for_each(|&at| held[at] = None);
        counted(count).await;
        meter.end("end");
    }
}

/// Counts its start, its messages, and its end.
pub async fn counts<W: Way>(mut inbox: W::Inbox<u64>) {
    count_one();
    while W::recv(&mut inbox).await.is_some() {
        count_one();
    }
    count_one();
}

/// What a task waits for.
#[derive(Default)]
struct Gate {
    task: AtomicWaker,
    is_open: AtomicBool,
}

/// Spawns tasks that wait, wakes each one, wakes it again so that it ends, and drops its handle.
pub async fn tasks<W: Way>(meter: &mut Meter) {
    let (order, count) = (meter.order(), meter.count());
    while meter.next_lap() {
        let gates: Arc<[Gate]> = (0..count).map(|_| Gate::default()).collect();
        let mut held = places(count);
        meter.start_to_create();
        for (at, place) in held.iter_mut().enumerate() {
            let gates = gates.clone();
            *place = Some(W::task(poll_fn(move |cx| wait_at(&gates[at], cx))));
        }
        counted(count).await;
        meter.created("spawn");
        meter.start();
        order.iter().for_each(|&at| gates[at].task.wake());
        counted(count).await;
        meter.end("wake");
        meter.start();
        for &at in &order {
            gates[at].is_open.store(true, Ordering::SeqCst);
            gates[at].task.wake();
        }
        counted(count).await;
        held.clear();
        meter.end("end");
    }
}

fn wait_at(gate: &Gate, cx: &mut Context<'_>) -> Poll<()> {
    gate.task.register(cx.waker());
    count_one();
    match gate.is_open.load(Ordering::SeqCst) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }
}

/// Arms timers and cancels them; arms others, and lets all of them fire at once.
pub async fn timers<W: Way>(meter: &mut Meter) {
    let (order, count) = (meter.order(), meter.count());
    let waker = counting_waker();
    let mut random = Rng::with_seed(meter.count() as u64);
    let mut until = |most: Duration| Duration::from_nanos(random.u64(0..most.as_nanos() as u64));
    while meter.next_lap() {
        let mut held = places(count);
        let begin = Instant::now();
        meter.start_to_create();
        for place in &mut held {
            let mut timer = Box::pin(W::sleep(HOUR + until(HOUR)));
            let polled = timer.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            *place = Some(timer);
        }
        meter.created("arm");
        // The last of them is armed before the first is due, so that all are pending.
        let soon = SPREAD + 2 * begin.elapsed();
        meter.start();
        order.iter().for_each(|&at| held[at] = None);
        meter.end("cancel");

        let begin = Instant::now();
        for place in &mut held {
            let left = (soon + until(SPREAD)).saturating_sub(begin.elapsed());
            let mut timer = Box::pin(W::sleep(left));
            let polled = timer.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                // This thread had no core for long.
                count_one();
            }
            *place = Some(timer);
        }
        thread::sleep((soon + SPREAD + LATE).saturating_sub(begin.elapsed()));
        meter.start();
        counted(count).await;
        meter.end("fire");
    }
}

/// Lets sends wait for room in a full mailbox: all get it one after the other, and others leave.
pub async fn senders<W: Way>(meter: &mut Meter) {
    let mut own = meter.taken();
    let (done, back) = tokio::sync::oneshot::channel();
    W::bounded(1, async move |mut inbox, to| {
        let (order, count) = (own.order(), own.count());
        while own.next_lap() {
            W::send(&to, 0).await;
            own.start_to_create();
            let mut held = waiting::<W>(&to, count);
            own.created("join the line");
            own.start();
            for sender in &mut held {
                W::recv_bounded(&mut inbox).await.expect("it has a message");
                let sender = sender.as_mut().expect("it is held").as_mut();
                assert!(poll_once(sender).is_ready());
            }
            held.clear();
            own.end("get room");
            let mut held = waiting::<W>(&to, count);
            own.start();
            order.iter().for_each(|&at| held[at] = None);
            own.end("leave the line");
            W::recv_bounded(&mut inbox).await.expect("it has a message");
        }
        assert!(done.send(own).is_ok());
    });
    *meter = back.await.expect("it sends it");
}

type Waiting<'a> = Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>;

/// Returns sends that wait for room.
fn waiting<W: Way>(to: &W::Bounded, count: usize) -> Vec<Waiting<'_>> {
    let mut held: Vec<Waiting<'_>> = places(count);
    for place in &mut held {
        let mut sender = Box::pin(W::send(to, 1));
        assert!(poll_once(sender.as_mut()).is_pending());
        *place = Some(sender);
    }
    held
}

fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(std::task::Waker::noop()))
}

/// Creates space for the items and writes to it.
pub fn places<T>(count: usize) -> Vec<Option<T>> {
    crate::memory::places(count as u64)
}
