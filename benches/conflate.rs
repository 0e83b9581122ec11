//! The throughput of a mailbox that conflates, beside a plain bounded one.
//!
//! `cargo bench --bench conflate` prints how many million messages of 1000 keys a task sends in a
//! second to an actor on another worker: the medians of alternating runs. Both mailboxes have room
//! for 1000. The goal is that conflating takes at most half of the rate.

use std::time::Instant;

use greenroom::{Context, Handle, Runtime, actor};

const ROUNDS: usize = 21;
const KEYS: usize = 1000;

/// A key and a number.
type Entry = (u64, u64);

/// Returns the last number.
async fn last(mut cx: Context<Entry>) -> u64 {
    let mut last = 0;
    while let Some((_, number)) = cx.recv().await {
        last = last.max(number);
    }
    last
}

/// Returns how many million messages were sent and received in a second.
async fn measure(actor: Handle<Entry, u64>, messages: u64) -> f64 {
    let begun = Instant::now();
    for number in 1..=messages {
        let sent = actor.send((number % KEYS as u64, number)).await;
        assert!(sent.is_ok(), "the actor lives");
    }
    let last = actor.join().await.expect("it returns");
    assert_eq!(last, messages, "the newest message is received");
    messages as f64 / begun.elapsed().as_secs_f64() / 1e6
}

fn main() {
    // `cargo test --benches` runs this for a moment only.
    let messages = if std::env::args().any(|arg| arg == "--bench") {
        2_000_000
    } else {
        2_000
    };
    let runtime = Runtime::builder().workers(2).build();
    let runtime = runtime.expect("a runtime with two workers");
    let rates = runtime.spawn(async move {
        let mut rates = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            let plain = actor(last).capacity(KEYS).spawn();
            rates[0].push(measure(plain, messages).await);
            let conflates = actor(last).capacity(KEYS).conflate(|entry: &Entry| entry.0);
            rates[1].push(measure(conflates.spawn(), messages).await);
        }
        rates
    });
    let [plain, conflates] = runtime.block_on(rates).map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[ROUNDS / 2]
    });
    let ratio = conflates / plain;
    println!("plain {plain:.1} M/s, conflating {conflates:.1} M/s, {ratio:.2} x, goal 0.5 x");
}
