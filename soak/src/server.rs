//! The process `server`: actors behind HTTP.

use std::time::Duration;

use greenroom::supervise::Restarts;
use greenroom::{Context, Reply, Runtime, actor};
use greenroom_http::Server;
use serde::{Deserialize, Serialize};

use crate::book::{Book, Letter};
use crate::life;
use crate::report::Tallies;

/// The questions that came over HTTP. Those who ask are elsewhere.
static SERVED: Book = Book::new("served requests");

/// No limit of restarts.
const HOUR: Duration = Duration::from_secs(3600);

/// How often the end of the load is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// A request whose answer is the sum.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Addition {
    pub a: u64,
    pub b: u64,
    /// Its actor panics.
    pub is_bomb: bool,
}

/// A request whose answer is a long text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recital {
    pub bytes: usize,
}

enum Served {
    Sum(Letter, Addition, Reply<u64>),
    Text(Letter, Recital, Reply<String>),
}

async fn serve(mut cx: Context<Served>) {
    while let Some(served) = cx.recv().await {
        match served {
            Served::Sum(mut letter, addition, reply) => {
                letter.take();
                if addition.is_bomb {
                    SERVED.fault(1);
                    life::inject_panic();
                }
                letter.handled();
                reply.send(addition.a + addition.b);
            }
            Served::Text(letter, recital, reply) => {
                letter.handled();
                reply.send("la".repeat(recital.bytes / 2));
            }
        }
    }
}

fn undelivered(served: Served) {
    match served {
        Served::Sum(letter, ..) | Served::Text(letter, ..) => letter.undelivered(),
    }
}

/// Serves at an address to the order to end.
pub fn live(address: &str) {
    let runtime = Runtime::builder().workers(2).on_fault(|_| {});
    let runtime = runtime.driver(greenroom_http::driver());
    let runtime = runtime.build().expect("a runtime");
    runtime.block_on(async {
        let rules = Restarts::on_fault().intensity(u32::MAX, HOUR);
        let builder = actor(serve).restart(rules).on_undelivered(undelivered);
        let handle = builder.spawn();
        let sum = |question, reply| Served::Sum(SERVED.message(), question, reply);
        let text = |question, reply| Served::Text(SERVED.message(), question, reply);
        let server = Server::bind(address)
            .on("Addition", &handle, sum)
            .on("Recital", &handle, text);
        let server = server.listen().await.expect("the address is free");
        life::begin(tallies);
        while !life::ends() {
            greenroom::time::sleep(LOOK).await;
        }
        server.stop().await;
        handle.stop();
        let _ = handle.join().await;
    });
    life::end(SERVED.read().uneven());
}

fn tallies() -> Tallies {
    let mut tallies = Tallies::new();
    SERVED.read().add_to(&mut tallies);
    tallies
}
