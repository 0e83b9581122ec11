//! An account with five kinds of messages, in greenroom.

use greenroom::{Actor, Address, AskError, Context, Reply, spawn};

#[derive(Debug, PartialEq)]
pub struct Short(u64);

#[derive(Default)]
pub struct Account {
    owner: String,
    cents: u64,
    history: Vec<i64>,
}

pub enum Message {
    Deposit(u64, Reply<u64>),
    Withdraw(u64, Reply<Result<u64, Short>>),
    Balance(Reply<u64>),
    History { last: usize, reply: Reply<Vec<i64>> },
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
}

impl Actor for Account {
    type Message = Message;
    async fn handle(&mut self, message: Message, _cx: &mut Context<Message>) {
        match message {
            Message::Deposit(n, reply) => reply.send(self.deposit(n)),
            Message::Withdraw(n, reply) => reply.send(self.withdraw(n)),
            Message::Balance(reply) => reply.send(self.cents),
            Message::History { last, reply } => reply.send(self.history(last)),
            Message::Rename(owner) => self.owner = owner,
        }
    }
}

// What others call: by hand, so that callers need not know of the enum.
#[derive(Clone)]
pub struct Bank(Address<Message>);
impl Bank {
    pub async fn deposit(&self, n: u64) -> Result<u64, AskError> {
        self.0.ask(|r| Message::Deposit(n, r)).await
    }
    pub async fn withdraw(&self, n: u64) -> Result<Result<u64, Short>, AskError> {
        self.0.ask(|r| Message::Withdraw(n, r)).await
    }
    pub async fn balance(&self) -> Result<u64, AskError> {
        self.0.ask(Message::Balance).await
    }
    pub async fn history(&self, last: usize) -> Result<Vec<i64>, AskError> {
        self.0.ask(|reply| Message::History { last, reply }).await
    }
    pub fn rename(&self, owner: &str) {
        let _ = self.0.tell(Message::Rename(owner.into()));
    }
}

fn main() {
    greenroom::run(async {
        let account = spawn!(Account::default());
        let bank = Bank(account.address());
        assert_eq!(bank.deposit(100).await, Ok(100));
        assert_eq!(bank.withdraw(300).await, Ok(Err(Short(200))));
        assert_eq!(bank.withdraw(30).await, Ok(Ok(70)));
        bank.rename("Ada");
        assert_eq!(bank.history(5).await, Ok(vec![-30, 100]));
        assert_eq!(bank.balance().await, Ok(70));
        drop(bank);
        let account = account.join().await.unwrap();
        println!("{} has {}", account.owner, account.cents);
    });
}
