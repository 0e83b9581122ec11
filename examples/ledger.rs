//! This example shows a ledger in SQLite, which a pinned actor owns:
//! `ledger [PATH] [TRANSFERS] [ACCOUNTS]`.
//!
//! ```text
//!  customer ──┐
//!  customer ──┼──> ledger (pinned: owns the SQLite connection) ──> limits
//!  customer ──┘
//! ```
//!
//! Each transfer is requested by its own actor, all of them at once. The default is 10000 transfers
//! among 100 accounts in a temporary file.
//!
//! The ledger has its own thread, so SQLite blocks no worker, and its transactions may stay open
//! across an `.await`. The process may be killed at any time: at the next start the file is
//! consistent.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use greenroom::{Address, Context, Reply, Runtime, spawn};
use rusqlite::{Connection, Transaction, TransactionBehavior::Immediate};

/// Identifies SQLite files of this program ("grlg").
const APPLICATION: i32 = 0x6772_6c67;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS accounts(
        id INTEGER PRIMARY KEY, paid_in INTEGER NOT NULL, balance INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS journal(
        id INTEGER PRIMARY KEY, payer INTEGER NOT NULL, payee INTEGER NOT NULL,
        amount INTEGER NOT NULL) STRICT;";
const OPEN: &str = "INSERT INTO accounts VALUES(?1, ?2, ?2) ON CONFLICT(id) DO NOTHING";
const DEBIT: &str = "UPDATE accounts SET balance = balance - ?2 WHERE id = ?1 AND balance >= ?2";
const CREDIT: &str = "UPDATE accounts SET balance = balance + ?2 WHERE id = ?1";
const JOURNAL: &str = "INSERT INTO journal(payer, payee, amount) VALUES(?1, ?2, ?3)";
/// The number of accounts, the number of transfers, the sum of all balances, the sum paid in, and
/// the number of accounts whose balance differs from the journal.
const BOOKS: &str = "
    WITH moves(account, amount) AS
        (SELECT payer, -amount FROM journal UNION ALL SELECT payee, amount FROM journal),
    moved AS (SELECT account, sum(amount) AS amount FROM moves GROUP BY account)
    SELECT count(*), (SELECT count(*) FROM journal), sum(balance), sum(paid_in),
        sum(balance <> paid_in + coalesce(moved.amount, 0))
    FROM accounts LEFT JOIN moved ON moved.account = accounts.id";

/// The amount paid into a new account.
const PAID_IN: u32 = 1000;
/// The largest amount that customers ask for.
const DEAREST: u32 = 100;
const LIMIT: u32 = 90;
/// The maximum number of transfers that share a commit: each commit waits for the disk.
const GROUP: usize = 100;
/// A line is printed about every this many transfers.
const PROGRESS: u64 = 1000;
/// The maximum number of transfers, and of accounts, of one run.
const MOST: u32 = 1_000_000;

type Anything = Box<dyn Error + Send + Sync>;
/// A yes-or-no question.
type Question<T> = (T, Reply<bool>);

struct Transfer {
    from: u32,
    to: u32,
    amount: u32,
}

/// Runs the pinned actor, which replies whether a transfer was made, once that is durable.
async fn ledger(
    mut cx: Context<Question<Transfer>>,
    file: PathBuf,
    accounts: u32,
    limits: Address<Question<u32>>,
) -> Result<(), Anything> {
    let mut connection = open(&file, accounts)?;
    let mut made = 0;
    while let Some(first) = cx.recv().await {
        // A drop rolls the transaction back: after an error, a panic, a kill or a shutdown.
        let mut group = connection.transaction_with_behavior(Immediate)?;
        let mut answers = Vec::new();
        let mut next = Some(first);
        while let Some((transfer, reply)) = next {
            answers.push((reply, book(&mut group, transfer, &limits).await?));
            next = (answers.len() < GROUP).then(|| cx.try_recv()).flatten();
        }
        // A crash before the commit loses the whole group, but no customer has received a reply
        // yet. A crash after it loses nothing. Either way both sides of a transfer are there or
        // none.
        group.commit()?;
        let told = made / PROGRESS;
        for (reply, is_made) in answers {
            made += u64::from(is_made);
            reply.send(is_made);
        }
        if made / PROGRESS > told {
            writeln!(io::stdout(), "{made} transfers are made")?;
        }
    }
    let summary = check(&connection)?;
    writeln!(io::stdout(), "consistent at the end: {summary}")?;
    Ok(())
}

/// Makes a transfer as a part of the group, or leaves no trace of it there.
///
/// While this waits, the amount is in no account. No other code observes that and no other transfer
/// begins, because an actor handles one message at a time. An open savepoint is not `Send`; hence
/// the pinned thread.
async fn book(
    group: &mut Transaction<'_>,
    Transfer { from, to, amount }: Transfer,
    limits: &Address<Question<u32>>,
) -> rusqlite::Result<bool> {
    let part = group.savepoint()?;
    let is_made = part.execute(DEBIT, [from, amount])? == 1
        && limits.ask(|reply| (amount, reply)).await == Ok(true)
        && part.execute(CREDIT, [to, amount])? == 1
        && part.execute(JOURNAL, [from, to, amount])? == 1;
    match is_made {
        true => part.commit()?,
        false => part.finish()?, // rolls back
    }
    Ok(is_made)
}

/// Opens the file, if it is consistent, and adds accounts up to the number `accounts`.
fn open(file: &Path, accounts: u32) -> Result<Connection, Anything> {
    let mut connection = Connection::open(file)?;
    let known: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: u32 = connection.query_row(tables, [], |row| row.get(0))?;
    if known != APPLICATION && (known, tables) != (0, 0) {
        return Err(format!("{} is no ledger and was not changed", file.display()).into());
    }
    // With `FULL` a reported commit survives a crash of the machine, with `NORMAL` of the process.
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
    let start = connection.transaction_with_behavior(Immediate)?;
    start.pragma_update(None, "application_id", APPLICATION)?;
    start.execute_batch(TABLES)?;
    for account in 0..accounts {
        start.execute(OPEN, [account, PAID_IN])?;
    }
    let summary = check(&start)?;
    start.commit()?;
    writeln!(io::stdout(), "consistent at the start: {summary}")?;
    Ok(connection)
}

/// Returns a summary of the ledger, or an error if its numbers do not agree.
fn check(connection: &Connection) -> Result<String, Anything> {
    let books = |row: &rusqlite::Row<'_>| <(i64, i64, i64, i64, i64)>::try_from(row);
    let (accounts, transfers, sum, paid_in, wrong) = connection.query_row(BOOKS, [], books)?;
    if sum != paid_in {
        return Err(format!("the sum is wrong: {sum}, though {paid_in} was paid in").into());
    }
    if wrong != 0 {
        return Err(format!("{wrong} accounts differ from the journal").into());
    }
    let summary = format!("{accounts} accounts, {transfers} transfers, sum {sum}");
    Ok(summary)
}

/// Replies whether an amount may be moved. A real program would ask another service.
async fn limits(mut cx: Context<Question<u32>>) {
    while let Some((amount, reply)) = cx.recv().await {
        reply.send(amount <= LIMIT);
    }
}

/// Requests one transfer between two of the accounts, and returns the reply.
async fn customer(
    _cx: Context<()>,
    accounts: u32,
    ledger: Address<Question<Transfer>>,
) -> Option<bool> {
    let from = fastrand::u32(..accounts);
    let to = (from + fastrand::u32(1..accounts)) % accounts;
    let amount = fastrand::u32(1..=DEAREST);
    let transfer = Transfer { from, to, amount };
    ledger.ask(|reply| (transfer, reply)).await.ok()
}

async fn run(file: PathBuf, transfers: u32, accounts: u32) -> Result<(), Anything> {
    let begun = Instant::now();
    let limits = spawn!(limits(_));
    let pinned = Runtime::current().spawn_pinned("ledger")?;
    let ledger = spawn!(ledger(_, file, accounts, limits.address()), on = &pinned);
    let customer = |_| spawn!(customer(_, accounts, ledger.address()));
    let customers: Vec<_> = (0..transfers).map(customer).collect();
    let (mut made, mut refused) = (0, 0);
    for customer in customers {
        match customer.join().await? {
            Some(true) => made += 1,
            Some(false) => refused += 1,
            None => break, // The ledger has ended; its join returns the error.
        }
    }
    ledger.join().await??;
    let time = begun.elapsed();
    writeln!(io::stdout(), "{made} made, {refused} refused, {time:.2?}")?;
    Ok(())
}

fn start(arguments: &[OsString]) -> Result<(), Anything> {
    let number = |at: usize, usual: u32, least: u32| {
        let Some(text) = arguments.get(at) else {
            return Ok(usual);
        };
        let number = text.to_str().and_then(|text| text.parse().ok());
        let number = number.filter(|number| (least..=MOST).contains(number));
        number.ok_or_else(|| format!("{text:?} is not a number from {least} to {MOST}"))
    };
    let (transfers, accounts) = (number(1, 10_000, 0)?, number(2, 100, 2)?);
    let scratch;
    let file = match arguments {
        [] => {
            scratch = tempfile::tempdir()?;
            scratch.path().join("ledger")
        }
        [file] | [file, _] | [file, _, _] => file.into(),
        _ => return Err("usage: ledger [PATH] [TRANSFERS] [ACCOUNTS]".into()),
    };
    greenroom::run(run(file, transfers, accounts))
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    if let Err(error) = start(&arguments) {
        eprintln!("ledger: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
