//! What stays: name, id and place. Also the forms of actors that can be restarted.

use std::rc::Rc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use greenroom::time::RetryIntervals;
use greenroom::{Actor, ActorBuilder, Context, Detached, Runtime, actor};

use super::{Order, ever, lost, obedient};
use crate::support::{
    CountingWaker, Home, Log, WATCH, drive, in_every_home, keep_bombs_quiet, within,
};

in_every_home!(
    an_actor_keeps_its_id_its_name_and_its_bound,
    a_value_begins_anew_as_it_was_spawned,
);

fn an_actor_keeps_its_id_its_name_and_its_bound(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let panics = actor(move |mut cx: Context<u32>| async move {
            let address = cx.address();
            let name = address.name().map(str::to_owned);
            own.add((address.id(), name, address.capacity()));
            drop(address);
            if cx.recv().await.is_some() {
                panic!("bomb");
            }
        });
        let panics = home.spawn(panics.name("panics").capacity(4).restart(ever()));
        let told = (panics.id(), Some("panics".to_owned()), Some(4));
        for number in 0..4 {
            panics.tell(number).unwrap();
        }
        panics.join().await.unwrap();
        assert_eq!(log.take(), vec![told; 5]);
    });
}

/// Adds up what it is told, and panics when it is told nothing.
#[derive(Clone)]
struct Sum(u32, Log<&'static str>);

impl Actor for Sum {
    type Message = Option<u32>;

    async fn handle(&mut self, number: Option<u32>, _cx: &mut Context<Option<u32>>) {
        let Some(number) = number else {
            panic!("bomb");
        };
        self.0 += number;
    }

    async fn started(&mut self, _cx: &mut Context<Option<u32>>) {
        self.1.add("started");
    }

    async fn stopped(&mut self, _cx: &mut Context<Option<u32>>) {
        self.1.add("stopped");
    }
}

fn a_value_begins_anew_as_it_was_spawned(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let sum = home.spawn(Sum(40, log.clone()).into_builder().restart(ever()));
        for number in [Some(1), None, Some(2), None, Some(2)] {
            sum.tell(number).unwrap();
        }
        assert_eq!(sum.join().await.unwrap().0, 42);
        assert_eq!(log.take(), ["started", "started", "started", "stopped"]);
    });
}

/// Writes the thread of each of its four incarnations. Its future is not `Send`.
fn wanders(
    log: &Log<ThreadId>,
) -> ActorBuilder<(), impl FnOnce(Context<()>) -> NotSend + Clone + Send + 'static + use<>, NotSend>
{
    let log = log.clone();
    actor(move |cx: Context<()>| -> NotSend {
        Box::pin(async move {
            let not_send = Rc::new(cx.incarnation_number());
            log.add(thread::current().id());
            greenroom::time::sleep(Duration::from_millis(1)).await;
            log.add(thread::current().id());
            if *not_send < 3 {
                panic!("bomb");
            }
        })
    })
}

type NotSend = std::pin::Pin<Box<dyn Future<Output = ()>>>;

#[track_caller]
fn assert_one_thread(log: &Log<ThreadId>) {
    let threads = log.take();
    assert_eq!(threads.len(), 8);
    assert!(threads.iter().all(|thread| *thread == threads[0]));
    assert_ne!(threads[0], thread::current().id());
}

#[test]
fn a_detached_actor_keeps_its_thread() {
    keep_bombs_quiet();
    within(WATCH, || {
        let home = Home::workers(2);
        home.block_on(async {
            let log = Log::default();
            let wanders = wanders(&log).restart(ever()).on(Detached).spawn();
            wanders.join().await.unwrap();
            assert_one_thread(&log);
        });
    });
}

#[test]
fn an_actor_keeps_its_pinned_thread() {
    keep_bombs_quiet();
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let other = runtime.spawn_pinned("other").unwrap();
        let log = Log::default();
        // The order of `on` and `restart` is free.
        let first = wanders(&log).on(&pinned).restart(ever()).spawn();
        drive(first.join()).unwrap();
        assert_one_thread(&log);
        let second = wanders(&log).restart(ever()).on(&other).spawn();
        drive(second.join()).unwrap();
        assert_one_thread(&log);
    });
}

#[test]
fn a_pinned_thread_stays_for_an_actor_in_its_delay() {
    keep_bombs_quiet();
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let (obeys, log) = obedient();
        let delays = RetryIntervals::every(Duration::from_millis(5));
        let rules = ever().delays(delays);
        let obeys = obeys.restart(rules).on(&pinned).spawn();
        lost(drive(obeys.ask(|reply| Order::Lose("bomb", reply))));
        drop(pinned);
        obeys.tell(Order::Log(1)).unwrap();
        assert_eq!(drive(obeys.join()).unwrap(), 1);
        assert_eq!(log.take(), [1]);
    });
}

#[test]
fn an_actor_keeps_the_runtime_it_was_spawned_on() {
    keep_bombs_quiet();
    within(WATCH, || {
        let (one, other) = (Home::workers(1), Home::workers(1));
        let log = Log::default();
        let own = log.clone();
        let looks = actor(move |cx: Context<()>| async move {
            own.add(thread::current().id());
            if cx.incarnation_number() < 3 {
                panic!("bomb");
            }
        });
        let its = drive(one.runtime.spawn(async { thread::current().id() }));
        let looks = looks.restart(ever()).on(&one.runtime);
        // Another runtime is the current one.
        let looks = crate::support::inside(&other.runtime, || looks.spawn());
        drive(looks.join()).unwrap();
        assert_eq!(log.take(), [its; 4]);
    });
}

#[test]
fn a_split_actor_is_restarted_on_any_executor() {
    keep_bombs_quiet();
    within(WATCH, || {
        let (obeys, log) = obedient();
        // Outside of any runtime the delays have a clock, too.
        let delays = RetryIntervals::every(Duration::from_millis(2));
        let rules = ever().delays(delays);
        let (address, future) = obeys.name("split").restart(rules).split();
        let asks = async move {
            for number in 0..5 {
                lost(address.ask(|reply| Order::Lose("bomb", reply)).await);
                address.tell(Order::Log(number)).unwrap();
                let number = u64::from(number) + 1;
                assert_eq!(address.ask(Order::Number).await, Ok(number));
            }
        };
        let (result, ()) = smol::block_on(async { futures::join!(future, asks) });
        assert_eq!(result.unwrap(), 5);
        assert_eq!(log.take(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_split_actor_whose_future_is_dropped_in_a_delay_is_dropped() {
    keep_bombs_quiet();
    within(WATCH, || {
        let (obeys, _) = obedient();
        let rules = ever().delays(super::never());
        let (address, future) = obeys.restart(rules).split();
        let (counting, waker) = CountingWaker::new();
        let mut future = Box::pin(future);
        let mut cx = std::task::Context::from_waker(&waker);
        address.tell(Order::Panic("bomb")).unwrap();
        assert!(future.as_mut().poll(&mut cx).is_pending());
        // It takes another turn for the delay.
        assert_eq!(counting.count(), 1);
        assert!(future.as_mut().poll(&mut cx).is_pending());
        let mut asked = address.ask(Order::Number);
        assert!(crate::support::poll_once(&mut asked).is_pending());
        drop(future);
        assert!(drive(asked).is_err());
        assert!(address.is_closed());
        drive(address.closed());
    });
}
