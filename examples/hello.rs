//! This example shows an actor that receives messages, answers an ask, is stopped, and returns a
//! result.
//!
//! It prints `the total is 42`.

use greenroom::{Context, Reply, spawn};

enum Tally {
    Add(u64),
    Total(Reply<u64>),
}

async fn tally(mut cx: Context<Tally>, start: u64) -> u64 {
    let mut total = start;
    while let Some(message) = cx.recv().await {
        match message {
            Tally::Add(n) => total += n,
            Tally::Total(reply) => reply.send(total),
        }
    }
    total
}

fn main() {
    greenroom::run(async {
        let tally = spawn!(tally(_, 40));
        tally.tell(Tally::Add(2)).unwrap();
        println!("the total is {}", tally.ask(Tally::Total).await.unwrap());
        tally.stop();
        assert_eq!(tally.join().await.unwrap(), 42);
    });
}
