//! What is dropped when a handler of a value has panicked: its future, and the payload of the panic.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll};

use greenroom::{Actor, Context, Fault};

use super::{Answers, Deed, Doer};
use crate::support::{Bomb, Drops, Home, Log, in_every_home, keep_bombs_quiet};

in_every_home!(
    a_payload_that_panics_when_dropped_is_contained,
    a_payload_reaches_the_join_of_a_value_that_ends,
    the_future_of_a_handler_is_dropped_while_it_unwinds,
    a_panic_in_the_drop_of_a_completed_handler_is_contained,
    a_mutex_that_a_handler_has_locked_is_poisoned,
);

fn a_payload_that_panics_when_dropped_is_contained(home: &Home) {
    home.block_on(async {
        let (drops, seen) = (Drops::default(), Log::default());
        let doer = home.spawn(Doer::that(Answers::GoOn, &seen).into_builder());
        doer.tell(Deed::Throw(Bomb::new(true, &drops))).unwrap();
        doer.tell(Deed::Do(1)).unwrap();
        assert_eq!(doer.ask(Deed::Tell).await.unwrap(), [1]);
        assert_eq!(drops.count(), 1);
        doer.join().await.unwrap();
        assert_eq!(seen.take(), [(0, "no text".to_owned())]);
    });
}

fn a_payload_reaches_the_join_of_a_value_that_ends(home: &Home) {
    home.block_on(async {
        let (drops, seen) = (Drops::default(), Log::default());
        let doer = home.spawn(Doer::that(Answers::End, &seen).into_builder());
        doer.tell(Deed::Throw(Bomb::new(false, &drops))).unwrap();
        let Err(Fault::Panicked(panic)) = doer.join().await else {
            panic!("it panicked")
        };
        assert_eq!(drops.count(), 0);
        assert!(panic.into_payload().is::<Bomb>());
        assert_eq!(drops.count(), 1);
    });
}

/// A future that panics at its second poll, and whose drop records whether the thread unwinds.
struct Exploding {
    log: Log<&'static str>,
    waited: bool,
    _bomb: Bomb,
}

impl Future for Exploding {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        assert!(!self.waited, "bomb in a poll");
        self.waited = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Exploding {
    fn drop(&mut self) {
        let unwinds = std::thread::panicking();
        self.log.add(if unwinds { "unwinds" } else { "does not" });
    }
}

/// Its handler is a future of its own.
struct Explodes(Log<&'static str>);

impl Actor for Explodes {
    type Message = bool;

    fn handle(&mut self, live: bool, _cx: &mut Context<bool>) -> impl Future<Output = ()> + Send {
        Exploding {
            log: self.0.clone(),
            waited: false,
            _bomb: Bomb::new(live, &Drops::default()),
        }
    }

    fn panicked(&mut self, fault: &Fault, _cx: &mut Context<bool>) -> bool {
        assert_eq!(fault.to_string(), "panicked: bomb in a poll");
        self.0.add("panicked");
        true
    }
}

fn the_future_of_a_handler_is_dropped_while_it_unwinds(home: &Home) {
    keep_bombs_quiet();
    let log = Log::default();
    for live in [false, true] {
        let explodes = home.spawn(Explodes(log.clone()).into_builder());
        explodes.tell(live).unwrap();
        home.block_on(explodes.join()).unwrap();
        assert_eq!(log.take(), ["unwinds", "panicked"]);
    }
}

fn a_panic_in_the_drop_of_a_completed_handler_is_contained(home: &Home) {
    /// A future that is ready at once.
    struct Brief {
        _bomb: Bomb,
    }
    impl Future for Brief {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<()> {
            Poll::Ready(())
        }
    }
    struct Brisk(Drops);
    impl Actor for Brisk {
        type Message = bool;

        fn handle(
            &mut self,
            live: bool,
            _cx: &mut Context<bool>,
        ) -> impl Future<Output = ()> + Send {
            let _bomb = Bomb::new(live, &self.0);
            Brief { _bomb }
        }

        fn panicked(&mut self, fault: &Fault, _cx: &mut Context<bool>) -> bool {
            unreachable!("the handler has completed: {fault}")
        }
    }
    keep_bombs_quiet();
    let drops = Drops::default();
    let value = home.spawn(Brisk(drops.clone()).into_builder());
    for live in [true, false, true] {
        value.tell(live).unwrap();
    }
    home.block_on(value.join()).unwrap();
    assert_eq!(drops.count(), 3);
}

fn a_mutex_that_a_handler_has_locked_is_poisoned(home: &Home) {
    struct Locks(Arc<Mutex<u32>>);
    impl Actor for Locks {
        type Message = ();

        async fn handle(&mut self, (): (), _cx: &mut Context<()>) {
            let mut number = self.0.lock().unwrap();
            *number += 1;
            panic!("bomb under a lock");
        }

        fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<()>) -> bool {
            assert!(self.0.is_poisoned());
            self.0.clear_poison();
            true
        }
    }
    keep_bombs_quiet();
    let number = Arc::default();
    let locks = home.spawn(Locks(Arc::clone(&number)).into_builder());
    locks.tell(()).unwrap();
    locks.tell(()).unwrap();
    home.block_on(locks.join()).unwrap();
    assert_eq!(*number.lock().unwrap(), 2);
}
