//! The cost of deadlock detection: an ask with the option and without it.
//!
//! `cargo bench --bench deadlocks` prints both in nanoseconds: the medians of alternating runs.

use std::time::Instant;

use greenroom::{Context, Reply, Runtime, spawn};

const ROUNDS: usize = 11;

async fn echo(mut cx: Context<Reply<()>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(());
    }
}

/// Returns the nanoseconds that an ask takes on one worker.
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
    // `cargo test --benches` runs this for a moment only.
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
