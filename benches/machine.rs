//! The cost of a state machine: a message to one, and to the same states written as a loop.
//!
//! `cargo bench --bench machine` prints it in nanoseconds for messages without an answer, which
//! come in bursts, and for asks: the medians of alternating runs. The goal is that a machine takes
//! at most 5 % more.

use std::time::Instant;

use greenroom::machine::{Machine, Next};
use greenroom::{Address, Context, Reply, Runtime, spawn};

const ROUNDS: usize = 41;

/// Messages that are sent before the actor runs: a state lasts for eight of them, and is the first
/// one again after all.
const BURST: u64 = 1024;

enum Message {
    Push,
    Add(u64),
    Total(Reply<u64>),
}

enum State {
    Off,
    On,
}

struct Sum(u64);

impl Machine for Sum {
    type State = State;
    type Message = Message;
    type Value = ();

    async fn on(
        &mut self,
        state: &State,
        message: Message,
        _cx: &mut Context<Message>,
    ) -> Next<Self> {
        match (state, message) {
            (State::Off, Message::Push) => Next::To(State::On),
            (State::On, Message::Push) => Next::To(State::Off),
            (State::Off, Message::Add(_)) => Next::Stay,
            (State::On, Message::Add(number)) => {
                self.0 += number;
                Next::Stay
            }
            (State::Off | State::On, Message::Total(reply)) => {
                reply.send(self.0);
                Next::Stay
            }
        }
    }
}

/// Does the same by hand.
async fn by_hand(mut cx: Context<Message>) {
    let (mut state, mut sum) = (State::Off, 0);
    while let Some(message) = cx.recv().await {
        match (&state, message) {
            (State::Off, Message::Push) => state = State::On,
            (State::On, Message::Push) => state = State::Off,
            (State::Off, Message::Add(_)) => {}
            (State::On, Message::Add(number)) => sum += number,
            (State::Off | State::On, Message::Total(reply)) => reply.send(sum),
        }
    }
}

async fn total(of: &Address<Message>) -> u64 {
    of.ask(Message::Total).await.expect("it answers")
}

/// Returns the nanoseconds that a message and an ask take, and checks the sum.
async fn measure(actor: Address<Message>, bursts: u64) -> [f64; 2] {
    let begun = Instant::now();
    for _ in 0..bursts {
        for number in 0..BURST {
            let message = match number % 8 {
                0 => Message::Push,
                _ => Message::Add(number),
            };
            assert!(actor.tell(message).is_ok(), "the actor lives");
        }
        total(&actor).await;
    }
    let told = begun.elapsed();
    let is_on = |number: &u64| matches!(number % 16, 1..8);
    let of_a_burst: u64 = (0..BURST).filter(is_on).sum();
    assert_eq!(total(&actor).await, bursts * of_a_burst, "wrong states");
    let (begun, asks) = (Instant::now(), bursts * BURST / 10);
    for _ in 0..asks {
        total(&actor).await;
    }
    let asked = begun.elapsed();
    [(told, bursts * BURST), (asked, asks)]
        .map(|(time, count)| time.as_nanos() as f64 / count as f64)
}

fn main() {
    // `cargo test --benches` runs this for a moment only.
    let bursts = if std::env::args().any(|arg| arg == "--bench") {
        200
    } else {
        2
    };
    let runtime = Runtime::builder().workers(1).build();
    let runtime = runtime.expect("a runtime with one worker");
    let taken = runtime.spawn(async move {
        let mut taken = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            let by_hand = measure(spawn!(by_hand(_)).address(), bursts).await;
            let machine = measure(Sum(0).into_builder(State::Off).spawn().address(), bursts).await;
            for (taken, time) in taken.iter_mut().zip([by_hand, machine].as_flattened()) {
                taken.push(*time);
            }
        }
        taken
    });
    let [told, asked, told_machine, asked_machine] = runtime.block_on(taken).map(|mut taken| {
        taken.sort_by(f64::total_cmp);
        taken[ROUNDS / 2]
    });
    for (what, by_hand, machine) in [
        ("a message", told, told_machine),
        ("an ask", asked, asked_machine),
    ] {
        let ratio = machine / by_hand;
        println!("{what}: by hand {by_hand:.1} ns, machine {machine:.1} ns, {ratio:.3} x");
    }
}
