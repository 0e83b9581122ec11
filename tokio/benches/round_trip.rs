//! An ask and a tell in the ways in which greenroom and tokio share a program.
//!
//! Each round measures every way once, one after the other, so that a disturbance hits all of them.
//! Each measurement has runtimes of its own, since one that served a way before is another one. The
//! figures are medians of the rounds: nanoseconds of an ask in a loop, and of one of many tells
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

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Greenroom,
    /// A runtime of greenroom whose threads have entered tokio.
    Entered,
    Tokio,
}

struct Way {
    name: &'static str,
    caller: Place,
    actor: Place,
    /// The number of asks of a measurement.
    asks: u32,
}

const WAYS: [Way; 5] = [
    Way {
        name: "both on greenroom",
        caller: Place::Greenroom,
        actor: Place::Greenroom,
        asks: 20_000,
    },
    Way {
        name: "both on greenroom, which has entered tokio",
        caller: Place::Entered,
        actor: Place::Entered,
        asks: 20_000,
    },
    Way {
        name: "both on tokio",
        caller: Place::Tokio,
        actor: Place::Tokio,
        asks: 20_000,
    },
    Way {
        name: "caller on tokio, actor on greenroom",
        caller: Place::Tokio,
        actor: Place::Greenroom,
        asks: 1_000,
    },
    Way {
        name: "caller on greenroom, actor on tokio",
        caller: Place::Greenroom,
        actor: Place::Tokio,
        asks: 1_000,
    },
];

impl Way {
    /// Measures this way with new runtimes.
    fn measure<F>(&self, call: impl Fn(Address<Word>) -> F) -> f64
    where
        F: Future<Output = f64> + Send + 'static,
    {
        let mut tokio = Builder::new_multi_thread();
        let tokio = tokio.worker_threads(WORKERS).enable_all().build().unwrap();
        let mut runtime = Runtime::builder().workers(WORKERS);
        if [self.caller, self.actor].contains(&Place::Entered) {
            let handle = tokio.handle().clone();
            runtime = runtime.around_threads(move |run| {
                let _guard = handle.enter();
                run()
            });
        }
        let runtime = runtime.build().unwrap();
        let actor = match self.actor {
            Place::Tokio => spawn!(sum(_), on = tokio.handle()),
            Place::Greenroom | Place::Entered => spawn!(sum(_), on = &runtime),
        };
        // Before the measurement, both have run on their threads.
        self.run(&runtime, &tokio, asks(actor.address(), 100));
        self.run(&runtime, &tokio, call(actor.address()))
    }

    /// Runs the future in a task of the caller's runtime.
    fn run<F>(&self, runtime: &Runtime, tokio: &Tokio, future: F) -> f64
    where
        F: Future<Output = f64> + Send + 'static,
    {
        match self.caller {
            Place::Tokio => tokio.block_on(tokio.spawn(future)).unwrap(),
            Place::Greenroom | Place::Entered => runtime.block_on(runtime.spawn(future)),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(what: &str, measure: impl Fn(&Way) -> f64) {
    let mut figures = vec![Vec::new(); WAYS.len()];
    for _ in 0..ROUNDS {
        for (way, figures) in WAYS.iter().zip(&mut figures) {
            figures.push(measure(way));
        }
    }
    println!("\n{what:44}       ns    ratio");
    for (way, own) in WAYS.iter().zip(&figures) {
        let ratios = own.iter().zip(&figures[0]).map(|(own, first)| own / first);
        let ratio = median(ratios.collect());
        println!("{:44} {:8.0} {ratio:8.2}", way.name, median(own.clone()));
    }
}

fn main() {
    print("ask and answer", |way| {
        way.measure(|actor| asks(actor, way.asks))
    });
    print("tell", |way| way.measure(|actor| tells(actor, 50_000)));
}
