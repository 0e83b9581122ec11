//! An ask and a tell in the ways in which greenroom and tokio share a program.
//!
//! Each round measures every way once, one after the other, so that a disturbance hits all of them.
//! The figures are medians of the rounds: nanoseconds of an ask in a loop, and of one of many tells
//! until all are handled. A ratio is the median of the ratios within the rounds. On a busy machine
//! the ways that wake threads are slower than on an idle one.

use std::future::Future;
use std::time::Instant;

use greenroom::{Address, Context, Reply, Runtime, spawn};
use tokio::runtime::{Builder, Runtime as Tokio};

const ROUNDS: usize = 21;
const WORKERS: usize = 2;

enum Word {
    Add(u64),
    Sum(Reply<u64>),
}

async fn sum(mut cx: Context<Word>) {
    let mut sum = 0;
    while let Some(word) = cx.recv().await {
        match word {
            Word::Add(number) => sum += number,
            Word::Sum(reply) => reply.send(sum),
        }
    }
}

/// Returns the nanoseconds of one ask.
async fn asks(actor: Address<Word>, count: u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        actor.ask(Word::Sum).await.unwrap();
    }
    begun.elapsed().as_nanos() as f64 / f64::from(count)
}

/// Returns the nanoseconds of one tell, until it is handled.
async fn tells(actor: Address<Word>, count: u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        actor.tell(Word::Add(1)).unwrap();
    }
    actor.ask(Word::Sum).await.unwrap();
    begun.elapsed().as_nanos() as f64 / f64::from(count)
}

/// Where the caller runs.
enum Caller<'a> {
    Greenroom(&'a Runtime),
    Tokio(&'a Tokio),
}

impl Caller<'_> {
    /// Runs the future in a task.
    fn run(&self, future: impl Future<Output = f64> + Send + 'static) -> f64 {
        match self {
            Caller::Greenroom(runtime) => runtime.block_on(runtime.spawn(future)),
            Caller::Tokio(tokio) => tokio.block_on(tokio.spawn(future)).unwrap(),
        }
    }
}

/// A way, and how many asks make a measurement.
struct Way<'a> {
    name: &'static str,
    caller: Caller<'a>,
    actor: Address<Word>,
    asks: u32,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(what: &str, ways: &[Way<'_>], measure: impl Fn(&Way<'_>) -> f64) {
    let mut figures = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (way, figures) in ways.iter().zip(&mut figures) {
            figures.push(measure(way));
        }
    }
    println!("\n{what:44}       ns    ratio");
    for (way, own) in ways.iter().zip(&figures) {
        let ratios = own.iter().zip(&figures[0]).map(|(own, first)| own / first);
        let ratio = median(ratios.collect());
        println!("{:44} {:8.0} {ratio:8.2}", way.name, median(own.clone()));
    }
}

fn main() {
    let tokio = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .unwrap();
    let plain = Runtime::builder().workers(WORKERS).build().unwrap();
    let handle = tokio.handle().clone();
    let entered = Runtime::builder()
        .workers(WORKERS)
        .around_threads(move |run| {
            let _guard = handle.enter();
            run()
        })
        .build()
        .unwrap();
    let on_plain = spawn!(sum(_), on = &plain);
    let on_entered = spawn!(sum(_), on = &entered);
    let on_tokio = spawn!(sum(_), on = tokio.handle());
    let way = |name, caller, actor, asks| Way {
        name,
        caller,
        actor,
        asks,
    };
    let (short, long) = (1_000, 20_000);
    let ways = [
        way(
            "both on greenroom",
            Caller::Greenroom(&plain),
            on_plain.address(),
            long,
        ),
        way(
            "both on greenroom, which has entered tokio",
            Caller::Greenroom(&entered),
            on_entered.address(),
            long,
        ),
        way(
            "both on tokio",
            Caller::Tokio(&tokio),
            on_tokio.address(),
            long,
        ),
        way(
            "caller on tokio, actor on greenroom",
            Caller::Tokio(&tokio),
            on_entered.address(),
            short,
        ),
        way(
            "caller on greenroom, actor on tokio",
            Caller::Greenroom(&entered),
            on_tokio.address(),
            short,
        ),
    ];
    print("ask and answer", &ways, |way| {
        way.caller.run(asks(way.actor.clone(), way.asks))
    });
    print("tell", &ways, |way| {
        way.caller.run(tells(way.actor.clone(), 50_000))
    });
}
