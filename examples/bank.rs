//! This example makes transfers between accounts, which loopers lock:
//! `bank [--out FILE] [--deadlock] [TRANSFERS]`.
//!
//! ```text
//!  ann's looper ──> both accounts are locked ──> a transfer, or an overdraft is refused
//!  bob's looper ──> ...                          an audit stops the world: the sum of all
//! ```
//!
//! A line of the file TRANSFERS is like `ann,bob,10`: from, to, amount. Wrong lines are reported
//! and skipped. Without a file, transfers are made up. Each account begins with 1000. The transfers
//! of a client are made in their order, those of different clients at the same time. No thread waits
//! for a lock. The balances go to stdout or to FILE, as lines like `ann,990`.
//!
//! With `--deadlock`, two loopers keep a lock each and ask for the other's. That prints a line like
//! this:
//!
//! ```text
//! refused: ann waits for bob's account, held by bob, which waits for ann's account, held by ann
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use futures::future::join;
use greenroom::looper::{Controller, Guarded, LockError, Looper, TaskError};

/// The amount in a new account.
const OPENING: u64 = 1000;
/// There is an audit each time after this many transfers.
const AUDIT_EVERY: usize = 50;
/// The transfers that are made up, their clients, and their largest amount.
const MADE_UP: usize = 500;
const CLIENTS: [&str; 8] = ["ann", "bob", "cem", "dora", "eve", "finn", "gita", "hugo"];
const LARGEST: u64 = 100;

type Anything = Box<dyn Error + Send + Sync>;

/// The names of both accounts, and the amount.
type Transfer = ([String; 2], u64);

/// Returns the transfer of a line, or what is wrong with the line.
fn parse(text: io::Result<String>) -> Result<Transfer, String> {
    let text = text.map_err(|error| error.to_string())?;
    let fields: Vec<_> = text.split(',').map(str::trim).collect();
    let [from, to, amount] = fields[..] else {
        return Err("it is not from,to,amount".to_owned());
    };
    if from.is_empty() || to.is_empty() || from == to {
        return Err(format!("no transfer from {from:?} to {to:?}"));
    }
    let amount = match amount.parse() {
        Ok(0) => return Err("the amount is 0".to_owned()),
        parsed => parsed.map_err(|error| format!("{amount:?} is no amount: {error}"))?,
    };
    Ok(([from, to].map(str::to_owned), amount))
}

/// Returns lines of transfers that are the same in each run.
fn make_up() -> String {
    let mut random = fastrand::Rng::with_seed(4);
    let lines = (0..MADE_UP).map(|_| {
        let from = random.usize(..CLIENTS.len());
        let to = (from + random.usize(1..CLIENTS.len())) % CLIENTS.len();
        let amount = random.u64(1..=LARGEST);
        format!("{},{},{amount}\n", CLIENTS[from], CLIENTS[to])
    });
    lines.collect()
}

/// Makes the transfers, and returns lines with the balances.
async fn make(transfers: Vec<(usize, Transfer)>) -> Result<String, Anything> {
    let controller = Controller::builder().build()?;
    let mut clients: BTreeMap<_, (Looper, Guarded<u64>)> = BTreeMap::new();
    for name in transfers.iter().flat_map(|(_, (names, _))| names) {
        clients.entry(name.clone()).or_insert_with(|| {
            let account = controller.guarded_named(format!("{name}'s account"), OPENING);
            (controller.looper_named(name.clone()), account)
        });
    }
    let accounts: Arc<[_]> = clients.values().map(|client| client.1.clone()).collect();
    let (mut posted, mut audits) = (Vec::new(), Vec::new());
    for (line, (names, amount)) in transfers {
        let [(looper, from), (_, to)] = names.each_ref().map(|name| &clients[name]);
        let posting = looper.with((from.exclusive(), to.exclusive()));
        let result = posting.post(move |(from, to)| {
            let rest = from.checked_sub(amount);
            *from = rest.ok_or_else(|| format!("the balance is {from}, not {amount}"))?;
            *to += amount;
            Ok::<_, String>(())
        });
        posted.push((line, result?));
        if posted.len().is_multiple_of(AUDIT_EVERY) {
            let accounts = accounts.clone();
            audits.push(controller.stop_the_world(move |world| {
                let balances = accounts.iter().map(|account| world.get(account).copied());
                balances.sum::<Result<u64, LockError>>()
            })?);
        }
    }
    let (mut made, audited) = (posted.len(), audits.len());
    for (line, result) in posted {
        if let Err(overdraft) = result.await? {
            eprintln!("line {line}: refused: {overdraft}");
            made -= 1;
        }
    }
    let sum = OPENING * clients.len() as u64;
    for audit in audits {
        let found = audit.await??;
        if found != sum {
            return Err(format!("an audit found {found} instead of {sum}").into());
        }
    }
    eprintln!("{made} transfers were made, and {audited} audits found {sum}");
    let mut balances = String::new();
    for (name, (_, account)) in clients {
        writeln!(balances, "{name},{}", account.close().await?)?;
    }
    controller.shutdown().await;
    Ok(balances)
}

/// Lets two loopers keep a lock each and ask for the other's, and prints what is refused.
async fn deadlock() -> Result<(), Anything> {
    let controller = Controller::builder().detect_deadlocks(true).build()?;
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let account = controller.guarded_named(format!("{name}'s account"), OPENING);
        (controller.looper_named(name), account)
    });
    for (looper, own) in [&ann, &bob] {
        looper.with(own.exclusive().keep()).post(|_| ())?.await?;
    }
    let ask = async |looper: &Looper, other: &Guarded<u64>| -> Result<(), Anything> {
        let result = looper.with(other.exclusive()).post(|_| ())?.await;
        looper.close().await; // so it gives back what it keeps
        match result {
            Err(TaskError::Deadlock(deadlock)) => writeln!(io::stdout(), "refused: {deadlock}")?,
            other => other?,
        }
        Ok(())
    };
    let (one, two) = join(ask(&ann.0, &bob.1), ask(&bob.0, &ann.1)).await;
    one.and(two)
}

fn run() -> Result<(), Anything> {
    use lexopt::prelude::*;
    let (mut path, mut out): (Option<PathBuf>, Option<PathBuf>) = (None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("deadlock") => return greenroom::run(deadlock()),
            Long("out") => out = Some(parser.value()?.into()),
            Value(file) if path.is_none() => path = Some(file.into()),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let lines = match path {
        Some(path) => fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?,
        None => make_up().into_bytes(),
    };
    let mut transfers = Vec::new();
    for (text, line) in lines.lines().zip(1..) {
        match parse(text) {
            Ok(transfer) => transfers.push((line, transfer)),
            Err(problem) => eprintln!("line {line}: skipped: {problem}"),
        }
    }
    let balances = greenroom::run(make(transfers))?;
    match out {
        Some(out) => {
            fs::write(&out, balances).map_err(|error| format!("{}: {error}", out.display()).into())
        }
        None => Ok(io::stdout().write_all(balances.as_bytes())?),
    }
}

fn main() -> ExitCode {
    if let Err(error) = run() {
        eprintln!("bank: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
