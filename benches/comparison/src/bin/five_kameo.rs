//! An account with five kinds of messages, in kameo.

use kameo::prelude::*;

#[derive(Debug, PartialEq)]
pub struct Short(u64);

#[derive(Actor, Default)]
pub struct Account {
    owner: String,
    cents: u64,
    history: Vec<i64>,
}

#[messages]
impl Account {
    #[message]
    fn deposit(&mut self, n: u64) -> u64 {
        self.cents += n;
        self.history.push(n as i64);
        self.cents
    }
    #[message]
    fn withdraw(&mut self, n: u64) -> Result<u64, Short> {
        let cents = self.cents;
        self.cents = cents.checked_sub(n).ok_or_else(|| Short(n - cents))?;
        self.history.push(-(n as i64));
        Ok(self.cents)
    }
    #[message]
    fn balance(&self) -> u64 {
        self.cents
    }
    #[message]
    fn history(&self, last: usize) -> Vec<i64> {
        self.history.iter().rev().take(last).copied().collect()
    }
    #[message]
    fn rename(&mut self, owner: String) {
        self.owner = owner;
    }
}

#[tokio::main]
async fn main() {
    let prepared = Account::prepare();
    let account = prepared.actor_ref().clone();
    let running = prepared.spawn(Account::default());
    assert_eq!(account.ask(Deposit { n: 100 }).await.unwrap(), 100);
    match account.ask(Withdraw { n: 300 }).await {
        Err(SendError::HandlerError(short)) => assert_eq!(short, Short(200)),
        other => panic!("{other:?}"),
    }
    assert_eq!(account.ask(Withdraw { n: 30 }).await.unwrap(), 70);
    account
        .tell(Rename {
            owner: "Ada".into(),
        })
        .await
        .unwrap();
    assert_eq!(
        account.ask(History { last: 5 }).await.unwrap(),
        vec![-30, 100]
    );
    assert_eq!(account.ask(Balance).await.unwrap(), 70);
    account.stop_gracefully().await.unwrap();
    let (account, _) = running.await.unwrap().unwrap();
    println!("{} has {}", account.owner, account.cents);
}
