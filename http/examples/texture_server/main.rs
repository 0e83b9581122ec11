//! This example serves tables of random numbers:
//! `texture_server --variant 1..4 [OPTION ..]`.
//!
//! ```text
//!                      1 ──> server: answers one request after the other
//!  /Xy?x=2&y=2 ──────> 2 ──> server ──> an actor for each request
//!  with the right      3 ──> server ──> a worker, to which each request is forwarded
//!  to answer           4 ──> spool ───> the worker that has been idle longest
//! ```
//!
//! The right to answer goes along with a request, so the table goes straight from the actor that
//! makes it to the client. The variants differ only in which actors are behind the address of `Xy`.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `--server-address` | `127.0.0.1:5050` | where it listens; with port 0 the system chooses one |
//! | `--plain` | off | answers are tables without the envelope of layer_cake |
//! | `--debug-level` | off | traces the actors to stderr |
//! | `--object-count` | 8 | workers of the spool |
//! | `--size-of-queue` | `None` | requests that may wait |
//! | `--responsiveness` | 5 | seconds on average from which the spool is busy, or `None` |
//! | `--busy-pass-rate` | 10 | a busy spool lets one in so many requests pass |
//! | `--stand-down` | 30 | seconds before a dead worker is replaced, or `None` |
//!
//! The last five are parameters of variant 4. It answers:
//!
//! ```console
//! $ curl 'http://127.0.0.1:5050/Xy?x=2&y=1'
//! {"value":["vector<vector<float8>>",[[0.7121297344671714,0.2617093660768349]],[]]}
//! $ curl -d x=1 -d y=2 http://127.0.0.1:5050/Xy
//! {"value":["vector<vector<float8>>",[[0.9153021465331127],[0.5407311228934155]],[]]}
//! $ curl 'http://127.0.0.1:5050/Xy?x=1000000&y=2'
//! {"value":["layer_cake.point_runtime.Faulted",{"condition":"table too large",..},[]]}
//! ```
//!
//! With `--plain`:
//!
//! ```console
//! $ curl --json '{"x": 2}' http://127.0.0.1:5050/Xy
//! [[0.3709542150324801,0.8206013275634391]]
//! ```
//!
//! A browser shows its workers and actors at `/actors`. `/metrics` has numbers for Prometheus.
//!
//! Ctrl-C stops it: requests that are open are answered first, unless Ctrl-C comes again. With
//! `--debug-level=LEVEL`, or `-dl=LEVEL`, it traces the actors to stderr. A fault, also Ctrl-C, is
//! printed as "texture_server: condition (explanation)", and the exit status is 71. With wrong
//! arguments it is 2.

mod variants;

use std::num::ParseFloatError;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures_lite::future::{or, poll_once};
use greenroom::trace::{Level, Lines};
use greenroom::{Refusal, RefusalKind, Runtime, ctrl_c};
use greenroom_http::{Answers, Server, StopReport, actors_page, metrics};

use variants::{SpoolOptions, Variant, Xy};

/// The exit status of a fault that has none of its own.
const FAULT: u8 = 71;

const USAGE: &str = "usage: texture_server --variant 1..4 [--server-address HOST:PORT] [--plain]
    [--debug-level LEVEL] [--object-count N] [--size-of-queue N] [--responsiveness SECONDS]
    [--busy-pass-rate N] [--stand-down SECONDS]";

struct Options {
    variant: Variant,
    server_address: String,
    answers: Answers,
    spool: SpoolOptions,
    debug_level: Option<Level>,
}

async fn listen(options: &Options) -> Result<Server, Refusal> {
    let address = variants::start(options.variant, &options.spool)?;
    let server = Server::bind(&options.server_address)
        .on("Xy", &address, |xy: Xy, reply| (xy, reply))
        .answers(options.answers)
        .mount(metrics())
        .mount(actors_page())
        .listen()
        .await;
    server.map_err(|error| {
        let condition = format!("cannot listen at {:?}", error.address());
        Refusal::new(condition, error.problem().to_string())
    })
}

