//! Turns: when an actor is polled, how many messages it handles in one turn, and which actor is
//! next.
//!
//! The tests count turns and messages and measure no time. Only the first eight batches are
//! complete however long their messages take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use greenroom::time::{Instant, sleep};
use greenroom::{ActorBuilder, Address, Context, Runtime, Task, actor};

use crate::support::{
    Gate, Home, Log, WATCH, burn, counted, in_every_home, open_when_pending, received, within,
};

/// The number of messages that an actor handles in one poll by default.
const BATCH: usize = 32;

/// Builds an actor whose polls are counted.
fn counting<M, F, Fut>(
    polls: &Arc<AtomicUsize>,
    make: F,
) -> ActorBuilder<M, impl Send + use<M, F, Fut>, CountedFuture<Fut::Output>>
where
    M: Send + 'static,
    F: FnOnce(Context<M>) -> Fut + Send + 'static,
    Fut: Future + Send + 'static,
{
    let polls = polls.clone();
    actor(move |cx| -> CountedFuture<Fut::Output> { Box::pin(counted(polls, make(cx))) })
}

type CountedFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

async fn count(mut cx: Context<u32>) -> u32 {
    let mut handled = 0;
    while cx.recv().await.is_some() {
        handled += 1;
    }
    handled
}

in_every_home!(
    many_tells_to_an_idle_actor_schedule_it_once,
    many_tells_to_an_actor_that_was_never_polled_schedule_it_once,
    a_tell_to_a_running_actor_is_handled_in_the_same_turn,
    an_actor_yields_after_each_batch,
    an_idle_actor_is_not_polled,
);

fn polls(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

/// Queues hold actors, never messages.
fn many_tells_to_an_idle_actor_schedule_it_once(home: &Home) {
    let counter = Arc::default();
    let (asleep, all) = (Gate::default(), Gate::default());
    let (sleeps, has_all) = (asleep.clone(), all.clone());
    let handle = home.spawn(counting(&counter, async move |mut cx: Context<u32>| {
        open_when_pending(sleeps, cx.recv()).await;
        for _ in 1..BATCH - 1 {
            cx.recv().await;
        }
        has_all.open();
        cx.recv().await
    }));
    asleep.pass();
    let held = home.hold();
    assert_eq!(polls(&counter), 1, "the actor sleeps");
    (1..BATCH as u32).for_each(|number| handle.tell(number).unwrap());
    assert_eq!(polls(&counter), 1);
    drop(held);
    all.pass();
    let _its_turn_is_over = home.hold();
    assert_eq!(polls(&counter), 2);
}

fn many_tells_to_an_actor_that_was_never_polled_schedule_it_once(home: &Home) {
    let counter = Arc::default();
    let held = home.hold();
    let handle = home.spawn(counting(&counter, count));
    (0..BATCH as u32 - 1).for_each(|number| handle.tell(number).unwrap());
    handle.stop();
    drop(held);
    home.block_on(handle.closed());
    assert_eq!(polls(&counter), 1);
    assert_eq!(home.block_on(handle.join()).unwrap(), BATCH as u32 - 1);
}

fn a_tell_to_a_running_actor_is_handled_in_the_same_turn(home: &Home) {
    let counter = Arc::default();
    let held = home.hold();
    let handle = home.spawn(counting(&counter, async |mut cx: Context<u32>| {
        let own = cx.downgrade();
        let mut handled = 0;
        while let Some(left) = cx.recv().await {
            handled += 1;
            if left > 0 {
                own.tell(left - 1).unwrap();
            } else {
                cx.stop();
            }
        }
        handled
    }));
    handle.tell(BATCH as u32 - 2).unwrap();
    drop(held);
    home.block_on(handle.closed());
    assert_eq!(polls(&counter), 1);
    assert_eq!(home.block_on(handle.join()).unwrap(), BATCH - 1);
}

/// A turn handles one batch; then the actor goes to the back of the queue.
fn an_actor_yields_after_each_batch(home: &Home) {
    for (messages, turns) in [(31, 1), (32, 2), (33, 2), (64, 3), (128, 5)] {
        let counter = Arc::default();
        let held = home.hold();
        let handle = home.spawn(counting(&counter, count));
        (0..messages).for_each(|number| handle.tell(number).unwrap());
        handle.stop();
        drop(held);
        home.block_on(handle.closed());
        assert_eq!(polls(&counter), turns, "for {messages} messages");
        assert_eq!(home.block_on(handle.join()).unwrap(), messages);
    }
}

fn an_idle_actor_is_not_polled(home: &Home) {
    let counter = Arc::default();
    let asleep = Gate::default();
    let sleeps = asleep.clone();
    let handle = home.spawn(counting(&counter, async move |mut cx: Context<u32>| {
        open_when_pending(sleeps, cx.recv()).await
    }));
    asleep.pass();
    let others: Vec<_> = (0..100).map(|_| home.spawn(actor(count))).collect();
    others.iter().for_each(|other| other.tell(1).unwrap());
    for other in others {
        home.block_on(other.join()).unwrap();
    }
    assert_eq!(polls(&counter), 1);
    drop(handle);
}

#[test]
fn actors_take_turns_after_batches_of_the_chosen_size() {
    within(WATCH, || {
        for batch in [1, 10, BATCH] {
            let runtime = Runtime::builder().workers(1).batch(batch).build().unwrap();
            let order = Log::default();
            let spawn = |name: &'static str| {
                let order = order.clone();
                actor(async move |mut cx: Context<()>| {
                    while cx.recv().await.is_some() {
                        order.add(name);
                    }
                })
            };
            let (a, b) = (spawn("a"), spawn("b"));
            // A single turn of the worker sends all messages, so both actors are in its local
            // queue.
            let both = runtime.spawn(async move {
                let both = [a.spawn(), b.spawn()];
                (0..3 * batch).for_each(|_| both.iter().for_each(|one| one.tell(()).unwrap()));
                both
            });
            for actor in runtime.block_on(both) {
                runtime.block_on(actor.join()).unwrap();
            }
            let order = order.take();
            let turns: Vec<_> = order.chunk_by(|one, other| one == other).collect();
            assert_eq!(order.len(), 6 * batch);
            assert_eq!(turns.len(), 6, "the actors take turns");
            assert!(turns.iter().all(|turn| turn.len() == batch));
        }
    });
}

