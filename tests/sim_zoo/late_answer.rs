//! A timeout that races a reply: an asker that gives up does not know whether its request was
//! handled.
//!
//! A till asks the bank for a payment, which takes almost as long as the till's timeout. After a
//! timeout the till asks again, and sometimes the customer has paid twice.

use std::collections::HashSet;
use std::time::Duration;

use greenroom::sim::RunProblem;
use greenroom::{AskError, Context, Reply, spawn, time};

use crate::hunt::{Version, hunts};

/// How long a payment takes if no timer is late.
const PAYMENT: Duration = Duration::from_micros(19_200);
/// How long a till waits.
const PATIENCE: Duration = Duration::from_millis(20);

enum Bank {
    /// Pays for the order with this number.
    Pay(u32, Reply<()>),
    Paid(Reply<Vec<u32>>),
}

async fn bank(mut cx: Context<Bank>, version: Version) {
    let (mut paid, mut known) = (Vec::new(), HashSet::new());
    while let Some(message) = cx.recv().await {
        match message {
            Bank::Pay(order, reply) => {
                time::sleep(PAYMENT).await;
                // The fixed bank recognises a repeated order.
                if known.insert(order) || version == Version::Buggy {
                    paid.push(order);
                }
                reply.send(());
            }
            Bank::Paid(reply) => reply.send(paid.clone()),
        }
    }
}

pub async fn till(version: Version) {
    let bank = spawn!(bank(_, version), name = "bank");
    for order in 1..=2 {
        let pay = || bank.ask(|reply| Bank::Pay(order, reply));
        match pay().timeout(PATIENCE).await {
            Err(AskError::TimedOut) => pay().await.unwrap(),
            other => other.unwrap(),
        }
    }
    let paid = bank.ask(Bank::Paid).await.unwrap();
    assert!(paid == [1, 2], "zoo: the payments were {paid:?}");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    let payments = ["[1, 1, 2]", "[1, 2, 2]", "[1, 1, 2, 2]"];
    let text = |paid| format!("main panicked: zoo: the payments were {paid}");
    matches!(problem, RunProblem::Panicked(found) if payments.iter().any(|paid| *found == text(paid)))
}

hunts!(till, is_the_bug);
