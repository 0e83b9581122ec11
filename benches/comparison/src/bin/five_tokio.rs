//! An account with five kinds of messages, on tokio by hand.

use tokio::sync::{mpsc, oneshot};

#[derive(Debug, PartialEq)]
pub struct Short(u64);

#[derive(Default)]
pub struct Account {
    owner: String,
    cents: u64,
    history: Vec<i64>,
}

enum Message {
    Deposit(u64, oneshot::Sender<u64>),
    Withdraw(u64, oneshot::Sender<Result<u64, Short>>),
    Balance(oneshot::Sender<u64>),
    History(usize, oneshot::Sender<Vec<i64>>),
    Rename(String),
}

impl Account {
    fn deposit(&mut self, n: u64) -> u64 {
        self.cents += n;
        self.history.push(n as i64);
        self.cents
    }
    fn withdraw(&mut self, n: u64) -> Result<u64, Short> {
        let cents = self.cents;
        self.cents = cents.checked_sub(n).ok_or_else(|| Short(n - cents))?;
        self.history.push(-(n as i64));
        Ok(self.cents)
    }
    fn history(&self, last: usize) -> Vec<i64> {
        self.history.iter().rev().take(last).copied().collect()
    }
    // An answer that no task waits for any more is dropped.
    fn handle(&mut self, message: Message) {
        match message {
            Message::Deposit(n, reply) => drop(reply.send(self.deposit(n))),
            Message::Withdraw(n, reply) => drop(reply.send(self.withdraw(n))),
            Message::Balance(reply) => drop(reply.send(self.cents)),
            Message::History(last, reply) => drop(reply.send(self.history(last))),
            Message::Rename(owner) => self.owner = owner,
        }
    }
    async fn run(mut self, mut mailbox: mpsc::Receiver<Message>) -> Self {
        while let Some(message) = mailbox.recv().await {
            self.handle(message);
        }
        self
    }
}

// The account has ended, or it has panicked.
#[derive(Debug, PartialEq)]
pub struct Gone;

#[derive(Clone)]
pub struct Bank(mpsc::Sender<Message>);
impl Bank {
    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.0.send(message(reply)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
    pub async fn deposit(&self, n: u64) -> Result<u64, Gone> {
        self.ask(|reply| Message::Deposit(n, reply)).await
    }
    pub async fn withdraw(&self, n: u64) -> Result<Result<u64, Short>, Gone> {
        self.ask(|reply| Message::Withdraw(n, reply)).await
    }
    pub async fn balance(&self) -> Result<u64, Gone> {
        self.ask(Message::Balance).await
    }
    pub async fn history(&self, last: usize) -> Result<Vec<i64>, Gone> {
        self.ask(|reply| Message::History(last, reply)).await
    }
    pub async fn rename(&self, owner: &str) {
        let _ = self.0.send(Message::Rename(owner.into())).await;
    }
}

#[tokio::main]
async fn main() {
    let (sender, mailbox) = mpsc::channel(64);
    let account = tokio::spawn(Account::default().run(mailbox));
    let bank = Bank(sender);
    assert_eq!(bank.deposit(100).await, Ok(100));
    assert_eq!(bank.withdraw(300).await, Ok(Err(Short(200))));
    assert_eq!(bank.withdraw(30).await, Ok(Ok(70)));
    bank.rename("Ada").await;
    assert_eq!(bank.history(5).await, Ok(vec![-30, 100]));
    assert_eq!(bank.balance().await, Ok(70));
    drop(bank);
    let account = account.await.unwrap();
    println!("{} has {}", account.owner, account.cents);
}