enum Ball {
    Partner(Address<Ball>),
    /// A hit, with the number of hits that are left.
    Hit(usize),
}

/// Hits the ball back. Every hundredth hit first sends the number of hits so far to the third
/// actor.
async fn player(mut cx: Context<Ball>, hits: Arc<AtomicUsize>, third: Address<usize>) {
    let mut partner = None;
    while let Some(ball) = cx.recv().await {
        match (ball, &partner) {
            (Ball::Partner(address), _) => partner = Some(address),
            (Ball::Hit(left), Some(partner)) if left > 0 => {
                let so_far = hits.fetch_add(1, Ordering::SeqCst) + 1;
                if so_far.is_multiple_of(100) {
                    third.tell(so_far).unwrap();
                }
                partner.tell(Ball::Hit(left - 1)).unwrap();
            }
            _ => {
                partner.inspect(Address::stop);
                return;
            }
        }
    }
}

/// Records for each message how much was counted between sending and handling it.
async fn waits(mut cx: Context<usize>, counter: Arc<AtomicUsize>) -> Vec<usize> {
    let mut waits = Vec::new();
    while let Some(told_at) = cx.recv().await {
        waits.push(polls(&counter) - told_at);
    }
    waits
}

/// An upper bound: the LIFO slot runs first for at most 16 µs, and no turn takes less than 10 ns.
const CHAIN: usize = 2000;

/// Two actors that message each other on the only worker do not starve a third actor.
#[test]
fn two_actors_that_message_each_other_do_not_starve_a_third() {
    within(WATCH, || {
        let home = Home::workers(1);
        let hits: Arc<AtomicUsize> = Arc::default();
        let (counter, played) = (hits.clone(), hits.clone());
        let third = home.spawn(actor(|cx| waits(cx, counter)));
        let address = third.address();
        let (one, other) = (address.clone(), address);
        let one = home.spawn(actor(move |cx| player(cx, hits, one)));
        let other = home.spawn(actor(move |cx| player(cx, played, other)));
        one.tell(Ball::Partner(other.address())).unwrap();
        other.tell(Ball::Partner(one.address())).unwrap();
        one.tell(Ball::Hit(10_000)).unwrap();
        home.block_on(one.join()).unwrap();
        home.block_on(other.join()).unwrap();
        let waits = home.block_on(third.join()).unwrap();
        assert_eq!(waits.len(), 100);
        assert!(waits.iter().all(|&hits| hits <= CHAIN), "{waits:?}");
    });
}

