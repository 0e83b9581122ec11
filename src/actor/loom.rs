//! Models of a whole actor: 30, the last address is dropped while it begins and gives itself a source; 39, it
//! ends while another thread begins to wait for that; 43, an address is made while it finds no other left;
//! 44, it is killed, and a message of its own waits for its end; 47, it is killed while it has messages in hand;
//! 50, it is dropped while somebody wakes it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::loom::thread::spawn;
use futures_util::stream;

use crate::park::Parker;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Wakes the thread that polls.
struct Bell(Parker);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls the future on this thread until it is ready.
fn drive<F: Future + Unpin>(mut future: F) -> F::Output {
    let bell = Arc::new(Bell(Parker::new()));
    let waker = Waker::from(bell.clone());
    loop {
        match Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => drop(bell.0.park(None)),
        }
    }
}

/// Whenever the last address goes, the source is read to its end, and then the actor is closed.
#[test]
fn model_30_a_source_is_read_though_the_last_address_is_dropped_meanwhile() {
    // The fault that it is to find takes more than others do.
    crate::sync::follow_waits();
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(|| {
        let (address, mut actor) = crate::actor(|mut cx: crate::Context<u32>| async move {
            cx.attach(stream::iter([7, 8])).detach();
            [cx.recv().await, cx.recv().await, cx.recv().await]
        })
        .split();
        let polling = spawn(move || drive(&mut actor).expect("it ends by itself"));
        drop(address);
        let received = polling.join().unwrap();
        assert_eq!(
            received,
            [Some(7), Some(8), None],
            "the source was there before the end"
        );
    });
}

/// Whoever waits for the end of an actor hears of it, though the place for those who wait is made meanwhile.
#[test]
fn model_39_the_end_of_an_actor_is_heard() {
    ::loom::model(|| {
        let (address, mut actor) = crate::actor(async |_: crate::Context<u32>| 7).split();
        let waiting = spawn(move || drive(pin!(address.closed())));
        match Pin::new(&mut actor).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => assert_eq!(ended.expect("it ends by itself"), 7),
            Poll::Pending => panic!("it waits for nothing"),
        }
        waiting.join().unwrap();
    });
}

/// An address that is made of a weak one is good, though the actor finds meanwhile that no other is left.
#[test]
fn model_43_an_address_that_was_made_anew_keeps_the_actor_open() {
    ::loom::model(|| {
        let (address, mut actor) = crate::actor(|mut cx: crate::Context<u32>| async move {
            [cx.recv().await, cx.recv().await]
        })
        .split();
        let weak = address.downgrade();
        let upgrading = spawn(move || {
            let upgraded = weak.upgrade()?;
            upgraded.tell(7).expect("an address that was made is good");
            Some(7)
        });
        drop(address);
        let received = drive(&mut actor).expect("it ends by itself");
        assert_eq!(
            received,
            [upgrading.join().unwrap(), None],
            "what was told is received"
        );
    });
}

/// A message that waits for the end of the actor that it was sent to, when it is dropped.
struct Waits(crate::WeakAddress<Waits>);

impl Drop for Waits {
    fn drop(&mut self) {
        drive(pin!(self.0.closed()));
    }
}

/// A kill ends though it drops a message that waits for the end of the actor.
#[test]
fn model_44_a_message_that_waits_for_the_end_does_not_hold_it_up() {
    ::loom::model(|| {
        let (address, mut actor) = crate::actor(|cx: crate::Context<Waits>| async move {
            let _cx = cx;
            std::future::pending::<()>().await;
        })
        .split();
        let polling = spawn(move || drive(&mut actor));
        address.tell(Waits(address.downgrade())).ok();
        address.kill();
        assert!(polling.join().unwrap().is_err());
    });
}

/// A kill that has returned is known to the run that is under way: it handles no further message, not even one
/// that the actor had taken before.
#[test]
fn model_47_nothing_is_handled_after_a_kill() {
    ::loom::model(|| {
        let killed = Arc::new(AtomicBool::new(false));
        let own = killed.clone();
        let (address, mut actor) = crate::actor(|mut cx: crate::Context<()>| async move {
            // It takes both messages, and has the second one in hand when its next run begins.
            cx.recv().await;
            pending_once().await;
            // Acquire pairs with the Release below.
            let was_killed = own.load(Ordering::Acquire);
            cx.recv().await;
            if !was_killed {
                std::future::pending::<()>().await;
            }
        })
        .split();
        for _ in 0..2 {
            address.tell(()).expect("it is open");
        }
        let polled = Pin::new(&mut actor).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "it goes on in its next run");
        let polling = spawn(move || drive(&mut actor));
        address.kill();
        // Release: as above.
        killed.store(true, Ordering::Release);
        let ended = polling.join().unwrap();
        assert!(ended.is_err(), "a message was handled after the kill");
    });
}

/// Wakes itself, and is ready in the next poll.
async fn pending_once() {
    let mut was_polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut was_polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Tells when it is dropped.
struct Tells(Arc<AtomicBool>);

impl Drop for Tells {
    fn drop(&mut self) {
        // Relaxed: whoever dropped it looks, on the same thread.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// When the future of an actor was dropped, what was in the actor is dropped too, though somebody who has just
/// woken it has not brought its runnable yet.
#[test]
fn model_50_a_dropped_actor_is_gone_though_it_is_woken_meanwhile() {
    ::loom::model(|| {
        let gone = Arc::new(AtomicBool::new(false));
        let own = Tells(gone.clone());
        let (address, mut actor) = crate::actor(|mut cx: crate::Context<()>| async move {
            let _own = own;
            cx.recv().await
        })
        .split();
        let polled = Pin::new(&mut actor).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "nothing was told");
        let dropping = spawn(move || {
            drop(actor);
            // Relaxed: as above.
            assert!(gone.load(Ordering::Relaxed), "the actor is still there");
        });
        drop(address.tell(()));
        dropping.join().unwrap();
    });
}
