//! Incarnations within incarnations, with contexts elsewhere, that end in any order.

use std::future::Future;
use std::pin::Pin;

use greenroom::supervise::Restarts;
use greenroom::{Context, Fault, actor};

use super::{HOUR, Order, ever, obedient, obey, text_of};
use crate::support::{
    Drops, Gate, Home, Log, elsewhere, in_every_home, keep_bombs_quiet, on_threads, poll_here,
};

in_every_home!(
    a_restartable_actor_may_lend_its_context,
    a_panic_reaches_only_the_lender_of_its_incarnation,
    contexts_elsewhere_come_back_or_are_revoked_in_any_order,
    a_kill_ends_everything_in_any_order,
    a_context_that_was_lent_by_a_lost_holder_goes_to_the_lender_above,
    a_lost_context_may_be_lent_again,
);

// A race of two threads.
on_threads!(a_revoke_and_a_return_may_come_at_once);

/// Lends its context until that returns. A text of a panic with `outer` in it is its own panic.
async fn persists(mut cx: Context<Order>, log: Log<u32>) -> u64 {
    loop {
        let own = log.clone();
        let result = cx.incarnation(|cx| obey(cx, own)).await;
        if result.is_ok() {
            return cx.incarnation_number();
        }
        let text = text_of(result);
        log.add(text.len() as u32 * 100);
        if text.contains("outer") {
            panic!("bomb: {text}");
        }
    }
}

fn a_restartable_actor_may_lend_its_context(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let log = Log::default();
            let own = log.clone();
            let mut lends = actor(move |cx| persists(cx, own));
            if let Some(capacity) = capacity {
                lends = lends.capacity(capacity);
            }
            let rules = Restarts::on_fault().intensity(2, HOUR);
            let held = home.hold();
            let lends = home.spawn(lends.restart(rules));
            let orders = [
                Order::Log(1),
                Order::Panic("bomb"),
                Order::Log(2),
                Order::Panic("bomb outer"),
                Order::Panic("bomb"),
                Order::Log(3),
                Order::Panic("bomb outer"),
                Order::Log(4),
            ];
            for order in orders {
                lends.tell(order).unwrap();
            }
            drop(held);
            // Four incarnations have panicked, two outer ones with them. The last one returned.
            assert_eq!(lends.join().await.unwrap(), 7);
            assert_eq!(log.take(), [1, 400, 2, 1000, 400, 3, 1000, 4]);
        }
    });
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Nests as many incarnations, each of which panics with its depth if it receives that number.
/// Returns the numbers that were received.
fn nest(mut cx: Context<usize>, depth: usize, most: usize, log: Log<usize>) -> Boxed<()> {
    Box::pin(async move {
        if depth < most {
            for _ in 0..2 {
                let own = log.clone();
                let inner = cx.incarnation(|cx| nest(cx, depth + 1, most, own)).await;
                if let Err(fault) = inner {
                    assert_eq!(fault.to_string(), format!("panicked: bomb {}", depth + 1));
                    log.add(1000 + depth);
                }
            }
        }
        let number = cx.recv().await;
        log.add(number.unwrap());
        panic!("bomb {depth}");
    })
}

fn a_panic_reaches_only_the_lender_of_its_incarnation(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let nests = actor(move |cx| nest(cx, 0, 3, own));
        let nests = home.spawn(nests.restart(Restarts::on_fault().intensity(1, HOUR)));
        // Each incarnation takes one, two of each depth before that of the depth above.
        for number in 0..30 {
            nests.tell(number).unwrap();
        }
        nests.closed().await;
        assert_eq!(text_of(nests.join().await), "bomb 0");
        let log = log.take();
        let numbers = log.iter().copied().filter(|entry| *entry < 1000);
        assert!(numbers.eq(0..30), "{log:?}");
        for depth in 0..3 {
            let caught = log.iter().filter(|entry| **entry == 1000 + depth).count();
            assert_eq!(caught, (2 * 2) << depth, "at depth {depth}");
        }
    });
}

/// A call that lends the context to `below`, and drops it when it comes back.
fn call(mut cx: Context<u32>, below: &Log<Context<u32>>) -> Boxed<()> {
    let below = below.clone();
    Box::pin(async move {
        let moves = |cx| async move { below.add(cx) };
        cx.incarnation(moves).await.unwrap();
    })
}

