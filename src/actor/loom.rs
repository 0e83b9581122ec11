//! Models of a whole actor.
//!
//! - `model_30`: the last address is dropped while the actor starts and attaches a source.
//! - `model_39`: the actor ends while another thread starts to wait for its end.
//! - `model_43`: a weak address is upgraded while the actor finds no other address.
//! - `model_44`: the actor is killed, and a message to it waits for its end.
//! - `model_47`: the actor is killed, or stopped at once, while it holds taken messages.
//! - `model_50`: the actor is dropped while another thread wakes it.
//! - `model_56`: a lent context is dropped on another thread while its lender waits for it.
//! - `model_57`: a lent context is dropped on another thread while its lender is dropped.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::loom::thread::spawn;
use futures_util::stream;

use crate::park::Parker;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A waker that unparks the polling thread.
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

/// Checks that the source is read to its end before the actor closes, whenever the last address is
/// dropped.
#[test]
fn model_30_source_is_read_although_the_last_address_is_dropped() {
    // The bug that this model finds needs more preemptions than the others.
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
            "the source was attached before the actor closed"
        );
    });
}

/// Checks that a task that waits for the actor's end is woken, even if the list of waiters is
/// created meanwhile.
#[test]
fn model_39_end_of_an_actor_wakes_its_waiters() {
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

/// Checks that an upgraded address keeps the actor open, even if the actor finds no other address
/// meanwhile.
#[test]
fn model_43_upgraded_address_keeps_the_actor_open() {
    ::loom::model(|| {
        let (address, mut actor) = crate::actor(|mut cx: crate::Context<u32>| async move {
            [cx.recv().await, cx.recv().await]
        })
        .split();
        let weak = address.downgrade();
        let upgrading = spawn(move || {
            let upgraded = weak.upgrade()?;
            upgraded.tell(7).expect("an upgraded address is open");
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

/// A message whose drop waits for the end of the actor that it was sent to.
struct Waits(crate::WeakAddress<Waits>);

impl Drop for Waits {
    fn drop(&mut self) {
        drive(pin!(self.0.closed()));
    }
}

/// Checks that a kill returns although it drops a message that waits for the actor's end.
#[test]
fn model_44_message_that_waits_for_the_end_does_not_block_a_kill() {
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

/// Checks that a run in progress observes a kill that has returned: it handles no further message,
/// not even one that the actor has taken before.
#[test]
fn model_47_nothing_is_handled_after_a_kill() {
    ::loom::model(|| {
        let killed = Arc::new(AtomicBool::new(false));
        let own = killed.clone();
        let (address, mut actor) = crate::actor(|mut cx: crate::Context<()>| async move {
            // This takes both messages. The second one is in the batch when the next run begins.
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
        assert!(polled.is_pending(), "it continues in its next run");
        let polling = spawn(move || drive(&mut actor));
        address.kill();
        // Release: pairs with the Acquire above.
        killed.store(true, Ordering::Release);
        let ended = polling.join().unwrap();
        assert!(ended.is_err(), "a message was handled after the kill");
    });
}

/// Checks that a run in progress observes a stop at once that has returned: it receives no message
/// that the actor has taken before.
#[test]
fn model_47_nothing_is_received_after_a_stop_at_once() {
    ::loom::model(|| {
        let stopped = Arc::new(AtomicBool::new(false));
        let own = stopped.clone();
        let (address, mut actor) = crate::actor(|mut cx: crate::Context<()>| async move {
            // As above, the second message is in the batch when the next run begins.
            cx.recv().await;
            pending_once().await;
            // Acquire pairs with the Release below.
            let was_stopped = own.load(Ordering::Acquire);
            cx.recv().await.is_none() || !was_stopped
        })
        .split();
        for _ in 0..2 {
            address.tell(()).expect("it is open");
        }
        let polled = Pin::new(&mut actor).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "it continues in its next run");
        let polling = spawn(move || drive(&mut actor));
        address.stop_now();
        // Release: pairs with the Acquire above.
        stopped.store(true, Ordering::Release);
        let is_none = polling.join().unwrap().expect("it returns");
        assert!(is_none, "a message was received after the stop");
    });
}

/// Wakes its task once, and is ready in the second poll.
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

/// A value that sets a flag when it is dropped.
struct Tells(Arc<AtomicBool>);

impl Drop for Tells {
    fn drop(&mut self) {
        // Relaxed: the thread that drops it reads the flag.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks that dropping a split actor drops its state, even if another thread has woken it and not
/// stored its runnable yet.
#[test]
fn model_50_dropped_split_drops_an_actor_that_is_being_woken() {
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
            // Relaxed: written by this thread, in `drop`.
            assert!(gone.load(Ordering::Relaxed), "the actor was not dropped");
        });
        drop(address.tell(()));
        dropping.join().unwrap();
    });
}

/// The place of a context that was moved out of its actor.
type Place = Rc<RefCell<Option<crate::Context<u32>>>>;

/// Lends the context to a future that moves it to the place. Then receives.
async fn lends(mut cx: crate::Context<u32>, place: Place) -> Option<u32> {
    let moves = |cx| async move { place.replace(Some(cx)) };
    woken(pin!(cx.incarnation(moves)))
        .await
        .expect("it returns");
    cx.recv().await
}

/// Awaits the future, and wakes its task once, so that the second poll comes without a wake-up.
async fn woken<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let mut was_polled = false;
    poll_fn(|cx| {
        if !std::mem::replace(&mut was_polled, true) {
            cx.waker().wake_by_ref();
        }
        future.as_mut().poll(cx)
    })
    .await
}

/// Polls an actor that lends its context, and returns the context.
fn context_of<F: Future + Unpin>(actor: &mut F, place: &Place) -> crate::Context<u32> {
    let polled = Pin::new(actor).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "its context is elsewhere");
    place.take().expect("it was moved there")
}

/// Checks that the lender has the context, and what is left of its batch, when another thread has
/// dropped it.
#[test]
fn model_56_context_that_is_dropped_elsewhere_is_its_lenders() {
    ::loom::model(|| {
        let place = Place::default();
        let own = place.clone();
        let (address, mut actor) = crate::actor(move |cx| lends(cx, own)).split();
        for number in [7, 8] {
            address.tell(number).expect("it is open");
        }
        let mut lent = context_of(&mut actor, &place);
        let holding = spawn(move || lent.try_recv());
        let received = drive(&mut actor).expect("it ends by itself");
        assert_eq!(received, Some(8), "the batch comes back");
        assert_eq!(holding.join().unwrap(), Some(7));
    });
}

/// Checks that the letters of a context are lost once if another thread drops it while its lender
/// is dropped.
#[test]
fn model_57_letters_of_a_context_without_a_lender_are_lost_once() {
    ::loom::model(|| {
        let place = Place::default();
        let (own, lost) = (place.clone(), Arc::new(AtomicUsize::new(0)));
        let counts = lost.clone();
        let (address, mut actor) = crate::actor(move |cx| lends(cx, own))
            .on_undelivered(move |number| {
                assert_eq!(number, 7);
                // Relaxed: each end is joined before the count is read.
                counts.fetch_add(1, Ordering::Relaxed);
            })
            .split();
        address.tell(7).expect("it is open");
        let lent = context_of(&mut actor, &place);
        let holding = spawn(move || drop(lent));
        drop(actor);
        holding.join().unwrap();
        let lost = lost.load(Ordering::Relaxed);
        assert_eq!(lost, 1, "each letter is delivered once");
    });
}
