//! `handlers!`: messages, dispatch and a typed address from one list of methods.

use std::time::Duration;

use greenroom::registry::Name;
use greenroom::supervise::{Restarts, Supervisor};
use greenroom::{Actor, Address, AskCause, AskError, Context, Fault, Reply, concurrently, spawn};

use crate::support::{Gate, Home, Log, in_every_home, on_workers};

#[derive(Clone, Debug, PartialEq)]
struct TooLong(usize);

/// An actor that others may see, with messages and an address that they may not.
mod till {
    #[derive(Default)]
    pub struct Till {
        cents: u64,
    }

    /// No other module can make one.
    struct Coin(u64);

    greenroom::handlers! {
        impl Till as TillAddress, TillMessage {
            fn insert(&mut self, coin: Coin) {
                self.cents += coin.0;
            }

            fn total(&self) -> u64 {
                self.cents
            }
        }
    }

    impl Till {
        pub async fn total_of(self, coins: &[u64]) -> u64 {
            let till: TillAddress = greenroom::spawn!(self).into();
            for cents in coins {
                till.insert(Coin(*cents)).tell().unwrap();
            }
            till.total().await.unwrap()
        }
    }
}

#[test]
fn a_pub_actor_may_have_messages_and_an_address_that_are_private() {
    let total = on_workers(1, async { till::Till::default().total_of(&[20, 50]).await });
    assert_eq!(total, 70);
}

/// Counts, and has a name.
#[derive(Clone, Default)]
struct Counter {
    total: u64,
    name: String,
    log: Log<String>,
    gate: Gate,
    faults: u32,
}

greenroom::handlers! {
    /// Counts things.
    #[derive(Debug)]
    #[allow(clippy::needless_pass_by_ref_mut, reason = "it comes with all that is declared")]
    impl Counter as CounterAddress, CounterMessage {
        /// Adds to the total.
        pub async fn add(&mut self, n: u64) {
            greenroom::yield_now().await;
            self.total += n;
        }

        /// Adds, and returns the total.
        #[must_use = "`add` returns nothing"]
        fn added(&mut self, n: u64) -> u64 {
            self.total += n;
            self.total
        }

        #[inline]
        #[must_use]
        pub(crate) fn total(&self) -> u64 {
            self.total
        }

        async fn rename(
            &mut self,
            name: String,
            cx: &mut Context<CounterMessage>,
        ) -> Result<usize, TooLong> {
            let length = u8::try_from(name.len()).map_err(|_| TooLong(name.len()))?;
            self.name = format!("{name} of {}", cx.address().id());
            Ok(length.into())
        }

        #[allow(clippy::too_many_arguments, reason = "that is tested")]
        fn sum(
            &mut self,
            a: u8,
            b: u16,
            c: u32,
            d: u64,
            e: u8,
            f: u16,
            g: Vec<(u8, u8)>,
            cx: &mut Context<CounterMessage>,
        ) -> u64 {
            cx.stop();
            let pairs: u64 = g.iter().map(|&(x, y)| u64::from(x) * u64::from(y)).sum();
            u64::from(a) + u64::from(b) + u64::from(c) + d + u64::from(e) + u64::from(f) + pairs
        }

        fn reset(&mut self) {
            self.total = 0;
        }

        fn count_later(&mut self, cx: &mut Context<CounterMessage>) {
            cx.send_after(Duration::from_millis(1), CounterMessage::add(3)).detach();
        }

        async fn wait(&self) -> u64 {
            self.gate.wait().await;
            self.total
        }

        fn ask_other(
            &mut self,
            other: CounterAddress,
            n: u64,
            cx: &mut Context<CounterMessage>,
        ) {
            let asked = other.request(move |reply| CounterMessage::added(n, reply));
            cx.on_answer(asked, CounterMessage::answered);
        }

        fn answered(&mut self, answer: Result<u64, AskError>) {
            self.total += answer.unwrap();
        }

        fn panic(&mut self) -> u64 {
            panic!("as it was told")
        }

        /// Names a type that does not exist.
        #[cfg(any())]
        fn missing(&mut self, missing: Missing) -> Missing {
            missing
        }

        async fn started(&mut self, _cx: &mut Context<CounterMessage>) {
            self.log.add("started".into());
        }

        fn panicked(&mut self, fault: &Fault, _cx: &mut Context<CounterMessage>) -> bool {
            self.faults += 1;
            self.log.add(fault.to_string());
            self.name == "brave"
        }

        async fn stopped(&mut self, cx: &mut Context<CounterMessage>) {
            assert!(cx.recv().await.is_none());
            self.log.add("stopped".into());
        }
    }
}

