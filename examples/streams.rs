//! This example shows streams: a `Context` is one, and an actor can read others beside its mailbox.
//!
//! It uses `attach`, `on_return`, a `Context` with the adapters of `futures`, and `Address::map`,
//! which gives each sender an address of its own message type. It prints:
//!
//! ```text
//! the longest line has 18 characters
//! 10 readings, the sum is 55
//! ```

use futures::{StreamExt, stream};
use greenroom::{Address, Context, Fault, spawn};

/// Reads the mailbox as a stream, to its end.
async fn longest(cx: Context<String>) -> usize {
    cx.map(|line| line.chars().count())
        .fold(0, |longest, length| async move { longest.max(length) })
        .await
}

enum Event {
    Reading(u32),
    Label(&'static str),
    Calibrated(Result<u32, Fault>),
}

/// Reads its sensor and its mailbox while a future computes a value for it.
async fn station(mut cx: Context<Event>) -> String {
    cx.attach(stream::iter(1..=9).map(Event::Reading)).detach();
    cx.on_return(async { 10 }, Event::Calibrated);
    let (mut readings, mut sum, mut label) = (0, 0, "");
    // The actor is closed when no address is left and its sources have ended.
    while let Some(event) = cx.recv().await {
        match event {
            Event::Reading(value) | Event::Calibrated(Ok(value)) => {
                readings += 1;
                sum += value;
            }
            Event::Label(text) => label = text,
            Event::Calibrated(Err(fault)) => println!("not calibrated: it {fault}"),
        }
    }
    format!("{readings} {label}, the sum is {sum}")
}

fn main() {
    greenroom::run(async {
        let reader = spawn!(longest(_));
        for line in ["short", "the longest of all", "longer"] {
            reader.tell(line.to_owned()).expect("the reader is open");
        }
        let longest = reader.join().await.expect("it ends by itself");
        println!("the longest line has {longest} characters");

        let station = spawn!(station(_));
        let labels: Address<&'static str> = station.map(Event::Label);
        labels.tell("readings").expect("the station is open");
        drop(labels);
        println!("{}", station.join().await.expect("it ends by itself"));
    });
}
