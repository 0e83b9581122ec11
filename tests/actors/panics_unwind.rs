//! A future that panics is dropped while its panic unwinds, so its values can observe the panic: a
//! mutex that the future has locked is poisoned.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context as TaskContext, Poll};

use futures::{FutureExt, Stream, StreamExt};
use greenroom::{Context, Fault, Runtime, actor};

use crate::support::{
    Bomb, Drops, Home, Log, WATCH, drive, in_every_home, keep_bombs_quiet, panic_of, within,
};

in_every_home!(
    the_futures_of_tasks_are_dropped_while_they_unwind,
    the_futures_of_actors_are_dropped_while_they_unwind,
    the_sources_of_an_actor_are_dropped_while_they_unwind,
    the_future_of_block_on_is_dropped_while_it_unwinds,
);

/// A future that panics when it is polled, and records in its drop whether the thread unwinds.
struct Panics {
    unwinds: Log<bool>,
    /// How often the future is pending before it panics.
    waits: u32,
    _bomb: Bomb,
}

impl Panics {
    /// Creates the future with a bomb that panics in its drop if `live` is set.
    fn new(unwinds: &Log<bool>, live: bool) -> Self {
        Panics {
            unwinds: unwinds.clone(),
            waits: 1,
            _bomb: Bomb::new(live, &Drops::default()),
        }
    }

    fn explode(mut self: Pin<&mut Self>, cx: &TaskContext<'_>) -> Poll<Option<u32>> {
        if self.waits == 0 {
            panic!("bomb in a poll");
        }
        self.waits -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Future for Panics {
    type Output = Option<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<u32>> {
        self.explode(cx)
    }
}

impl Stream for Panics {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<u32>> {
        self.explode(cx)
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        self.unwinds.add(std::thread::panicking());
    }
}

fn the_futures_of_tasks_are_dropped_while_they_unwind(home: &Home) {
    let unwinds = Log::default();
    for live in [false, true] {
        let task = home.spawn_task(Panics::new(&unwinds, live));
        let panic = home.block_on(task.catch_unwind()).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"bomb in a poll"));
        assert_eq!(unwinds.take(), [true]);
    }
    assert_eq!(home.block_on(home.spawn_task(async { 42 })), 42);
}

fn the_futures_of_actors_are_dropped_while_they_unwind(home: &Home) {
    let unwinds = Log::default();
    for live in [false, true] {
        let panics = Panics::new(&unwinds, live);
        let handle = home.spawn(actor(move |_cx: Context<u32>| panics));
        let Err(Fault::Panicked(panic)) = home.block_on(handle.join()) else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), Some("bomb in a poll"));
        assert_eq!(unwinds.take(), [true]);
    }
}

fn the_sources_of_an_actor_are_dropped_while_they_unwind(home: &Home) {
    let unwinds = Log::default();
    for live in [false, true] {
        let (stream, future) = (Panics::new(&unwinds, live), Panics::new(&unwinds, live));
        let handle = home.spawn(actor(async move |mut cx: Context<Result<_, Fault>>| {
            cx.attach(StreamExt::map(stream, |n| Ok(Some(n)))).detach();
            cx.on_return(future, |result| result);
            let result = cx.recv().await.expect("the result of the future");
            assert!(cx.recv().await.is_none(), "the stream has ended");
            result
        }));
        let result = home.block_on(handle.join()).unwrap();
        assert!(matches!(result, Err(Fault::Panicked(_))));
        assert_eq!(unwinds.take(), [true, true]);
    }
}

fn the_future_of_block_on_is_dropped_while_it_unwinds(home: &Home) {
    let unwinds = Log::default();
    let panics = Panics::new(&unwinds, false);
    let (text, ..) = panic_of(|| home.block_on(panics));
    assert_eq!(text, "bomb in a poll");
    assert_eq!(unwinds.take(), [true]);
}

#[test]
fn a_mutex_locked_by_a_future_that_panics_is_poisoned() {
    static MUTEX: Mutex<()> = Mutex::new(());
    within(WATCH, || {
        keep_bombs_quiet();
        let runtime = Runtime::builder().on_fault(|_| {}).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let panics = || {
            let held = MUTEX.lock().unwrap();
            std::future::poll_fn(move |_| -> Poll<()> {
                let _ = &held;
                panic!("bomb in a poll")
            })
        };
        assert!(
            drive(
                actor(move |_: Context<()>| panics())
                    .on(&pinned)
                    .spawn()
                    .join()
            )
            .is_err()
        );
        assert!(MUTEX.is_poisoned());
        MUTEX.clear_poison();
        assert!(drive(pinned.spawn(panics).catch_unwind()).is_err());
        assert!(MUTEX.is_poisoned());
    });
}
