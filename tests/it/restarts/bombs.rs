//! Panics in everything of an actor's that a restart calls or drops: nothing else is harmed.

use std::future::{Future, ready};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use futures::stream::{self, StreamExt};
use greenroom::policy::TaskInfo;
use greenroom::supervise::Restarts;
use greenroom::{Context, Fault, Observer, Reply, Runtime, actor, spawn};

use super::{HOUR, ever, never, text_of};
use crate::support::{
    Bomb, Drops, Gate, Home, Log, WATCH, drive, in_every_home, keep_bombs_quiet, on_threads,
    poll_here, within,
};

in_every_home!(
    a_clone_that_panics_is_a_fault,
    clones_that_always_panic_use_up_the_intensity,
    a_panic_in_the_drop_of_each_clone_is_contained,
    a_panic_in_the_drop_of_a_future_that_failed_is_contained,
    a_panic_in_the_drop_of_a_future_that_returned_is_contained,
    a_panic_in_the_drop_of_a_killed_incarnation_is_contained,
    a_panic_in_the_drop_of_a_result_is_contained,
    a_panic_in_the_drop_of_a_payload_is_contained,
    a_panic_of_a_rule_ends_the_actor,
    a_panic_in_the_drop_of_a_rule_is_contained,
    panics_of_on_undelivered_are_contained,
    panics_in_the_drops_of_messages_are_contained,
    panics_in_the_drops_of_sources_are_contained,
    drops_may_use_the_actor,
    a_drop_may_kill_the_actor,
    panics_of_a_lent_incarnation_are_contained,
);

// Wakers of other threads, and an observer.
on_threads!(
    a_waker_of_the_lender_that_panics_is_contained,
    a_waker_of_the_lender_whose_drop_panics_is_contained,
    a_waker_of_the_holder_whose_drop_panics_is_contained,
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

fn a_panic_of_a_rule_ends_the_actor(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for panics in [false, true] {
            let drops = Drops::default();
            let own = drops.clone();
            let ends = actor(move |cx: Context<u32>| async move {
                let _cx = cx;
                if panics {
                    resume_unwind(Box::new(Bomb::new(true, &own)));
                }
                Bomb::new(true, &own)
            });
            let undelivered = Log::default();
            let log = undelivered.clone();
            let ends = ends.on_undelivered(move |number| log.add(number));
            let rule = |_: &Result<Bomb, Fault>| panic!("bomb of a rule");
            let held = home.hold();
            let ends = home.spawn(ends.restart(Restarts::when(rule)));
            ends.tell(1).unwrap();
            drop(held);
            match ends.join().await {
                Err(fault) => assert_eq!(fault.to_string(), "panicked: bomb of a rule"),
                Ok(_) => panic!("the rule has panicked"),
            }
            assert_eq!((drops.count(), undelivered.take()), (1, vec![1]));
        }
    });
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_rule_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for ending in ["return", "panic", "kill"] {
            let drops = Drops::default();
            let bomb = Bomb::new(true, &drops);
            let rule = move |_: &Result<(), Fault>| {
                bomb.look();
                ending == "kill"
            };
            let ends = actor(move |mut cx: Context<()>| async move {
                if ending == "panic" {
                    panic!("bomb");
                }
                cx.recv().await;
            });
            let ends = home.spawn(ends.restart(Restarts::when(rule).after(never())));
            match ending {
                "kill" => ends.kill(),
                _ => drop(ends.tell(())),
            }
            let weak = ends.downgrade();
            ends.closed().await;
            drop(ends);
            weak.closed().await;
            assert_eq!(drops.count(), 1, "{ending}");
        }
    });
    still_serves(home);
}

fn panics_of_on_undelivered_are_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let seen = Log::default();
        let log = seen.clone();
        let panics = actor(|mut cx: Context<u32>| async move {
            cx.recv().await;
            panic!("bomb");
        });
        let panics = panics.on_undelivered(move |number| {
            log.add(number);
            panic!("bomb for {number}");
        });
        let held = home.hold();
        let rules = Restarts::<()>::on_fault().intensity(1, HOUR);
        let panics = home.spawn(panics.restart(rules));
        for number in 1..=5 {
            panics.tell(number).unwrap();
        }
        drop(held);
        assert_eq!(text_of(panics.join().await), "bomb");
        assert_eq!(seen.take(), [3, 4, 5]);
    });
    still_serves(home);
}

