//! The speed of the simulator: turns of tasks in a second, with a trace of the last 200 steps.
//!
//! `cargo bench --bench simulation` prints the medians of a few rounds. It fails if yielding tasks
//! or rings of actors miss the goal. `cargo test --benches` runs it for a moment, and nothing is
//! judged.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::future::join_all;
use greenroom::policy::Simulated;
use greenroom::{Address, Context, Handle, Reply, spawn, time};

/// The minimum number of turns in a second.
const BAR: f64 = 1e6;
const ROUNDS: u64 = 5;
/// The number of tasks or actors in a case: at most this many are ready.
const MANY: usize = 100;
/// The number of actors in a ring.
const RING: usize = 10;

/// Runs tasks that yield, `times` times in total.
async fn yields(times: usize) {
    let tasks = (0..MANY).map(|_| {
        greenroom::spawn(async move {
            for _ in 0..times / MANY {
                greenroom::yield_now().await;
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
}

enum Seat {
    Next(Address<Seat>),
    /// A token, and the hops that it has left.
    Token(usize),
}

async fn seat(mut cx: Context<Seat>) {
    let mut next = None;
    while let Some(message) = cx.recv().await {
        match message {
            Seat::Next(address) => next = Some(address),
            Seat::Token(left) => {
                let Some(next) = next.as_ref().filter(|_| left > 0) else {
                    break;
                };
                // The next actor may have ended in the last round.
                let _ = next.tell(Seat::Token(left - 1));
            }
        }
    }
}

/// Runs rings of actors, each of which passes a token round.
async fn rings(times: usize) {
    let ring = |_| {
        let seats: Vec<Handle<Seat, ()>> = (0..RING).map(|_| spawn!(seat(_))).collect();
        for (at, seat) in seats.iter().enumerate() {
            let next = seats[(at + 1) % RING].address();
            seat.tell(Seat::Next(next)).expect("the actor is open");
        }
        let hops = times * RING / MANY;
        seats[0].tell(Seat::Token(hops)).expect("the actor is open");
        seats
    };
    let seats: Vec<_> = (0..MANY / RING).flat_map(ring).collect();
    // An actor that ends drops the address of the next one, so the whole ring ends.
    join_all(seats.into_iter().map(Handle::join)).await;
}

async fn echo(mut cx: Context<Reply<()>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(());
    }
}

/// Runs tasks that each ask an actor, with two turns for each question.
async fn asks(times: usize) {
    let tasks = (0..MANY / 2).map(|_| {
        greenroom::spawn(async move {
            let echo = spawn!(echo(_));
            for _ in 0..times / MANY {
                echo.ask(|reply| reply).await.expect("it answers");
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
}

/// Runs tasks that sleep.
async fn timers(times: usize) {
    let tasks = (0..MANY as u64).map(|number| {
        greenroom::spawn(async move {
            for _ in 0..times / MANY {
                time::sleep(Duration::from_micros(100 + number)).await;
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
}

/// Returns the number of turns in a second.
fn measure<F: Future>(simulated: Simulated, future: F) -> f64 {
    let begun = Instant::now();
    let run = simulated.steps(u64::MAX).try_run(future);
    run.expect("nothing in it fails").steps as f64 / begun.elapsed().as_secs_f64()
}

/// Returns how many seeds of a program run in a second, in which 50 tasks ask one question each.
fn explored(seeds: u64) -> f64 {
    let begun = Instant::now();
    greenroom::sim::explore(0..seeds, |_| asks(MANY));
    seeds as f64 / begun.elapsed().as_secs_f64()
}

fn median(mut measured: Vec<f64>) -> f64 {
    measured.sort_by(f64::total_cmp);
    measured[measured.len() / 2]
}

fn main() -> ExitCode {
    // `cargo test --benches` runs this for a moment only.
    let full = std::env::args().any(|arg| arg == "--bench");
    let times = if full { 2_000_000 } else { 10_000 };
    type Cases = [(&'static str, bool, fn(Simulated, usize) -> f64); 4];
    let cases: Cases = [
        ("yields", true, |how, times| measure(how, yields(times))),
        ("rings", true, |how, times| measure(how, rings(times))),
        ("asks", false, |how, times| measure(how, asks(times))),
        ("timers", false, |how, times| measure(how, timers(times))),
    ];
    type Schedules = [(&'static str, fn(u64) -> Simulated); 2];
    let schedules: Schedules = [
        ("random", |seed| Simulated::new(seed).random()),
        ("priorities", |seed| {
            Simulated::new(seed).priorities(3, u64::MAX)
        }),
    ];
    println!("million turns a second");
    let mut missed = false;
    for (case, judged, run) in cases {
        let figures = schedules.map(|(name, how)| {
            let rounds = (0..ROUNDS).map(|seed| run(how(seed), times));
            let figure = median(rounds.collect());
            missed |= judged && figure < BAR;
            format!("{name} {:.2}", figure / 1e6)
        });
        println!("  {case:8} {}", figures.join("  "));
    }
    let seeds = if full { 10_000 } else { 100 };
    println!("seeds a second: {:.0}", explored(seeds));
    if full && missed {
        println!("the goal of a million is missed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
