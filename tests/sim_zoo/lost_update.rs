//! A lost update: what was read before an await is written after it.
//!
//! A clerk reads a balance, asks for the rate of exchange, and writes the sum; what another one wrote
//! meanwhile is gone. The second clerk has other things to do first, so that the two seldom meet.

use greenroom::sim::Problem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts};

/// How many questions the second clerk asks first.
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

/// Gives the rate of a currency.
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
        "zoo: 60 were deposited, and {balance} are there"
    );
}

fn is_the_bug(problem: &Problem) -> bool {
    let text = "main panicked: zoo: 60 were deposited, and 30 are there";
    *problem == Problem::Panicked(text.to_owned())
}

hunts!(bank, is_the_bug);
