//! Panics in everything of an actor's that a restart calls or drops: nothing else is harmed.

mod callbacks;
mod wakers;

use std::future::{Future, ready};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll};

use greenroom::supervise::Restarts;
use greenroom::{Context, Fault, Reply, actor};

use super::{HOUR, ever, text_of};
use crate::support::{Bomb, Drops, Gate, Home, Log, drive, in_every_home, keep_bombs_quiet};

in_every_home!(
    a_clone_that_panics_is_a_fault,
    clones_that_always_panic_use_up_the_intensity,
    a_panic_in_the_drop_of_each_clone_is_contained,
    a_panic_in_the_drop_of_a_future_that_failed_is_contained,
    a_panic_in_the_drop_of_a_future_that_returned_is_contained,
    a_panic_in_the_drop_of_a_killed_incarnation_is_contained,
    a_panic_in_the_drop_of_a_result_is_contained,
    a_panic_in_the_drop_of_a_payload_is_contained,
    panics_of_a_lent_incarnation_are_contained,
);

/// Asserts that new actors of this home still work.
fn still_serves(home: &Home) {
    let echo = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
        cx.recv().await.unwrap().send(1);
    }));
    assert_eq!(drive(echo.ask(|reply| reply)), Ok(1));
    home.block_on(echo.join()).unwrap();
}

trait Look {
    /// Makes a closure own the whole bomb.
    fn look(&self) {}
}

impl Look for Bomb {}

/// A value whose clones are counted, and panic if they are to.
struct Clones<F>(Arc<AtomicUsize>, F);

impl<F: Fn(usize) -> bool + Clone> Clones<F> {
    fn new(panics: F) -> Self {
        Clones(Arc::default(), panics)
    }
}

impl<F: Fn(usize) -> bool + Clone> Clone for Clones<F> {
    fn clone(&self) -> Self {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        if (self.1)(number) {
            panic!("bomb in clone {number}");
        }
        Clones(self.0.clone(), self.1.clone())
    }
}

fn a_clone_that_panics_is_a_fault(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for failing in [[0, 1], [1, 2], [0, 2]] {
            let log = Log::default();
            let own = log.clone();
            let clones = Clones::new(move |number| failing.contains(&number));
            let clones = actor(move |mut cx: Context<u32>| async move {
                let _clones = clones;
                while let Some(number) = cx.recv().await {
                    own.add(number);
                    if number == 1 {
                        panic!("bomb");
                    }
                }
                cx.incarnation_number()
            });
            let held = home.hold();
            let clones = home.spawn(clones.restart(ever()));
            clones.tell(1).unwrap();
            clones.tell(2).unwrap();
            drop(held);
            // Two clones and one incarnation have panicked.
            assert_eq!(clones.join().await.unwrap(), 3);
            assert_eq!(log.take(), [1, 2]);
        }
    });
    still_serves(home);
}

fn clones_that_always_panic_use_up_the_intensity(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let clones = Clones::new(|_| true);
        let never_begins = actor(move |_cx: Context<u32>| {
            let _clones = clones;
            ready(())
        });
        let undelivered = Log::default();
        let log = undelivered.clone();
        let never_begins = never_begins.on_undelivered(move |number| log.add(number));
        let held = home.hold();
        let rules = Restarts::on_fault().intensity(3, HOUR);
        let never_begins = home.spawn(never_begins.restart(rules));
        never_begins.tell(1).unwrap();
        drop(held);
        assert_eq!(text_of(never_begins.join().await), "bomb in clone 3");
        assert_eq!(undelivered.take(), [1]);
    });
    still_serves(home);
}

/// A value that panics in each of its drops, and counts them.
struct Fragile(Drops);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        Fragile(self.0.clone())
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        drop(self.0.one());
        panic!("bomb in a drop");
    }
}

/// A future that owns a value while it is polled, and then ends or panics.
struct Owns<B, T> {
    _owned: B,
    ends: Option<Result<T, &'static str>>,
}

impl<B, T> Owns<B, T> {
    fn until(owned: B, ends: Result<T, &'static str>) -> Self {
        Owns {
            _owned: owned,
            ends: Some(ends),
        }
    }
}

impl<B, T> Unpin for Owns<B, T> {}

impl<B, T> Future for Owns<B, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<T> {
        match self.ends.take() {
            Some(Ok(value)) => Poll::Ready(value),
            Some(Err(text)) => panic!("{text}"),
            None => Poll::Pending,
        }
    }
}

