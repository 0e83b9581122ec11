//! The four variants: what answers a request for a table.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use greenroom::spool::Spool;
use greenroom::{Address, Context, Refusal, Reply, spawn};
use serde::Deserialize;

/// A table of this many numbers is the largest one that is made.
const NUMBERS_MAX: u64 = 1_000_000;

/// The size of a table: `y` rows of `x` numbers.
#[derive(Deserialize)]
pub struct Xy {
    #[serde(default = "one")]
    x: u32,
    #[serde(default = "one")]
    y: u32,
}

pub type Table = Vec<Vec<f64>>;

/// A size, with the right to answer it.
pub type Request = (Xy, Reply<Table>);

#[derive(Clone, Copy, PartialEq)]
pub enum Variant {
    /// One actor answers all requests.
    Alone,
    /// An actor is made for each request.
    Each,
    /// All requests are forwarded to one worker.
    Worker,
    /// A spool shares the requests among its workers.
    Spool,
}

/// The parameters of the spool. Their defaults are those of layer_cake.
pub struct SpoolOptions {
    pub object_count: usize,
    pub size_of_queue: Option<usize>,
    pub responsiveness: Option<Duration>,
    pub busy_pass_rate: u32,
    pub stand_down: Option<Duration>,
}

impl Default for SpoolOptions {
    fn default() -> Self {
        SpoolOptions {
            object_count: 8,
            size_of_queue: None,
            responsiveness: Some(Duration::from_secs(5)),
            busy_pass_rate: 10,
            stand_down: Some(Duration::from_secs(30)),
        }
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(number: &str) -> Result<Self, String> {
        match number {
            "1" => Ok(Variant::Alone),
            "2" => Ok(Variant::Each),
            "3" => Ok(Variant::Worker),
            "4" => Ok(Variant::Spool),
            other => Err(format!("{other:?} is no variant from 1 to 4")),
        }
    }
}

fn one() -> u32 {
    1
}

/// Names the message of all actors in a trace.
fn label(_: &Request) -> &'static str {
    "Xy"
}

/// Returns a table of random numbers from 0 to 1.
fn texture(x: u32, y: u32) -> Table {
    let row = |_| (0..x).map(|_| fastrand::f64()).collect();
    (0..y).map(row).collect()
}

fn answer((Xy { x, y }, reply): Request) {
    // A row without numbers takes memory, too.
    if u64::from(x.max(1)) * u64::from(y) > NUMBERS_MAX {
        let explanation = format!("{x} x {y} is more than {NUMBERS_MAX} numbers");
        return reply.refuse(Refusal::new("table too large", explanation).with_error_code(400));
    }
    // A client that is gone needs no table.
    if reply.is_wanted() {
        reply.send(texture(x, y));
    }
}

/// Answers requests one after the other: the server of variant 1, and the worker of 3 and 4.
async fn answer_all(mut cx: Context<Request>) {
    while let Some(request) = cx.recv().await {
        answer(request);
    }
}

/// Makes an actor for each request.
async fn answer_each(mut cx: Context<Request>) {
    while let Some(request) = cx.recv().await {
        spawn!(answer_one(_, request), name = "texture").detach();
    }
}

async fn answer_one(_: Context<Infallible>, request: Request) {
    answer(request);
}

/// Forwards each request, and with it the right to answer, to the worker.
async fn forward(mut cx: Context<Request>, worker: Address<Request>) {
    while let Some(request) = cx.recv().await {
        // If the worker is gone, this drops the right to answer, and so the client gets an error.
        let _ = worker.tell(request);
    }
}

/// Starts the actors of a variant. They end when the returned address is dropped.
pub fn start(variant: Variant, options: &SpoolOptions) -> Result<Address<Request>, Refusal> {
    let server = match variant {
        Variant::Alone => spawn!(answer_all(_), name = "server", label = label),
        Variant::Each => spawn!(answer_each(_), name = "server", label = label),
        Variant::Worker => {
            let worker = spawn!(answer_all(_), name = "worker", label = label);
            let address = worker.address();
            worker.detach();
            spawn!(forward(_, address), name = "server", label = label)
        }
        Variant::Spool => return spool(options),
    };
    let address = server.address();
    server.detach();
    Ok(address)
}

/// Starts a spool, whose address looks like that of a worker.
fn spool(options: &SpoolOptions) -> Result<Address<Request>, Refusal> {
    let worker = |number| {
        let name = format!("worker {number}");
        spawn!(answer_all(_), name = name, label = label)
    };
    let spool = Spool::builder(worker)
        .workers(options.object_count)
        .capacity(options.size_of_queue)
        .responsiveness(options.responsiveness)
        .busy_pass_rate(options.busy_pass_rate)
        .stand_down(options.stand_down)
        .name("spool")
        .spawn();
    let spool = spool.map_err(|error| Refusal::new("cannot start", error.to_string()))?;
    Ok(spool.address())
}