fn counter(home: &Home, counter: Counter) -> CounterAddress {
    home.spawn(counter.into_builder()).into()
}

in_every_home!(
    handlers_without_a_result_are_told_and_sent,
    handlers_with_a_result_are_asked,
    a_handler_may_fail_and_use_its_context,
    several_parameters_are_passed_in_order,
    requests_are_owned_and_concurrent,
    a_message_is_a_value_for_timers_maps_and_answers,
    hooks_run_around_the_handlers,
    a_fault_restarts_it_under_the_same_address,
    a_supervisor_and_a_name_take_it,
);

fn handlers_without_a_result_are_told_and_sent(home: &Home) {
    let handle = home.spawn(Counter::default().into_builder().capacity(2));
    let counter = CounterAddress::from(handle.address());
    home.block_on(async {
        for n in 0..10 {
            counter.add(n).send().await.unwrap();
        }
        assert_eq!(counter.total().await, Ok(45));
        counter.reset().tell().unwrap();
        counter.add(2).tell().unwrap();
        drop(counter);
        assert_eq!(handle.join().await.unwrap().total, 2);
    });
}

fn handlers_with_a_result_are_asked(home: &Home) {
    let counter = counter(home, Counter::default());
    home.block_on(async {
        assert_eq!(counter.added(40).await, Ok(40));
        assert_eq!(
            counter.added(2).timeout(Duration::from_secs(3600)).await,
            Ok(42)
        );
        let (wait, hasty) = (counter.wait(), counter.total());
        assert_eq!(
            wait.timeout(Duration::from_millis(1)).await,
            Err(AskError::TimedOut)
        );
        assert_eq!(
            hasty.timeout(Duration::from_millis(1)).await,
            Err(AskError::TimedOut)
        );
        counter.kill();
        counter.closed().await;
        assert!(matches!(counter.total().await, Err(AskError::Closed(_))));
    });
}

fn a_handler_may_fail_and_use_its_context(home: &Home) {
    let handle = home.spawn(Counter::default().into_builder());
    let (counter, id) = (CounterAddress::from(handle.address()), handle.id());
    home.block_on(async {
        let long = "x".repeat(300);
        assert_eq!(counter.rename(long).await, Ok(Err(TooLong(300))));
        assert_eq!(counter.rename("Ada".into()).await, Ok(Ok(3)));
        drop(counter);
        assert_eq!(handle.join().await.unwrap().name, format!("Ada of {id}"));
    });
}

fn several_parameters_are_passed_in_order(home: &Home) {
    let counter = counter(home, Counter::default());
    home.block_on(async {
        let sum = counter.sum(1, 20, 300, 4000, 5, 60, vec![(7, 100), (2, 50)]);
        assert_eq!(sum.await, Ok(5186));
        counter.closed().await;
    });
}

fn requests_are_owned_and_concurrent(home: &Home) {
    let (a, b) = (
        counter(home, Counter::default()),
        counter(home, Counter::default()),
    );
    home.block_on(async {
        let requests = [
            a.request(|reply| CounterMessage::added(1, reply)),
            b.request(|reply| CounterMessage::added(2, reply)),
            a.request(CounterMessage::total),
        ];
        assert_eq!(concurrently(requests).await, [Ok(1), Ok(2), Ok(1)]);
        let limited = a.request(CounterMessage::wait);
        let limited = limited.timeout(Duration::from_millis(1));
        assert_eq!(home.spawn_task(limited).await, Err(AskError::TimedOut));
        let left = b.request(CounterMessage::total);
        b.stop();
        assert!(matches!(left.await, Err(AskError::Closed(_))));
        assert!(matches!(
            b.request(CounterMessage::total).await,
            Err(AskError::Closed(_))
        ));
        a.kill();
    });
}

