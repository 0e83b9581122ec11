//! A half-done transfer is observed: one turn sends to two accounts, and another turn asks both.
//!
//! As long as turns are not interrupted, the auditor's questions arrive before both messages or
//! after both.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts_within_a_turn};

enum Account {
    Add(i64),
    Balance(Reply<i64>),
}

async fn account(mut cx: Context<Account>) {
    let mut balance = 100;
    while let Some(message) = cx.recv().await {
        match message {
            Account::Add(amount) => balance += amount,
            Account::Balance(reply) => reply.send(balance),
        }
    }
}

enum Bank {
    Transfer(i64),
    Total(Reply<i64>),
}

/// Serialises transfers and totals: in the fixed program only the bank uses the accounts.
async fn bank(mut cx: Context<Bank>, [from, to]: [Address<Account>; 2]) {
    while let Some(message) = cx.recv().await {
        match message {
            Bank::Transfer(amount) => transfer(&from, &to, amount),
            Bank::Total(reply) => reply.send(total(&from, &to).await),
        }
    }
}

fn transfer(from: &Address<Account>, to: &Address<Account>, amount: i64) {
    from.tell(Account::Add(-amount)).unwrap();
    to.tell(Account::Add(amount)).unwrap();
}

async fn total(from: &Address<Account>, to: &Address<Account>) -> i64 {
    let both = futures::join!(from.ask(Account::Balance), to.ask(Account::Balance));
    both.0.unwrap() + both.1.unwrap()
}

pub async fn audit(version: Version) {
    let accounts = ["from", "to"].map(|name| spawn!(account(_), name = name));
    let [from, to] = accounts.each_ref().map(|account| account.address());
    let bank = spawn!(bank(_, [from.clone(), to.clone()]), name = "bank");
    let transfer = {
        let (from, to, bank) = (from.clone(), to.clone(), bank.address());
        greenroom::spawn(async move {
            match version {
                Version::Buggy => transfer(&from, &to, 10),
                Version::Mended => bank.tell(Bank::Transfer(10)).unwrap(),
            }
        })
    };
    let total = match version {
        Version::Buggy => total(&from, &to).await,
        Version::Mended => bank.ask(Bank::Total).await.unwrap(),
    };
    transfer.await;
    bank.join().await.unwrap();
    assert!(total == 200, "zoo: the total is {total} instead of 200");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    let found = |total| format!("main panicked: zoo: the total is {total} instead of 200");
    [190, 210]
        .map(found)
        .into_iter()
        .any(|text| *problem == RunProblem::Panicked(text))
}

hunts_within_a_turn!(audit, is_the_bug);
