//! A lost update: a value that was read before an await is written after it.
//!
//! A clerk reads a balance, asks for the exchange rate, and writes the sum. An update by the other
//! clerk in between is lost. The second clerk does other work first, so the two seldom overlap.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts};

/// The number of questions that the second clerk asks first.
const CHORES: usize = 6;

enum Account {
    Balance(Reply<u64>),
    Set(u64),
    Add(u64),
}

async fn account(mut cx: Context<Account>) {
    let mut balance = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Account::Balance(reply) => reply.send(balance),
            Account::Set(new) => balance = new,
            Account::Add(more) => balance += more,
        }
    }
}

/// Replies with the exchange rate of a currency.
async fn rates(mut cx: Context<(&'static str, Reply<u64>)>) {
    while let Some((currency, reply)) = cx.recv().await {
        reply.send(currency.len() as u64);
    }
}

type Rates = Address<(&'static str, Reply<u64>)>;

async fn deposit(account: &Address<Account>, rates: &Rates, amount: u64, version: Version) {
    let balance = account.ask(Account::Balance).await.unwrap();
    let rate = rates.ask(|reply| ("EUR", reply)).await.unwrap();
    account
        .tell(match version {
            Version::Buggy => Account::Set(balance + amount * rate),
            Version::Mended => Account::Add(amount * rate),
        })
        .unwrap();
}

pub async fn bank(version: Version) {
    let account = spawn!(account(_), name = "account");
    let rates = spawn!(rates(_), name = "rates");
    let clerks = [0, CHORES].map(|chores| {
        let (account, rates) = (account.address(), rates.address());
        greenroom::spawn(async move {
            for _ in 0..chores {
                rates.ask(|reply| ("USD", reply)).await.unwrap();
            }
            deposit(&account, &rates, 10, version).await;
        })
    });
    for clerk in clerks {
        clerk.await;
    }
    let balance = account.ask(Account::Balance).await.unwrap();
    assert!(
        balance == 60,
        "zoo: 60 were deposited, but the balance is {balance}"
    );
}

fn is_the_bug(problem: &RunProblem) -> bool {
    let text = "main panicked: zoo: 60 were deposited, but the balance is 30";
    *problem == RunProblem::Panicked(text.to_owned())
}

hunts!(bank, is_the_bug);
