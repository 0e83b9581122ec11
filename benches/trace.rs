//! Lines a second of a trace, beside those of the fmt layer of `tracing-subscriber`.
//!
//! The same actor writes the same notes to a file, once by each. The rounds take turns, and the
//! fastest of each counts. The goal: at least as many lines as the other.

use std::fs::File;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use greenroom::trace::{Level, Lines, note};
use greenroom::{Context, Runtime, actor};

const LINES: usize = 200_000;
const ROUNDS: usize = 5;

fn file() -> File {
    tempfile::tempfile().expect("a file can be created")
}

/// Runs an actor that calls `write` for each line, and returns how long that took.
fn timed(builder: greenroom::Builder, write: fn(usize)) -> Duration {
    let runtime = builder.workers(1).build().expect("a thread can be started");
    let writes = move |_cx: Context<()>| async move {
        let begun = Instant::now();
        (0..LINES).for_each(write);
        begun.elapsed()
    };
    let writes = actor(writes).name("writes").on(&runtime).spawn();
    let took = runtime.block_on(writes.join());
    took.expect("the actor returns")
}

fn lines() -> Duration {
    let lines = Lines::to(file(), Level::Console);
    let took = timed(Runtime::builder().tracer(lines.clone()), |number| {
        note!(Level::Console, "a line", number = number);
    });
    assert_eq!(lines.dropped(), 0);
    took
}

fn fmt() -> Duration {
    timed(Runtime::builder(), |number| {
        tracing::info!(number, "a line")
    })
}

fn main() {
    let fmt_layer = tracing_subscriber::fmt().with_ansi(false);
    fmt_layer.with_writer(Mutex::new(file())).init();
    let (mut own, mut other) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        own = own.min(lines());
        other = other.min(fmt());
    }
    let a_second = |took: Duration| LINES as f64 / took.as_secs_f64();
    let ratio = a_second(own) / a_second(other);
    let met = if ratio >= 1.0 { "met" } else { "missed" };
    println!(
        "lines a second: {:.0}, fmt {:.0}; ratio {ratio:.2}, goal 1.00 {met}",
        a_second(own),
        a_second(other),
    );
}
