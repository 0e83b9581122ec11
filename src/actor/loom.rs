//! Models of a whole actor: 30, the last address is dropped while it begins and gives itself a source; 39, it
//! ends while somebody begins to wait for that.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::loom::thread::spawn;
use futures_util::stream;

use crate::park::Parker;

/// Wakes the thread that polls.
struct Bell(Parker);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
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
            cx.attach(stream::iter([7, 8]));
            [cx.recv().await, cx.recv().await, cx.recv().await]
        })
        .split();
        let polling = spawn(move || {
            let bell = Arc::new(Bell(Parker::new()));
            let waker = Waker::from(bell.clone());
            loop {
                match Pin::new(&mut actor).poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(received) => return received.expect("it ends by itself"),
                    Poll::Pending => drop(bell.0.park(None)),
                }
            }
        });
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
        let waiting = spawn(move || {
            let bell = Arc::new(Bell(Parker::new()));
            let waker = Waker::from(bell.clone());
            let mut closed = pin!(address.closed());
            while closed
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
            {
                bell.0.park(None);
            }
        });
        match Pin::new(&mut actor).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => assert_eq!(ended.expect("it ends by itself"), 7),
            Poll::Pending => panic!("it waits for nothing"),
        }
        waiting.join().unwrap();
    });
}