fn panics_in_the_drops_of_messages_are_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let panics = actor(|mut cx: Context<Bomb>| {
            let message = cx.try_recv();
            // The message in hand is dropped while the panic unwinds.
            Owns::<_, ()>::until((message, cx), Err("bomb"))
        });
        let held = home.hold();
        let rules = Restarts::on_fault().intensity(2, HOUR);
        let panics = home.spawn(panics.restart(rules));
        for _ in 0..6 {
            panics.tell(Bomb::new(true, &drops)).unwrap();
        }
        drop(held);
        let weak = panics.downgrade();
        weak.closed().await;
        assert_eq!(text_of(panics.join().await), "bomb");
        assert_eq!(drops.count(), 6);
    });
    still_serves(home);
}

fn panics_in_the_drops_of_sources_are_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let own = drops.clone();
        let attaches = actor(move |mut cx: Context<u32>| async move {
            let bomb = Bomb::new(true, &own);
            let stream = stream::pending().inspect(move |_: &u32| bomb.look());
            cx.attach(stream).detach();
            let bomb = Bomb::new(true, &own);
            let child = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
            cx.adopt(child, move |_| {
                bomb.look();
                1
            });
            let bomb = Bomb::new(true, &own);
            cx.on_return(greenroom::spawn(std::future::pending::<()>()), move |_| {
                bomb.look();
                1
            });
            let number = cx.recv().await;
            assert!(number.is_some(), "it is open");
            match number {
                Some(3) => return,
                _ => resume_unwind(Box::new("bomb")),
            }
        });
        let attaches = home.spawn(attaches.restart(ever()));
        for number in 1..=3 {
            attaches.tell(number).unwrap();
        }
        attaches.join().await.unwrap();
        assert_eq!(drops.count(), 9);
    });
    still_serves(home);
}

/// Calls a function when it is dropped.
struct Calls<F: FnMut()>(F);

impl<F: FnMut()> Drop for Calls<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn drops_may_use_the_actor(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let uses = actor(move |mut cx: Context<u32>| async move {
            let weak = cx.downgrade();
            let calls = Calls(move || {
                let Some(address) = weak.upgrade() else {
                    return;
                };
                drop(address.tell(100));
                let child = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
                drop(child);
            });
            let _calls = calls;
            while let Some(number) = cx.recv().await {
                own.add(number);
                if number < 3 {
                    panic!("bomb");
                }
                if number == 100 && own.len() >= 5 {
                    return;
                }
            }
        });
        let held = home.hold();
        let uses = home.spawn(uses.restart(ever()));
        for number in 1..=3 {
            uses.tell(number).unwrap();
        }
        drop(held);
        uses.closed().await;
        uses.join().await.unwrap();
        let mut log = log.take();
        log.sort_unstable();
        assert_eq!(log, [1, 2, 3, 100, 100]);
    });
    still_serves(home);
}

fn a_drop_may_kill_the_actor(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for stops in [false, true] {
            let begun = Log::default();
            let log = begun.clone();
            let ends = actor(move |cx: Context<u32>| async move {
                log.add(());
                let address = cx.address();
                let _calls = Calls(move || match stops {
                    true => address.stop(),
                    false => address.kill(),
                });
                panic!("bomb");
            });
            let ends = home.spawn(ends.restart(Restarts::<()>::always()));
            ends.closed().await;
            assert!(ends.join().await.is_err());
            assert_eq!(begun.len(), 1);
        }
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

#[test]
fn a_panic_of_an_observer_is_contained() {
    struct Panics;
    impl Observer for Panics {
        fn restarted(&self, _actor: &TaskInfo, incarnation: u64, _fault: Option<&Fault>) {
            panic!("bomb of an observer, {incarnation}");
        }
    }
    keep_bombs_quiet();
    within(WATCH, || {
        let home = Home::built(1, Runtime::builder().observer(Panics));
        home.block_on(async {
            let panics = actor(|cx: Context<()>| async move {
                if cx.incarnation_number() < 3 {
                    panic!("bomb");
                }
            });
            home.spawn(panics.restart(ever())).join().await.unwrap();
        });
        still_serves(&home);
    });
}

/// A waker that panics when it is woken, or when the last of it is dropped.
struct Rigged {
    wakes: bool,
    woken: AtomicUsize,
}

impl Wake for Rigged {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        if self.wakes {
            panic!("bomb of a waker");
        }
    }
}

