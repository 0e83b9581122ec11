//! The names of actors, states and messages, and the escapes in them.

use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::supervise::Restarts;
use greenroom::trace::Level;
use greenroom::{Actor, Context, actor, spawn};

use super::{lines_of, traced};

struct Counter;

impl Actor for Counter {
    type Message = u32;

    async fn handle(&mut self, _number: u32, _cx: &mut Context<u32>) {}
}

struct Bag<T>(T);

impl<T: Send> Actor for Bag<T> {
    type Message = u32;

    async fn handle(&mut self, _number: u32, _cx: &mut Context<u32>) {}
}

#[derive(Clone)]
struct Again;

impl Actor for Again {
    type Message = u32;

    async fn handle(&mut self, _number: u32, _cx: &mut Context<u32>) {}
}

async fn served(_cx: Context<u32>) {}

/// An actor whose future is boxed.
async fn large(_cx: Context<u32>) {
    let bytes = std::hint::black_box([0; 32 << 10]);
    greenroom::yield_now().await;
    std::hint::black_box(bytes);
}

struct Large([u8; 32 << 10]);

impl Actor for Large {
    type Message = u32;

    async fn handle(&mut self, _number: u32, _cx: &mut Context<u32>) {
        self.0[0] += 1;
    }
}

/// Returns the names in the lines about the creation of actors.
fn created(lines: &[String]) -> Vec<&str> {
    let created = lines.iter().filter(|line| line.starts_with('+'));
    created
        .map(|line| {
            let (subject, _) = line.split_once(" - ").unwrap();
            subject.split_once('>').unwrap().1
        })
        .collect()
}

#[test]
fn an_actor_without_a_name_is_called_after_its_function_or_type() {
    let lines = lines_of(async {
        spawn!(served(_)).detach();
        actor(served).spawn().detach();
        spawn!(Counter).detach();
        spawn!(Bag(vec![1])).detach();
        Counter.into_builder().spawn().detach();
        spawn!(|_cx: Context<u32>| async {}).detach();
        spawn!(served(_), name = "own name").detach();
    });
    let outer = "an_actor_without_a_name_is_called_after_its_function_or_type";
    assert_eq!(
        created(&lines),
        [
            "served", "served", "Counter", "Bag", "Counter", outer, "own name"
        ]
    );
}

#[test]
fn a_large_actor_without_a_name_is_called_after_its_function_or_type() {
    let lines = lines_of(async {
        spawn!(large(_)).detach();
        spawn!(large(_), restart = Restarts::on_fault()).detach();
        spawn!(Large([0; 32 << 10])).detach();
    });
    assert_eq!(created(&lines), ["large", "large", "Large"]);
}

#[test]
fn an_actor_that_is_restarted_has_the_same_name() {
    let lines = lines_of(async {
        let rules = || Restarts::on_fault().intensity(1, Duration::from_secs(1));
        spawn!(served(_), restart = rules()).detach();
        spawn!(served(_), name = "own", restart = rules()).detach();
        spawn!(Again, restart = Restarts::on_fault()).detach();
    });
    assert_eq!(created(&lines), ["served", "own", "Again"]);
}

#[test]
fn messages_are_called_after_their_type_without_paths_or_by_their_label() {
    #[derive(Clone)]
    enum Order {
        Tea,
        Cake(u32),
    }
    fn label(order: &Order) -> &'static str {
        match order {
            Order::Tea => "Tea",
            Order::Cake(0) => panic!("no cake"),
            Order::Cake(_) => "Cake",
        }
    }
    let lines = lines_of(async {
        let waiter = |mut cx: Context<Order>| async move { while cx.recv().await.is_some() {} };
        for waiter in [
            actor(waiter).spawn(),
            actor(waiter).label(label).spawn(),
            spawn!(waiter, label = label),
        ] {
            for order in [Order::Tea, Order::Cake(2), Order::Cake(0)] {
                waiter.tell(order).unwrap();
            }
            waiter.join().await.unwrap();
        }
        let nested = |_cx: Context<Vec<Option<(u8, Order)>>>| async {};
        let _ = actor(nested).spawn().tell(Vec::new());
    });
    let sent = lines.iter().filter_map(|line| line.split_once("Sent "));
    let names: Vec<_> = sent
        .map(|(_, rest)| rest.split_once(" to").unwrap().0)
        .collect();
    let labels = ["Tea", "Cake", "(its label panicked)"];
    let types = ["Order"; 3];
    let expected: Vec<_> = [types, labels, labels].concat();
    assert_eq!(names[..9], expected);
    assert_eq!(names[9], "Vec<Option<(u8, Order)>>");
}

struct Book(u32);