fn a_panic_in_the_drop_of_each_clone_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let fragile = Fragile(drops.clone());
        let panics = actor(move |_cx: Context<()>| Owns::<_, ()>::until(fragile, Err("bomb")));
        let panics = home.spawn(panics.restart(Restarts::on_fault().intensity(3, HOUR)));
        panics.closed().await;
        assert_eq!(text_of(panics.join().await), "bomb");
        // What was spawned, and four clones.
        assert_eq!(drops.count(), 5);
    });
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_future_that_failed_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let own = drops.clone();
        let panics = actor(move |cx: Context<()>| {
            let bomb = Bomb::new(true, &own);
            match cx.incarnation_number() {
                5 => Owns::until((Bomb::new(false, &own), bomb, cx), Ok(7)),
                // The context is dropped before the bomb, or after it.
                number if number % 2 == 0 => {
                    let live = Bomb::new(false, &own);
                    Owns::until((live, bomb, cx), Err("bomb"))
                }
                _ => Owns::until((bomb, Bomb::new(false, &own), cx), Err("bomb")),
            }
        });
        let panics = home.spawn(panics.restart(ever()));
        assert_eq!(panics.join().await.unwrap(), 7);
        assert_eq!(drops.count(), 12);
    });
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_future_that_returned_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let own = drops.clone();
        let returns = actor(move |cx: Context<()>| {
            let number = cx.incarnation_number();
            Owns::until((Bomb::new(true, &own), cx), Ok(number))
        });
        let rules = Restarts::always().intensity(3, HOUR);
        let returns = home.spawn(returns.restart(rules));
        returns.closed().await;
        assert_eq!(returns.join().await.unwrap(), 3);
        assert_eq!(drops.count(), 4);
    });
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_killed_incarnation_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (drops, begun) = (Drops::default(), Gate::default());
        let (own, tells) = (drops.clone(), begun.clone());
        let waits = actor(move |cx: Context<()>| async move {
            let _both = (Bomb::new(true, &own), cx);
            tells.open();
            std::future::pending::<()>().await;
        });
        let waits = home.spawn(waits.restart(ever()));
        begun.wait().await;
        waits.kill();
        assert!(matches!(waits.join().await, Err(Fault::Killed)));
        assert_eq!(drops.count(), 1);
    });
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_result_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let own = drops.clone();
        let returns = actor(move |_cx: Context<()>| async move { Bomb::new(true, &own) });
        let rules = Restarts::always().intensity(3, HOUR);
        let returns = home.spawn(returns.restart(rules));
        returns.closed().await;
        assert_eq!(drops.count(), 3);
        drop(returns);
        assert_eq!(drops.count(), 4);
    });
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_payload_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let own = drops.clone();
        let panics = actor(move |_cx: Context<()>| async move {
            resume_unwind(Box::new(Bomb::new(true, &own)));
        });
        let rules = Restarts::<()>::on_fault().intensity(3, HOUR);
        let panics = home.spawn(panics.restart(rules));
        panics.closed().await;
        assert_eq!(drops.count(), 3);
        drop(panics);
        assert_eq!(drops.count(), 4);
    });
    still_serves(home);
}

fn panics_of_a_lent_incarnation_are_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let own = drops.clone();
        let lends = home.spawn(actor(move |mut cx: Context<u32>| async move {
            let bomb = |live| Bomb::new(live, &own);
            let failed = |cx| Owns::<_, ()>::until((bomb(true), cx), Err("bomb"));
            assert_eq!(text_of(cx.incarnation(failed).await), "bomb");
            let failed = |cx| Owns::<_, ()>::until((cx, bomb(true)), Err("bomb"));
            assert_eq!(text_of(cx.incarnation(failed).await), "bomb");
            let returns = |cx| Owns::until((cx, bomb(true)), Ok(7));
            assert_eq!(cx.incarnation(returns).await.unwrap(), 7);
            let payload = bomb(true);
            let failed = |_cx| async move { resume_unwind(Box::new(payload)) };
            let failed: Result<(), _> = cx.incarnation(failed).await;
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(failed))).unwrap();
            cx.recv().await
        }));
        lends.tell(1).unwrap();
        assert_eq!(lends.join().await.unwrap(), Some(1));
        assert_eq!(drops.count(), 4);
    });
    still_serves(home);
}