impl Drop for Rigged {
    fn drop(&mut self) {
        if !self.wakes {
            panic!("bomb in the drop of a waker");
        }
    }
}

fn rigged(wakes: bool) -> Waker {
    let woken = AtomicUsize::new(0);
    Waker::from(Arc::new(Rigged { wakes, woken }))
}

/// Polls with a waker, of which no other clone is kept.
fn poll_with<F: Future + Unpin>(future: &mut F, waker: Waker) -> Poll<F::Output> {
    let polled = Pin::new(future).poll(&mut TaskContext::from_waker(&waker));
    // The clone that was stored is not the last one.
    drop(waker);
    polled
}

/// Creates an actor that moves its context away for good, and returns both.
async fn without_context(home: &Home) -> (greenroom::Handle<u32, ()>, Context<u32>) {
    let contexts = Log::default();
    let escapes = contexts.clone();
    let gives = home.spawn(actor(move |cx: Context<u32>| async move {
        escapes.add(cx);
        std::future::pending().await
    }));
    loop {
        match contexts.take().pop() {
            Some(cx) => return (gives, cx),
            None => greenroom::yield_now().await,
        }
    }
}

/// A call of `incarnation` in a future, and the context that it has lent.
async fn lent(
    mut cx: Context<u32>,
) -> (
    Pin<Box<dyn Future<Output = Context<u32>> + Send>>,
    Context<u32>,
) {
    let below = Log::default();
    let moves = below.clone();
    let mut call: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(async move {
        let moves = |cx| async move { moves.add(cx) };
        cx.incarnation(moves).await.unwrap();
        cx
    });
    assert!(poll_here(&mut call).await.is_pending());
    let inner = below.take().pop().unwrap();
    (call, inner)
}

fn a_waker_of_the_lender_that_panics_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (gives, cx) = without_context(home).await;
        let (mut call, inner) = lent(cx).await;
        assert!(poll_with(&mut call, rigged(true)).is_pending());
        drop(inner);
        let Poll::Ready(mut cx) = poll_here(&mut call).await else {
            panic!("it has come back")
        };
        gives.tell(1).unwrap();
        assert_eq!(cx.recv().await, Some(1));
        gives.kill();
    });
    still_serves(home);
}

fn a_waker_of_the_lender_whose_drop_panics_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for again in [false, true] {
            let (gives, cx) = without_context(home).await;
            let (mut call, mut inner) = lent(cx).await;
            assert!(poll_with(&mut call, rigged(false)).is_pending());
            if again {
                assert!(poll_here(&mut call).await.is_pending());
            }
            drop(call);
            assert!(gives.is_closed());
            assert_eq!(inner.recv().await, None);
            gives.kill();
        }
    });
    still_serves(home);
}

fn a_waker_of_the_holder_whose_drop_panics_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for source in [false, true] {
            let (gives, cx) = without_context(home).await;
            let (mut call, mut inner) = lent(cx).await;
            if source {
                inner.attach(stream::pending()).detach();
            }
            let mut recv = inner.recv();
            assert!(poll_with(&mut recv, rigged(false)).is_pending());
            match source {
                // The source keeps its clone.
                true => drop(recv),
                false => std::mem::forget(recv),
            }
            drop(inner);
            let Poll::Ready(mut cx) = poll_here(&mut call).await else {
                panic!("it has come back")
            };
            gives.tell(1).unwrap();
            assert_eq!(cx.recv().await, Some(1));
            gives.kill();
        }
    });
    still_serves(home);
}