fn a_message_is_a_value_for_timers_maps_and_answers(home: &Home) {
    let (a, b) = (
        counter(home, Counter::default()),
        counter(home, Counter::default()),
    );
    home.block_on(async {
        let numbers: Address<u64> = a.map(CounterMessage::add);
        numbers.tell(1).unwrap();
        assert_eq!(a.ask(CounterMessage::total).await, Ok(1));
        a.count_later().tell().unwrap();
        while a.total().await != Ok(4) {
            greenroom::yield_now().await;
        }
        a.ask_other(b.clone(), 10).tell().unwrap();
        while a.total().await != Ok(14) {
            greenroom::yield_now().await;
        }
        assert_eq!(b.total().await, Ok(10));
    });
}

fn hooks_run_around_the_handlers(home: &Home) {
    let brave = Counter {
        name: "brave".into(),
        ..Counter::default()
    };
    let handle = home.spawn(brave.into_builder());
    let counter = CounterAddress::from(handle.address());
    home.block_on(async {
        let Err(AskError::NoReply(lost)) = counter.panic().await else {
            panic!("there is no answer");
        };
        assert_eq!(*lost.why(), AskCause::Panicked("as it was told".into()));
        assert_eq!(counter.added(1).await, Ok(1));
        drop(counter);
        let counter = handle.join().await.unwrap();
        assert_eq!(counter.faults, 1);
        let log = counter.log.take();
        assert_eq!((log.len(), &*log[0], &*log[2]), (3, "started", "stopped"));
        assert!(log[1].contains("as it was told"), "{log:?}");
    });
}

fn a_fault_restarts_it_under_the_same_address(home: &Home) {
    let restarted = Counter::default()
        .into_builder()
        .restart(Restarts::default());
    let counter = CounterAddress::from(home.spawn(restarted));
    home.block_on(async {
        assert_eq!(counter.added(5).await, Ok(5));
        assert!(matches!(counter.panic().await, Err(AskError::NoReply(_))));
        assert_eq!(counter.added(1).await, Ok(1));
    });
}

fn a_supervisor_and_a_name_take_it(home: &Home) {
    let name = Name::<CounterMessage>::new("counter").on(&home.runtime);
    home.block_on(home.spawn_task(async move {
        let supervisor = Supervisor::builder().spawn().unwrap();
        let child = supervisor.start(Counter::default().into_builder()).unwrap();
        name.register(&child).unwrap();
        let counter = CounterAddress::from(name.get().unwrap());
        assert_eq!(counter.added(5).await, Ok(5));
        assert!(matches!(counter.panic().await, Err(AskError::NoReply(_))));
        assert_eq!(counter.total().await, Ok(0));
        supervisor.stop();
        supervisor.join().await.unwrap();
    }));
}

#[test]
fn refused_messages_come_back() {
    // On the only worker, so that the actor has no turn between two messages.
    let refused = async {
        let counter = CounterAddress::from(spawn!(Counter::default(), capacity = 1));
        counter.reset().tell().unwrap();
        let full = counter.add(3).tell().unwrap_err();
        assert!(full.is_full(), "{full}");
        assert!(matches!(full.into_inner(), CounterMessage::add(3)));
        counter.stop();
        let closed = counter.add(4).tell().unwrap_err();
        assert!(closed.is_closed(), "{closed}");
        assert!(matches!(closed.into_inner(), CounterMessage::add(4)));
        let closed = counter.reset().send().await.unwrap_err();
        assert!(matches!(closed.into_inner(), CounterMessage::reset()));
    };
    on_workers(1, async { greenroom::spawn(refused).await });
}