/// Stops the server. Returns `None` if Ctrl-C comes before the open requests are answered.
async fn stop(server: &Server) -> Option<StopReport> {
    let mut again = pin!(ctrl_c());
    // From this poll on, another Ctrl-C is noticed.
    let _ = poll_once(&mut again).await;
    println!("stopping; Ctrl-C again cuts what is open");
    let stopped = async { Some(server.stop().await) };
    let cut = async {
        match again.await {
            Ok(()) => None,
            Err(_) => std::future::pending().await,
        }
    };
    or(stopped, cut).await
}

/// Serves until Ctrl-C comes, which ends it as a fault.
async fn serve(options: &Options, runtime: &Runtime) -> Refusal {
    let mut interrupt = pin!(ctrl_c());
    // From this poll on, Ctrl-C no longer ends the process.
    let mut noticed = poll_once(&mut interrupt).await;
    let server = match listen(options).await {
        Ok(server) => server,
        Err(fault) => return fault,
    };
    println!("listening at {}", server.local_addr());
    if noticed.is_none() {
        noticed = Some(interrupt.await);
    }
    if let Some(Err(error)) = noticed {
        eprintln!("Ctrl-C will not be noticed: {error}");
        std::future::pending::<()>().await;
    }
    if let Some(StopReport { finished, cut, .. }) = stop(&server).await {
        println!("{finished} connections finished, {cut} were cut");
        runtime.shutdown().await;
    }
    Refusal::of(RefusalKind::Aborted, "user or software interrupt")
}

/// Runs the server. When the runtime is dropped, it cuts what is left.
fn run(options: &Options) -> Refusal {
    let mut builder = Runtime::builder().driver(greenroom_http::driver());
    if let Some(level) = options.debug_level {
        builder = builder.tracer(Lines::stderr(level));
    }
    match builder.build() {
        Ok(runtime) => runtime.block_on(serve(options, &runtime)),
        Err(error) => Refusal::new("no runtime", error.to_string()),
    }
}

fn seconds(value: &str) -> Result<Duration, String> {
    let seconds = value
        .parse()
        .map_err(|error: ParseFloatError| error.to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Reads a value that may be `None`.
fn optional<T, E>(value: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Result<Option<T>, E> {
    match value {
        "None" => Ok(None),
        other => read(other).map(Some),
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let (mut variant, mut debug_level) = (None, None);
    let mut server_address = "127.0.0.1:5050".to_owned();
    let (mut answers, mut spool) = (Answers::Envelope, None::<SpoolOptions>);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("variant") => variant = Some(parser.value()?.parse()?),
            Long("server-address") => server_address = parser.value()?.string()?,
            Long("plain") => answers = Answers::Plain,
            Long("debug-level") => debug_level = Some(parser.value()?.parse()?),
            // The initials of that, as layer_cake has them: `-dl=DEBUG`.
            Short('d') => match parser.next()? {
                Some(Short('l')) => debug_level = Some(parser.value()?.parse()?),
                _ => return Err(Short('d').unexpected()),
            },
            Long("object-count") => {
                spool.get_or_insert_default().object_count = parser.value()?.parse()?
            }
            Long("size-of-queue") => {
                let requests = |value: &str| optional(value, str::parse);
                spool.get_or_insert_default().size_of_queue =
                    parser.value()?.parse_with(requests)?;
            }
            Long("responsiveness") => {
                let time = |value: &str| optional(value, seconds);
                spool.get_or_insert_default().responsiveness = parser.value()?.parse_with(time)?;
            }
            Long("busy-pass-rate") => {
                spool.get_or_insert_default().busy_pass_rate = parser.value()?.parse()?;
            }
            Long("stand-down") => {
                let time = |value: &str| optional(value, seconds);
                spool.get_or_insert_default().stand_down = parser.value()?.parse_with(time)?;
            }
            other => return Err(other.unexpected()),
        }
    }
    let variant = variant.ok_or("--variant is missing")?;
    if spool.is_some() && variant != Variant::Spool {
        return Err("only variant 4 has parameters of a spool".into());
    }
    Ok(Options {
        variant,
        server_address,
        answers,
        spool: spool.unwrap_or_default(),
        debug_level,
    })
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("texture_server: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let fault = run(&options);
    eprintln!("texture_server: {fault}");
    let status = fault
        .exit_status()
        .and_then(|status| u8::try_from(status).ok());
    ExitCode::from(status.unwrap_or(FAULT))
}