/// What is done to contexts and calls that are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    /// Drops the call of this level.
    Revoke(usize),
    /// Receives one message with the innermost context, and drops it.
    Return,
    Kill,
}

const LEVELS: usize = 3;

/// Returns every order of the deeds.
fn orders(deeds: &[Deed]) -> Vec<Vec<Deed>> {
    if deeds.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, deed) in deeds.iter().enumerate() {
        let mut rest = deeds.to_vec();
        rest.remove(index);
        for mut order in orders(&rest) {
            order.insert(0, *deed);
            all.push(order);
        }
    }
    all
}

/// An actor whose first context is elsewhere, lent from call to call.
struct Chain {
    actor: greenroom::Handle<u32, ()>,
    calls: [Option<Boxed<()>>; LEVELS],
    innermost: Option<Context<u32>>,
    /// What was received in any way, and what was undelivered, plus 100.
    log: Log<u32>,
    drops: Drops,
}

impl Chain {
    async fn new(home: &Home) -> Chain {
        let (log, escaped, drops) = (Log::default(), Log::default(), Drops::default());
        let (own, escapes, undelivered) = (log.clone(), escaped.clone(), log.clone());
        let state = std::sync::Arc::new(drops.one());
        let escapes = actor(move |mut cx: Context<u32>| async move {
            let _state = state;
            if cx.incarnation_number() == 0 {
                return escapes.add(cx);
            }
            while let Some(number) = cx.recv().await {
                own.add(number);
            }
        });
        let escapes = escapes.on_undelivered(move |number| undelivered.add(100 + number));
        let actor = home.spawn(escapes.restart(Restarts::always().intensity(9, HOUR)));
        for number in 1..=4 {
            actor.tell(number).unwrap();
        }
        let mut calls = [const { None }; LEVELS];
        let mut innermost = loop {
            match escaped.take().pop() {
                Some(cx) => break cx,
                None => greenroom::yield_now().await,
            }
        };
        // The first turn is over when each thread was free: no kill comes in it.
        drop(home.hold());
        // The reader takes a batch, of which something is left.
        assert_eq!(innermost.recv().await, Some(1));
        log.add(1);
        let below = Log::default();
        for place in &mut calls {
            let mut call = call(innermost, &below);
            assert!(poll_here(&mut call).await.is_pending());
            *place = Some(call);
            innermost = below.take().pop().unwrap();
        }
        Chain {
            actor,
            calls,
            innermost: Some(innermost),
            log,
            drops,
        }
    }

    async fn run(&mut self, deed: Deed) {
        match deed {
            Deed::Revoke(level) => drop(self.calls[level].take()),
            Deed::Kill => self.actor.kill(),
            Deed::Return => {
                let mut innermost = self.innermost.take().unwrap();
                self.log.add(innermost.recv().await.unwrap_or(0));
            }
        }
        // From the inside out, so that a context that comes back is passed on.
        for call in self.calls.iter_mut().rev() {
            if let Some(running) = call
                && poll_here(running).await.is_ready()
            {
                *call = None;
            }
        }
    }
}

fn contexts_elsewhere_come_back_or_are_revoked_in_any_order(home: &Home) {
    home.block_on(async {
        let deeds = [
            Deed::Revoke(0),
            Deed::Revoke(1),
            Deed::Revoke(2),
            Deed::Return,
        ];
        for order in orders(&deeds) {
            let mut chain = Chain::new(home).await;
            let mut closed = false;
            for deed in &order {
                closed |= *deed != Deed::Return && chain.innermost.is_some();
                chain.run(*deed).await;
                assert_eq!(chain.actor.is_closed(), closed, "{order:?}");
            }
            assert_eq!(chain.actor.tell(5).is_ok(), !closed);
            chain.actor.join().await.unwrap();
            // The innermost context got 2, and the next incarnation the rest.
            let rest: &[u32] = if closed {
                &[1, 2, 3, 4]
            } else {
                &[1, 2, 3, 4, 5]
            };
            assert_eq!(chain.log.take(), rest, "{order:?}");
            assert_eq!(chain.drops.count(), 1);
        }
    });
}