greenroom::handlers! {
    impl Book as BookAddress, BookMessage {
        fn add(&mut self, pages: u32) {
            self.0 += pages;
        }

        fn pages(&self, cx: &mut Context<BookMessage>) -> u32 {
            cx.send_after(Duration::from_secs(1), BookMessage::r#loop()).detach();
            self.0
        }

        fn r#loop(&mut self) {}
    }
}

async fn reads_a_book(label: Option<fn(&BookMessage) -> &'static str>) {
    let builder = Book(0).into_builder().name("book");
    let builder = match label {
        Some(label) => builder.label(label),
        None => builder,
    };
    let handle = builder.spawn();
    let book = BookAddress::from(handle.address());
    book.add(3).tell().unwrap();
    assert_eq!(book.pages().await, Ok(3));
    greenroom::time::sleep(Duration::from_secs(2)).await;
    drop(book);
    handle.join().await.unwrap();
}

/// Returns the messages that the actor `book` has received.
fn received(lines: &[String]) -> Vec<&str> {
    let received = lines.iter().filter_map(|line| line.split_once("Received "));
    received
        .map(|(_, rest)| rest.split_once(" from").unwrap().0)
        .collect()
}

#[test]
fn messages_of_handlers_are_called_after_their_handlers_unless_they_have_a_label() {
    let lines = lines_of(reads_a_book(None));
    assert_eq!(received(&lines), ["add", "pages", "loop"]);
    assert!(
        lines.iter().any(|line| line.contains("Sent add to")),
        "{lines:?}"
    );
    let lines = lines_of(reads_a_book(Some(|_| "page")));
    assert_eq!(received(&lines), ["page"; 3]);
    // An empty name stands for that of the type.
    let lines = lines_of(reads_a_book(Some(|_| "")));
    assert_eq!(received(&lines), ["BookMessage"; 3]);
}

#[test]
fn messages_of_handlers_are_called_after_their_handlers_in_the_trace_of_a_simulation() {
    let run = Simulated::new(1).whole_turns().try_run(async {
        reads_a_book(None).await;
        panic!("bomb");
    });
    let failure = run.unwrap_err();
    for part in [
        r#"sends #1 add to "book" #1"#,
        "gets #1 add from main",
        "#2 pages",
        "gets loop from a source of its own",
    ] {
        assert!(failure.trace().contains(part), "{part}: {failure}");
    }
}

#[test]
fn the_state_of_an_actor_is_behind_its_name() {
    let lines = lines_of(async {
        let door = |mut cx: Context<&'static str>| async move {
            while let Some(state) = cx.recv().await {
                cx.trace_state(state);
            }
        };
        let door = actor(door).name("door").spawn();
        for state in ["OPEN", "SHUT"] {
            door.tell(state).unwrap();
        }
        door.join().await.unwrap();
    });
    let subjects = lines.iter().filter(|line| line.contains("door"));
    let subjects: Vec<_> = subjects
        .map(|line| line.split(" - ").next().unwrap())
        .collect();
    assert_eq!(
        subjects,
        [
            "+ <1>door",
            "< <1>door",
            "< <1>door[OPEN]",
            "> <1>door[SHUT]",
            "X <1>door[SHUT]"
        ]
    );
}

#[test]
fn control_characters_are_escaped_in_every_part_of_a_line() {
    let lines = lines_of(async {
        let evil = |mut cx: Context<u32>| async move {
            cx.trace_state("a\tb");
            cx.recv().await;
            greenroom::trace::note!(Level::Console, "\x1b[2J\u{9b}", n = "1\r2\0");
            panic!("x\ny");
        };
        let evil = actor(evil).name("a\nb").label(|_| "m\x07ü").spawn();
        evil.tell(1).unwrap();
        evil.join().await.unwrap_err();
    });
    let of_evil: Vec<_> = lines.iter().filter(|line| line.contains("<1>a")).collect();
    assert_eq!(
        of_evil,
        [
            r"+ <1>a\nb - Created by <0>",
            r"< <1>a\nb[a\tb] - Received m\u{7}ü from <0>",
            r"^ <1>a\nb[a\tb] - \u{1b}[2J\u{9b} (n=1\r2\u{0})",
            r"! <1>a\nb[a\tb] - Fault: panicked: x\ny",
            r"X <1>a\nb[a\tb] - Destroyed",
        ]
    );
}

#[test]
fn the_time_of_a_simulation_is_that_of_its_clock() {
    let (builder, memory) = traced(Level::Console);
    let simulated = builder.policy(Simulated::new(1));
    simulated.build().unwrap().block_on(async {
        greenroom::time::sleep(Duration::from_millis(90_061_002)).await;
        greenroom::trace::note!(Level::Console, "late");
    });
    let (_, line) = memory
        .text()
        .split_once("] ")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(line, "1970-01-02T01:01:01.002 ^ <00000000> - late\n");
}
