//! Model 30: the last address is dropped while an actor that begins gives itself a source.

use std::future::Future;
use std::pin::Pin;
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
