//! Latency of an echo actor beside two flooded actors for each worker, which are never idle and
//! take 1 µs for a message.
//!
//! The asking task runs on the same workers. The goal: 99 % of 10 000 replies arrive within 1 ms.

use std::time::{Duration, Instant};

use greenroom::{Address, Context, Reply, Runtime, spawn};

const WORKERS: usize = 2;
const ASKS: usize = 10_000;
/// The messages in flight between two flooded actors: far more than a batch.
const BALLS: usize = 1000;
const WORK: Duration = Duration::from_micros(1);
const BAR: Duration = Duration::from_millis(1);

struct Ball(Address<Ball>);

async fn flooded(mut cx: Context<Ball>) {
    let own = cx.downgrade();
    while let Some(Ball(from)) = cx.recv().await {
        let begun = Instant::now();
        while begun.elapsed() < WORK {
            std::hint::spin_loop();
        }
        if let Some(own) = own.upgrade() {
            // The partner may have been stopped.
            let _ = from.tell(Ball(own));
        }
    }
}

async fn echo(mut cx: Context<Reply<()>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(());
    }
}

fn main() {
    let builder = Runtime::builder().workers(WORKERS).grace(Duration::ZERO);
    let runtime = builder.build().expect("two threads can be started");
    for _ in 0..WORKERS {
        let pair = [(); 2].map(|()| spawn!(flooded(_), on = &runtime));
        for ball in 0..BALLS {
            let from = pair[1 - ball % 2].address();
            let told = pair[ball % 2].tell(Ball(from));
            assert!(told.is_ok(), "the actor is open");
        }
    }
    let echo = spawn!(echo(_), on = &runtime);
    let asking = runtime.spawn(async move {
        let mut taken = Vec::with_capacity(ASKS);
        for _ in 0..ASKS {
            let asked = Instant::now();
            echo.ask(|reply| reply).await.expect("it answers");
            taken.push(asked.elapsed());
        }
        taken
    });
    let mut taken = runtime.block_on(asking);
    taken.sort_unstable();
    let [p50, p99, max] = [ASKS / 2, ASKS * 99 / 100, ASKS - 1].map(|at| taken[at]);
    let met = if p99 <= BAR { "met" } else { "missed" };
    println!("p50 {p50:.1?}, p99 {p99:.1?}, max {max:.1?}; goal {BAR:?} {met}");
}