fn a_kill_ends_everything_in_any_order(home: &Home) {
    home.block_on(async {
        let deeds = [
            Deed::Revoke(0),
            Deed::Revoke(1),
            Deed::Revoke(2),
            Deed::Return,
            Deed::Kill,
        ];
        for order in orders(&deeds) {
            let mut chain = Chain::new(home).await;
            let mut killed = false;
            for deed in &order {
                killed |= *deed == Deed::Kill;
                chain.run(*deed).await;
            }
            let result = chain.actor.join().await;
            let log = chain.log.take();
            if order.iter().position(|deed| *deed == Deed::Return) == Some(LEVELS + 1) {
                assert!(matches!(result, Err(Fault::Killed)), "{order:?}");
                // The innermost context received nothing any more.
                assert_eq!(log, [1, 0, 102, 103, 104], "{order:?}");
            } else {
                // Whatever was not received is undelivered, once and in order.
                let seen = log.iter().filter(|entry| **entry > 0);
                assert!(
                    seen.map(|entry| entry % 100).eq(1..=4),
                    "{order:?}: {log:?}"
                );
            }
            assert!(killed);
            assert_eq!(chain.drops.count(), 1);
        }
    });
}

fn a_context_that_was_lent_by_a_lost_holder_goes_to_the_lender_above(home: &Home) {
    home.block_on(async {
        let mut chain = Chain::new(home).await;
        // The call in the middle is dropped, so its context is not used any more.
        chain.run(Deed::Revoke(1)).await;
        assert!(chain.actor.is_closed());
        // The innermost context goes to the last call, which drops it for the first one.
        assert!(chain.calls[0].is_some() && chain.calls[2].is_some());
        chain.run(Deed::Return).await;
        assert!(chain.calls.iter().all(Option::is_none));
        chain.actor.join().await.unwrap();
        assert_eq!(chain.log.take(), [1, 2, 3, 4]);
    });
}

fn a_lost_context_may_be_lent_again(home: &Home) {
    home.block_on(async {
        for revoked in 0..LEVELS {
            let mut chain = Chain::new(home).await;
            for level in 0..=revoked {
                chain.run(Deed::Revoke(level)).await;
            }
            // Its holder lends it again, although lenders above are lost.
            let below = Log::default();
            let mut again = call(chain.innermost.take().unwrap(), &below);
            assert!(poll_here(&mut again).await.is_pending());
            let mut innermost = below.take().pop().unwrap();
            assert_eq!(innermost.recv().await, Some(2));
            drop(innermost);
            assert!(poll_here(&mut again).await.is_ready());
            for level in (revoked + 1..LEVELS).rev() {
                let call = chain.calls[level].as_mut().unwrap();
                assert!(poll_here(call).await.is_ready());
            }
            chain.actor.join().await.unwrap();
            assert_eq!(chain.log.take(), [1, 3, 4]);
        }
    });
}

fn a_revoke_and_a_return_may_come_at_once(home: &Home) {
    home.block_on(async {
        for round in 0..home.many(200) {
            let mut chain = Chain::new(home).await;
            let innermost = chain.innermost.take().unwrap();
            let gate = Gate::default();
            let passes = gate.clone();
            let returns = elsewhere(move || {
                passes.pass();
                drop(innermost);
            });
            gate.open();
            let first = chain.calls[round % LEVELS].take();
            drop(first);
            returns.join();
            for call in chain.calls.iter_mut().rev().flatten() {
                assert!(poll_here(call).await.is_ready());
            }
            chain.actor.join().await.unwrap();
            assert_eq!(chain.log.take(), [1, 2, 3, 4]);
        }
    });
}

#[test]
fn many_levels_need_no_more_than_memory() {
    keep_bombs_quiet();
    crate::support::on_workers(1, async {
        const DEEP: usize = 200;
        fn dive(mut cx: Context<()>, left: usize) -> Boxed<usize> {
            Box::pin(async move {
                if left == 0 {
                    panic!("bomb in the deep");
                }
                match cx.incarnation(|cx| dive(cx, left - 1)).await {
                    Ok(depth) => depth + 1,
                    Err(_) => 1,
                }
            })
        }
        let dives = greenroom::spawn!(|cx: Context<()>| dive(cx, DEEP));
        assert_eq!(dives.join().await.unwrap(), DEEP);
        let (obeys, _) = obedient();
        let obeys = obeys.restart(ever()).spawn();
        obeys.tell(Order::Panic("bomb")).unwrap();
        assert_eq!(obeys.join().await.unwrap(), 1);
    });
}