/// A chain of tasks, each of which spawns the next one, does not starve other tasks.
#[test]
fn a_chain_of_spawns_does_not_starve_other_tasks() {
    fn link(left: usize, links: Arc<AtomicUsize>, third: Address<usize>) {
        let task = greenroom::spawn(async move {
            let so_far = links.fetch_add(1, Ordering::SeqCst) + 1;
            if so_far.is_multiple_of(100) {
                third.tell(so_far).unwrap();
            }
            if left > 0 {
                link(left - 1, links, third);
            }
        });
        task.detach();
    }
    within(WATCH, || {
        let home = Home::workers(1);
        let links: Arc<AtomicUsize> = Arc::default();
        let counter = links.clone();
        let third = home.spawn(actor(|cx| waits(cx, counter)));
        let address = third.address();
        home.block_on(async move { link(10_000, links, address) });
        let waits = home.block_on(third.join()).unwrap();
        assert_eq!(waits.len(), 100);
        assert!(waits.iter().all(|&links| links <= CHAIN), "{waits:?}");
    });
}

/// Sends itself a message per message, so that it always has one, until it is stopped.
async fn flooded(mut cx: Context<()>, handled: Arc<AtomicUsize>, due: Option<Instant>) -> usize {
    let own = cx.downgrade();
    own.tell(()).unwrap();
    let mut at_due = None;
    while cx.recv().await.is_some() {
        let so_far = handled.fetch_add(1, Ordering::SeqCst) + 1;
        let _ = own.tell(());
        if at_due.is_none() && due.is_some_and(|due| Instant::now() >= due) {
            at_due = Some(so_far);
        }
    }
    at_due.unwrap_or(0)
}

/// A flooded actor observes its stop: it handles the messages accepted before, here a single one.
#[test]
fn a_flooded_actor_can_be_stopped() {
    within(WATCH, || {
        let home = Home::workers(1);
        let handled: Arc<AtomicUsize> = Arc::default();
        let counter = handled.clone();
        let handle = home.spawn(actor(|cx| flooded(cx, counter, None)));
        // On the same worker, between two turns of the actor.
        let address = handle.address();
        let counter = handled.clone();
        let at_stop = home.block_on(home.spawn_task(async move {
            while polls(&counter) < 1_000 {
                greenroom::yield_now().await;
            }
            address.stop();
            polls(&counter)
        }));
        home.block_on(handle.join()).unwrap();
        assert_eq!(polls(&handled), at_stop + 1);
    });
}

/// A flooded actor does not delay a timer by more than some of its turns.
#[test]
fn a_flooded_actor_does_not_starve_timers() {
    within(WATCH, || {
        let home = Home::workers(1);
        let handled: Arc<AtomicUsize> = Arc::default();
        let wait = Duration::from_millis(5);
        let (begun, counter) = (Gate::default(), handled.clone());
        let begins = begun.clone();
        let timer = home.spawn_task(async move {
            let due = Instant::now() + wait;
            begins.open();
            sleep(wait).await;
            (due, polls(&counter))
        });
        begun.pass();
        let due = Instant::now() + wait;
        let counter = handled.clone();
        let handle = home.spawn(actor(move |cx| flooded(cx, counter, Some(due))));
        let (slept_until, at_timer) = home.block_on(timer);
        assert!(slept_until <= due);
        // The actor continues until it has observed the deadline itself.
        let address = handle.address();
        home.block_on(home.spawn_task(async move {
            while Instant::now() <= due {
                greenroom::yield_now().await;
            }
            greenroom::yield_now().await;
            address.stop();
        }));
        let at_due = home.block_on(handle.join()).unwrap();
        // The worker reads the clock about every 50 microseconds, at most every 64 turns.
        let turns = at_timer.saturating_sub(at_due) / BATCH;
        assert!(turns <= 64 + 2, "the timer fired {turns} turns late");
    });
}

