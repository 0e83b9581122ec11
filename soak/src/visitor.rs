//! The process `visitor`: requests to the server, over connections that are kept.
//!
//! Two threads beside them are bad clients. One reads its answers slowly, and the other one ends its
//! connections in the middle of a request or of an answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use greenroom::{Address, AskError, Reply, Runtime, concurrently};
use greenroom_http::Client;

use crate::life;
use crate::pace::{Pace, REQUESTS};
use crate::report::Tallies;
use crate::server::Addition;

/// The requests that were sent, and what became of them.
static SENT: AtomicU64 = AtomicU64::new(0);
static ANSWERED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);

/// Answers that are wrong.
static MISTAKEN: AtomicU64 = AtomicU64::new(0);

/// Long answers that were read slowly, to their end or not.
static SLOW: AtomicU64 = AtomicU64::new(0);
static CUT: AtomicU64 = AtomicU64::new(0);

/// Connections that were ended in the middle.
static BROKEN: AtomicU64 = AtomicU64::new(0);

const CONNECTIONS: usize = 16;

/// The requests of a connection at once are as many as there are connections.
const BURST: usize = 16;

/// One request of so many lets its actor panic.
const BOMB: u32 = 2000;

/// The bytes of a long answer, for which sockets have no room, and how many are read at a time.
const LONG: usize = 1_000_000;
const PIECE: usize = 32_768;

/// The pauses of bad clients.
const PAUSE: Duration = Duration::from_millis(20);
const REST: Duration = Duration::from_millis(200);

/// The server may have been killed, or stopped for a while.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends requests to the order to end.
pub fn live(address: &str) {
    life::begin(tallies);
    let bad: [fn(&str); 2] = [reads_slowly, breaks_off];
    let bad = bad.map(|client| {
        let address = address.to_owned();
        thread::spawn(move || {
            while !life::ends() {
                client(&address);
                thread::sleep(REST);
            }
        })
    });
    let runtime = Runtime::builder().workers(2);
    let runtime = runtime.driver(greenroom_http::driver());
    let runtime = runtime.build().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(address).connections(CONNECTIONS);
        let client = client.timeout(PATIENCE).open().expect("an address");
        let far = client.address::<Addition, u64>("Addition");
        let tasks = (0..2).map(|seed| greenroom::spawn(visit(far.clone(), Rng::with_seed(seed))));
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.await;
        }
    });
    for client in bad {
        let _ = client.join();
    }
    life::end(uneven());
}

/// Sends half of all requests.
async fn visit(far: Address<(Addition, Reply<u64>)>, mut rng: Rng) {
    let mut pace = Pace::new(REQUESTS / 2);
    while !life::ends() {
        let asked = (0..BURST).map(|_| {
            let (a, b) = (rng.u64(..1 << 32), rng.u64(..1 << 32));
            let is_bomb = rng.u32(..BOMB) == 0;
            add(&SENT);
            let far = &far;
            async move {
                let question = Addition { a, b, is_bomb };
                let outcome = far.ask(move |reply| (question, reply)).await;
                count(outcome, a + b);
            }
        });
        let asked: Vec<_> = asked.collect();
        concurrently(asked).await;
        pace.done(BURST as u64).await;
    }
}

fn count(outcome: Result<u64, AskError>, sum: u64) {
    match outcome {
        Ok(answer) => {
            add(&ANSWERED);
            if answer != sum {
                add(&MISTAKEN);
            }
        }
        Err(AskError::Refused(_) | AskError::Closed(_)) => add(&REFUSED),
        Err(_) => add(&FAILED),
    }
}

fn add(count: &AtomicU64) {
    // Relaxed: counts are compared after the end of all that counts.
    count.fetch_add(1, Ordering::Relaxed);
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Connects, and sends the beginning of a request for a long answer.
fn begins(address: &str, bytes: usize) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = format!("GET /Recital?bytes={LONG} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let sent = &head.as_bytes()[..bytes.min(head.len())];
    stream.write_all(sent).ok()?;
    Some(stream)
}

/// Reads a long answer slowly.
fn reads_slowly(address: &str) {
    let Some(mut stream) = begins(address, usize::MAX) else {
        return;
    };
    let (mut piece, mut read) = (vec![0; PIECE], 0);
    while read < LONG {
        thread::sleep(PAUSE);
        match stream.read(&mut piece) {
            Ok(bytes) if bytes > 0 => read += bytes,
            _ => return add(&CUT),
        }
    }
    add(&SLOW);
}

/// Ends a connection after half a request, or after the beginning of an answer.
fn breaks_off(address: &str) {
    let is_half = get(&BROKEN).is_multiple_of(2);
    let bytes = if is_half { 20 } else { usize::MAX };
    if let Some(mut stream) = begins(address, bytes) {
        if !is_half {
            let _ = stream.read(&mut [0; 100]);
        }
        add(&BROKEN);
    }
}

fn uneven() -> Vec<String> {
    let [sent, answered, refused, failed] = [&SENT, &ANSWERED, &REFUSED, &FAILED].map(get);
    let mut sentences = Vec::new();
    if sent != answered + refused + failed {
        sentences.push(format!(
            "visitor: {sent} requests, and {answered} answered, {refused} refused, {failed} failed"
        ));
    }
    match get(&MISTAKEN) {
        0 => {}
        mistaken => sentences.push(format!("visitor: {mistaken} answers were wrong")),
    }
    sentences
}

fn tallies() -> Tallies {
    let counts = [
        ("requests", &SENT),
        ("answered", &ANSWERED),
        ("refused", &REFUSED),
        ("failed", &FAILED),
        ("read slowly", &SLOW),
        ("cut", &CUT),
        ("broken off", &BROKEN),
    ];
    counts
        .map(|(name, count)| (name.to_owned(), get(count)))
        .into()
}
