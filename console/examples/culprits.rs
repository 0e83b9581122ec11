//! This example is a program in which four actors have something wrong. `greenroom-console` finds them:
//! `culprits [--actors N] [--seed N] [--seconds N]`.
//!
//! ```text
//!  5 tellers ──> vault ──> ledger, which forgets to answer: vault is stuck
//!  visitors ─┬─> 100 000 sessions
//!            ├─> report: its turns are long
//!            ├─> audit: it gets three times as many messages as it takes, so its mailbox grows
//!            └─> parser: each fourth line is broken, and restarts it
//! ```
//!
//! The seed decides where among the actors these are. It prints lines like these, and runs until its
//! input ends, or for so many seconds:
//!
//! ```text
//! http://127.0.0.1:40233
//! stuck vault #16555
//! slow report #55873
//! growing audit #59256
//! faulting parser #77339
//! ```
//!
//! With wrong arguments it ends with exit status 2.

use std::error::Error;
use std::io::{self, Write};
use std::panic;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use greenroom::supervise::Restarts;
use greenroom::time::sleep;
use greenroom::{Address, Context, Reply, Runtime, is_contained, spawn};
use greenroom_http::{Server, actors_page, console, metrics};
use lexopt::prelude::*;

const USAGE: &str = "usage: culprits [--actors N] [--seed N] [--seconds N]";

/// The actors that are no sessions, and so the fewest actors.
const OTHERS: usize = 11;

/// How often all visitors come.
const ROUND: Duration = Duration::from_millis(100);

/// The sessions that are visited in a round.
const VISITED: usize = 100;

/// The messages that `audit` gets in a round. It takes about a third of them.
const AUDITED: u32 = 15;

struct Options {
    actors: usize,
    seed: u64,
    seconds: Option<u64>,
}

/// The actors that have something wrong.
struct Culprits {
    stuck: u64,
    slow: u64,
    growing: u64,
    faulting: u64,
}

async fn session(mut cx: Context<u32>) -> u32 {
    let mut visits = 0;
    while let Some(visit) = cx.recv().await {
        visits += visit;
    }
    visits
}

/// Forgets to answer.
async fn ledger(mut cx: Context<Reply<u64>>) {
    let mut forgotten = Vec::new();
    while let Some(reply) = cx.recv().await {
        forgotten.push(reply);
    }
}

/// Waits for the ledger, and takes no question meanwhile.
async fn vault(mut cx: Context<Reply<u64>>, ledger: Address<Reply<u64>>) {
    while let Some(reply) = cx.recv().await {
        if let Ok(balance) = ledger.ask(|balance| balance).await {
            reply.send(balance);
        }
    }
}

async fn teller(_cx: Context<()>, vault: Address<Reply<u64>>) {
    // The mistake: without a timeout this waits as long as the vault does.
    let _ = vault.ask(|balance| balance).await;
}

async fn report(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {
        thread::sleep(Duration::from_millis(60)); // The mistake: it belongs in `unblock`.
    }
}

async fn audit(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {
        sleep(Duration::from_millis(20)).await;
    }
}

async fn parser(mut cx: Context<u32>) {
    while let Some(line) = cx.recv().await {
        assert!(line % 4 > 0, "bad digit in line {line}");
    }
}

/// Those that send messages: in each round to some sessions, and to the culprits.
struct Visitors {
    random: Rng,
    sessions: Vec<Address<u32>>,
    report: Address<u32>,
    audit: Address<u32>,
    parser: Address<u32>,
}

async fn visitors(mut cx: Context<u32>, mut all: Visitors) {
    let timer = cx.send_every(ROUND, || 1);
    let mut round = 0;
    while cx.recv().await.is_some() {
        round += 1;
        for _ in 0..VISITED.min(all.sessions.len()) {
            let session = all.random.usize(..all.sessions.len());
            let _ = all.sessions[session].tell(1);
        }
        for entry in 0..AUDITED {
            let _ = all.audit.tell(entry);
        }
        let _ = all.report.tell(round);
        if round % 5 == 0 {
            let _ = all.parser.tell(round / 5);
        }
    }
    drop(timer);
}

/// Spawns all actors. Before each one that is no session there are a random number of sessions.
fn populate(runtime: &Runtime, options: &Options) -> Culprits {
    let mut random = Rng::with_seed(options.seed);
    let count = options.actors.saturating_sub(OTHERS);
    let mut sessions = Vec::with_capacity(count);
    let mut spawn_sessions = |until: usize| {
        let missing = until.saturating_sub(sessions.len());
        sessions.extend((0..missing).map(|_| spawn!(session(_), on = runtime).address()));
    };
    let mut places: Vec<usize> = (1..OTHERS).map(|_| random.usize(..=count)).collect();
    places.sort_unstable();
    let mut places = places.into_iter();
    let mut next = || spawn_sessions(places.next().unwrap_or_default());

    next();
    let ledger = spawn!(ledger(_), name = "ledger", on = runtime).address();
    next();
    let vault = spawn!(vault(_, ledger), name = "vault", on = runtime).address();
    next();
    let report = spawn!(report(_), name = "report", on = runtime).address();
    next();
    // What waits in a mailbox with a capacity is counted until it is received.
    let audit = spawn!(audit(_), name = "audit", capacity = 1_000_000, on = runtime).address();
    next();
    let restart = Restarts::on_fault().intensity(1_000, Duration::from_secs(1));
    let parser = spawn!(parser(_), name = "parser", restart = restart, on = runtime).address();
    for _ in 0..5 {
        next();
        let vault = vault.clone();
        drop(spawn!(teller(_, vault), name = "teller", on = runtime));
    }
    spawn_sessions(count);

    let culprits = Culprits {
        stuck: vault.id(),
        slow: report.id(),
        growing: audit.id(),
        faulting: parser.id(),
    };
    let all = Visitors {
        random,
        sessions,
        report,
        audit,
        parser,
    };
    drop(spawn!(visitors(_, all), name = "visitors", on = runtime));
    culprits
}

/// Keeps the panics of the parser from stderr: the console shows them.
fn set_hook() {
    let prints = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !is_contained() {
            prints(panic);
        }
    }));
}

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options {
        actors: 100_000,
        seed: 7,
        seconds: None,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("actors") => options.actors = parser.value()?.parse()?,
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("seconds") => options.seconds = Some(parser.value()?.parse()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    set_hook();
    // For whom an actor waits is noted in debug builds, and here in release builds, too.
    let runtime = Runtime::builder().workers(2).endless_waits(true).build()?;
    let culprits = populate(&runtime, options);
    let server = Server::bind("127.0.0.1:0")
        .mount(console())
        .mount(actors_page())
        .mount(metrics());
    let server = runtime.block_on(server.listen())?;

    let mut output = io::stdout().lock();
    writeln!(output, "http://{}", server.local_addr())?;
    writeln!(output, "stuck vault #{}", culprits.stuck)?;
    writeln!(output, "slow report #{}", culprits.slow)?;
    writeln!(output, "growing audit #{}", culprits.growing)?;
    writeln!(output, "faulting parser #{}", culprits.faulting)?;
    output.flush()?;
    match options.seconds {
        Some(seconds) => thread::sleep(Duration::from_secs(seconds)),
        None => {
            io::copy(&mut io::stdin(), &mut io::sink())?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("culprits: {error}");
            ExitCode::FAILURE
        }
    }
}
