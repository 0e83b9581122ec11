//! Actors that are values: the trait `Actor`.

use greenroom::{Actor, AskDetail, AskError, Context, Fault, Reply, SpawnProblem, spawn};

use crate::support::{Gate, Log, WATCH, drive, on_workers, panic_of, within};

/// An actor that records its calls in order.
struct Clerk {
    log: Log<String>,
    handled: u32,
}

enum Order {
    Note(u32),
    Count(Reply<u32>),
    Panic,
}

impl Clerk {
    fn new(log: &Log<String>) -> Clerk {
        Clerk {
            log: log.clone(),
            handled: 0,
        }
    }
}

impl Actor for Clerk {
    type Message = Order;

    async fn started(&mut self, _cx: &mut Context<Order>) {
        greenroom::yield_now().await;
        self.log.add("started".into());
    }

    async fn handle(&mut self, order: Order, _cx: &mut Context<Order>) {
        self.handled += 1;
        match order {
            Order::Note(number) => {
                greenroom::yield_now().await;
                self.log.add(format!("note {number}"));
            }
            Order::Count(reply) => reply.send(self.handled),
            Order::Panic => panic!("as it was ordered"),
        }
    }

    async fn stopped(&mut self, cx: &mut Context<Order>) {
        assert!(cx.recv().await.is_none());
        self.log.add("stopped".into());
    }
}

#[test]
fn a_value_is_started_handles_messages_in_order_is_stopped_and_returned() {
    on_workers(2, async {
        let log = Log::default();
        let clerk = spawn!(Clerk::new(&log), name = "clerk", capacity = 10);
        assert_eq!(clerk.name(), Some("clerk"));
        for number in 0..3 {
            clerk.send(Order::Note(number)).await.unwrap();
        }
        assert_eq!(clerk.ask(Order::Count).await, Ok(4));
        let clerk = clerk.join().await.unwrap();
        assert_eq!(clerk.handled, 4);
        let log = log.take();
        assert_eq!(log, ["started", "note 0", "note 1", "note 2", "stopped"]);
    });
}

#[test]
fn neither_a_panic_nor_a_kill_calls_stopped() {
    on_workers(2, async {
        let log = Log::default();
        let clerk = spawn!(Clerk::new(&log));
        assert_eq!(clerk.ask(Order::Count).await, Ok(1));
        clerk.tell(Order::Panic).unwrap();
        let Err(Fault::Panicked(panic)) = clerk.join().await else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), Some("as it was ordered"));
        let clerk = spawn!(Clerk::new(&log));
        assert_eq!(clerk.ask(Order::Count).await, Ok(1));
        clerk.kill();
        assert!(matches!(clerk.join().await, Err(Fault::Killed)));
        assert_eq!(log.take(), ["started", "started"]);
    });
}

/// An actor that is generic over its message type.
struct Tally<T>(Vec<T>);

impl<T: Send> Actor for Tally<T> {
    type Message = T;

    async fn handle(&mut self, item: T, cx: &mut Context<T>) {
        self.0.push(item);
        if self.0.len() == 3 {
            cx.stop();
        }
    }
}

/// Uses the actor only through the trait.
async fn feed<A>(actor: A, messages: Vec<A::Message>) -> A
where
    A: Actor + 'static,
    A::Message: 'static,
{
    let handle = spawn!(actor);
    for message in messages {
        if handle.tell(message).is_err() {
            break;
        }
    }
    handle.closed().await;
    handle.join().await.unwrap()
}

#[test]
fn generic_code_spawns_any_actor() {
    on_workers(2, async {
        let Tally(items) = feed(Tally(Vec::new()), vec!["a", "b", "c"]).await;
        assert_eq!(items, ["a", "b", "c"]);
    });
}

/// Each form of expression that `spawn!` accepts for a value.
#[test]
fn every_form_of_a_value_is_spawned() {
    struct Unit;
    impl Actor for Unit {
        type Message = ();
        async fn handle(&mut self, (): (), _cx: &mut Context<()>) {}
    }
    struct Held {
        number: u32,
    }
    impl Held {
        fn with(mut self, change: impl Fn(u32, u32) -> u32) -> Self {
            self.number = change(self.number, 0);
            self
        }
    }
    impl Actor for Held {
        type Message = u32;
        async fn handle(&mut self, number: u32, _cx: &mut Context<u32>) {
            self.number += number;
        }
    }
    on_workers(1, async {
        let Unit = spawn!(Unit).join().await.unwrap();
        let Unit = spawn!(Unit, name = "unit",).join().await.unwrap();
        let held = Held { number: 1 };
        assert_eq!(spawn!(held).join().await.unwrap().number, 1);
        assert_eq!(
            spawn!(Held { number: 2 }, capacity = 1)
                .join()
                .await
                .unwrap()
                .number,
            2
        );
        // A `_` inside the arguments of another call is not the macro's placeholder.
        let held = spawn!(
            Held { number: 3 }.with(|number, _| number + 1),
            name = "held"
        );
        assert_eq!(held.join().await.unwrap().number, 4);
        let held = spawn!(Tally::<(u8, u16)>(Vec::new()));
        held.tell((1, 2)).unwrap();
        assert_eq!(held.join().await.unwrap().0, [(1, 2)]);
    });
}

#[test]
fn a_value_that_cannot_be_spawned_is_returned() {
    let error = Tally(vec![1, 2]).into_builder().try_spawn().unwrap_err();
    assert_eq!(error.problem(), SpawnProblem::NoRuntime);
    assert_eq!(error.into_inner().0, [1, 2]);
    on_workers(1, async {
        let error = Tally(vec![3])
            .into_builder()
            .capacity(0)
            .try_spawn()
            .unwrap_err();
        assert_eq!(error.problem(), SpawnProblem::ZeroCapacity);
        assert_eq!(error.into_inner().0, [3]);
    });
    let runtime = greenroom::Runtime::new().unwrap();
    drive(runtime.shutdown());
    let error = Tally(vec![4])
        .into_builder()
        .on(&runtime)
        .try_spawn()
        .unwrap_err();
    assert_eq!(error.problem(), SpawnProblem::ShutDown);
    assert_eq!(error.into_inner().0, [4]);
    let here = line!() + 1;
    let (text, file, line) = panic_of(|| spawn!(Tally(vec![5])));
    assert!(text.contains("no greenroom runtime is current"), "{text}");
    assert_eq!((file.as_str(), line), (file!(), here));
}

#[test]
fn an_ask_to_a_value_that_stops_without_a_reply_fails_with_no_reply() {
    struct Waits(Gate);
    impl Actor for Waits {
        type Message = Reply<()>;
        async fn handle(&mut self, _reply: Reply<()>, cx: &mut Context<Reply<()>>) {
            self.0.open();
            cx.stop();
        }
    }
    within(WATCH, || {
        greenroom::run(async {
            let gate = Gate::default();
            let waits = spawn!(Waits(gate.clone()));
            assert_eq!(
                waits.ask(|reply| reply).await,
                Err(AskError::NoReply(AskDetail::default()))
            );
            gate.wait().await;
            waits.join().await.unwrap();
        });
    });
}
