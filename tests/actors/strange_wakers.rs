//! Wakers of other executors that panic, or that drop the future that they wake.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as Cx, Poll, Wake, Waker};

use greenroom::{Address, Context, Runtime, actor};

use crate::support::{WATCH, drive, within};

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("bomb in a waker");
    }
}

type Waiting = Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>;

/// A waker that drops its future when it is woken, as an executor may when its receiver was
/// dropped.
struct Drops(Arc<Waiting>);

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

fn idle_actor(runtime: &Runtime) -> Address<()> {
    let idle = |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} };
    actor(idle).on(runtime).spawn().address()
}

fn runtime() -> Runtime {
    Runtime::builder().workers(1).build().unwrap()
}

#[test]
fn the_end_of_an_actor_wakes_all_waiters_despite_a_waker_that_panics() {
    crate::support::keep_bombs_quiet();
    within(WATCH, || {
        let runtime = runtime();
        let address = idle_actor(&runtime);
        let mut first = Box::pin(address.closed());
        let waker = Waker::from(Arc::new(Panics));
        assert_eq!(
            first.as_mut().poll(&mut Cx::from_waker(&waker)),
            Poll::Pending
        );
        let own = address.clone();
        let second = std::thread::spawn(move || drive(own.closed()));
        address.kill();
        second.join().unwrap();
        drop(first);
    });
}

#[test]
fn the_end_of_a_runtime_wakes_all_waiters_despite_a_waker_that_panics() {
    crate::support::keep_bombs_quiet();
    within(WATCH, || {
        let runtime = runtime();
        let mut first = Box::pin(runtime.shutdown());
        let waker = Waker::from(Arc::new(Panics));
        assert!(
            first
                .as_mut()
                .poll(&mut Cx::from_waker(&waker))
                .is_pending()
        );
        assert_eq!(drive(runtime.shutdown()).left_behind, 0);
        drop(first);
    });
}

#[test]
fn a_waker_that_drops_its_future_does_not_block_a_worker() {
    within(WATCH, || {
        let runtime = runtime();
        let address = idle_actor(&runtime);
        let own = address.clone();
        let waiting: Arc<Waiting> = Arc::default();
        let waker = Waker::from(Arc::new(Drops(waiting.clone())));
        let mut closed: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(async move { own.closed().await });
        assert!(
            closed
                .as_mut()
                .poll(&mut Cx::from_waker(&waker))
                .is_pending()
        );
        *waiting.lock().unwrap() = Some(closed);
        address.kill();
        // The only worker is not blocked.
        assert_eq!(drive(runtime.spawn(async { 1 })), 1);
        drive(address.closed());
        assert!(waiting.lock().unwrap().is_none());
    });
}