/// While a worker's local queue is never empty, an injected message gets its turn within two turns,
/// since these are longer than half a millisecond.
#[test]
fn local_work_does_not_starve_the_injector() {
    within(WATCH, || {
        let home = Home::workers(1);
        let turns: Arc<AtomicUsize> = Arc::default();
        let over = Gate::default();
        // Always ready, on the worker's local queue.
        let busy = || {
            let (turns, over) = (turns.clone(), over.clone());
            home.spawn_task(async move {
                while !over.is_open() {
                    turns.fetch_add(1, Ordering::SeqCst);
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_micros(600) {
                        std::hint::spin_loop();
                    }
                    greenroom::yield_now().await;
                }
            })
        };
        let busy: Vec<Task<()>> = (0..8).map(|_| busy()).collect();
        let counter = turns.clone();
        let outside = home.spawn(actor(|cx| waits(cx, counter)));
        // Injected tasks begin in order, so all of these have begun when this one does.
        home.block_on(home.spawn_task(async {}));
        for _ in 0..100 {
            // Another thread sends the message during a turn on the worker, so the count is exact.
            let (address, counter) = (outside.address(), turns.clone());
            home.block_on(home.spawn_task(async move {
                let tell = move || address.tell(polls(&counter)).unwrap();
                std::thread::spawn(tell).join().unwrap();
            }));
        }
        let mut waits = home.block_on(outside.join()).unwrap();
        over.open();
        busy.into_iter().for_each(|task| home.block_on(task));
        waits.sort_unstable();
        assert_eq!(waits.len(), 100);
        // While the system keeps the worker from its core, a thread may take its place and count too.
        assert!(
            waits[89] <= 2,
            "fewer than 90 of 100 messages were handled within two turns: {waits:?}"
        );
    });
}

/// The reverse: an endless stream of injected tasks does not starve the worker's local queue.
#[test]
fn the_injector_does_not_starve_local_work() {
    within(WATCH, || {
        let home = Home::workers(1);
        let (held, injected) = (home.hold(), Arc::new(AtomicUsize::new(0)));
        let (local, counts) = (mpsc::channel(), injected.clone());
        let (tells, read) = local;
        // The worker runs this task first, so it has a local task from then on.
        let own = home.spawn_task(async move {
            let mut seen = Vec::new();
            for _ in 0..50 {
                seen.push(counts.load(Ordering::SeqCst));
                greenroom::yield_now().await;
            }
            tells.send(seen).unwrap();
        });
        let outside: Vec<_> = (0..10_000)
            .map(|_| {
                let injected = injected.clone();
                home.spawn_task(async move {
                    injected.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        drop(held);
        home.block_on(own);
        let seen = received(&read);
        let between = seen.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        // A worker moves a share of the injector to its local queue, at most as many tasks as fit
        // there.
        assert!(
            between <= 512,
            "{between} injected tasks ran between two turns of the local task: {seen:?}"
        );
        outside.into_iter().for_each(|task| home.block_on(task));
    });
}

/// Returns in how many polls an actor handles this many messages, each of which takes longer than a
/// turn should.
fn polls_for_slow(runtime: &Runtime, messages: usize) -> usize {
    let counter = Arc::default();
    let slow = counting(&counter, async |mut cx: Context<()>| {
        while cx.recv().await.is_some() {
            burn(Duration::from_micros(50));
        }
    });
    let slow = runtime.block_on(runtime.spawn(async move {
        let slow = slow.spawn();
        (0..messages).for_each(|_| slow.tell(()).unwrap());
        slow.stop();
        slow
    }));
    runtime.block_on(slow.join()).unwrap();
    polls(&counter)
}

#[test]
fn an_actor_with_slow_messages_has_shorter_turns_from_the_ninth_on() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        // Eight batches, then a turn for each message, and one that finds the end.
        assert_eq!(polls_for_slow(&runtime, 8 * BATCH + 100), 8 + 100 + 1);
    });
}

#[test]
fn a_batch_chosen_by_the_user_is_complete_even_with_slow_messages() {
    within(WATCH, || {
        for batch in [BATCH, 10] {
            let runtime = Runtime::builder().workers(1).batch(batch).build().unwrap();
            assert_eq!(polls_for_slow(&runtime, 16 * batch), 16 + 1);
        }
    });
}
