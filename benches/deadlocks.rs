//! What it costs to have deadlocks detected: an ask, with the option and without.
//!
//! `cargo bench --bench deadlocks` prints both in nanoseconds, the medians of runs in turns.

use std::time::Instant;

use greenroom::{Context, Reply, Runtime, spawn};

const ROUNDS: usize = 11;

async fn echo(mut cx: Context<Reply<()>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(());
    }
}

/// How long an ask takes, in nanoseconds, on one worker.
fn ask(detect: bool, asks: u32) -> f64 {
    let builder = Runtime::builder().workers(1).detect_deadlocks(detect);
    let runtime = builder.build().expect("a runtime with one worker");
    runtime.block_on(async move {
        let asker = greenroom::spawn(async move {
            let echo = spawn!(echo(_));
            let begun = Instant::now();
            for _ in 0..asks {
                echo.ask(|reply| reply).await.expect("it answers");
            }
            begun.elapsed()
        });
        asker.await.as_nanos() as f64 / f64::from(asks)
    })
}

fn main() {
    // Of `cargo test --benches`: a moment.
    let asks = if std::env::args().any(|arg| arg == "--bench") {
        300_000
    } else {
        1000
    };
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (detect, taken) in [false, true].into_iter().zip(&mut taken) {
            taken.push(ask(detect, asks));
        }
    }
    let [without, with] = taken.map(|mut taken| {
        taken.sort_by(f64::total_cmp);
        taken[ROUNDS / 2]
    });
    println!("an ask: {without:.0} ns");
    println!(
        "with detect_deadlocks: {with:.0} ns, {:.2} x",
        with / without
    );
}