#[test]
fn an_address_is_one_and_converts_to_one() {
    on_workers(1, async {
        let handle = spawn!(Counter::default(), name = "counter");
        let one = CounterAddress::from(handle.address());
        let other = one.clone();
        assert_eq!(one, other);
        assert_eq!((one.name(), one.id()), (Some("counter"), handle.id()));
        let debug = format!("{one:?}");
        assert!(debug.starts_with("CounterAddress(Address {"), "{debug}");
        let unsent = one.add(1);
        assert!(format!("{unsent:?}").starts_with("Unsent {"));
        let plain: Address<CounterMessage> = one.into();
        plain.tell(CounterMessage::add(1)).unwrap();
        assert_eq!(plain, handle.address());
        drop((plain, other));
        assert_eq!(handle.join().await.unwrap().total, 1);
    });
}

#[test]
fn an_actor_lives_as_long_as_its_typed_addresses() {
    on_workers(1, async {
        let log = Log::default();
        let logged = Counter {
            log: log.clone(),
            ..Counter::default()
        };
        let counter: CounterAddress = spawn!(logged).into();
        let weak = counter.downgrade();
        assert_eq!(counter.added(1).await, Ok(1));
        assert!(!weak.is_closed());
        drop(counter);
        weak.closed().await;
        assert_eq!(log.take(), ["started", "stopped"]);
    });
}

#[test]
fn handlers_are_methods_of_the_value() {
    let mut counter = Counter::default();
    assert_eq!(counter.added(2), 2);
    futures::executor::block_on(counter.add(3));
    assert_eq!(counter.total(), 5);
}

/// A type with parameters, all of which are given.
struct Stack<T>(Vec<T>);

greenroom::handlers! {
    pub impl Stack<&'static str> as StackAddress, StackMessage {
        pub fn push(&mut self, item: &'static str,) {
            self.0.push(item);
        }

        pub fn pop(&mut self) -> Option<&'static str> {
            self.0.pop()
        }

        /// Replies to itself: a result of `()` is a result.
        pub async fn empty(&mut self,) -> () {
            self.0.clear();
        }

        /// Takes a reply that is not its own.
        pub fn peek_later(&mut self, reply: Reply<Option<&'static str>>) {
            reply.send(self.0.last().copied());
        }
    }
}

#[test]
fn a_result_of_nothing_is_awaited_and_a_reply_may_be_a_parameter() {
    on_workers(2, async {
        let stack = StackAddress::from(spawn!(Stack(vec!["a"])));
        stack.push("b").tell().unwrap();
        let (reply, top) = Reply::pair();
        stack.peek_later(reply).tell().unwrap();
        assert_eq!(top.await, Ok(Some("b")));
        assert_eq!(stack.pop().await, Ok(Some("b")));
        assert_eq!(stack.empty().await, Ok(()));
        assert_eq!(stack.pop().await, Ok(None));
    });
}

/// Declares an actor with many handlers, in a crate with the usual limit of recursion.
macro_rules! many {
    ($($name:ident)*) => {
        struct Many(u64);

        greenroom::handlers! {
            impl Many as ManyAddress, ManyMessage {
                $(
                    fn $name(&mut self, n: u64, _cx: &mut Context<ManyMessage>) -> u64 {
                        self.0 += n;
                        self.0
                    }
                )*
            }
        }

        async fn call_all(many: ManyAddress) -> Vec<u64> {
            vec![$(many.$name(1).await.unwrap()),*]
        }
    };
}

many! {
    a00 a01 a02 a03 a04 a05 a06 a07 a08 a09 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19
    a20 a21 a22 a23 a24 a25 a26 a27 a28 a29 a30 a31 a32 a33 a34 a35 a36 a37 a38 a39
    a40 a41 a42 a43 a44 a45 a46 a47 a48 a49
}

#[test]
fn an_actor_has_up_to_fifty_handlers() {
    on_workers(1, async {
        let many = call_all(spawn!(Many(0)).into()).await;
        assert_eq!(many, (1..=50).collect::<Vec<_>>());
    });
}
