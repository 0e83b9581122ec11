//! An account with five kinds of messages, in ractor.

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call, cast};

#[derive(Debug, PartialEq)]
pub struct Short(u64);

#[derive(Default)]
pub struct State {
    owner: String,
    cents: u64,
    history: Vec<i64>,
}

pub enum Message {
    Deposit(u64, RpcReplyPort<u64>),
    Withdraw(u64, RpcReplyPort<Result<u64, Short>>),
    Balance(RpcReplyPort<u64>),
    History(usize, RpcReplyPort<Vec<i64>>),
    Rename(String),
}

impl State {
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

pub struct Account;

impl Actor for Account {
    type Msg = Message;
    type State = State;
    type Arguments = ();
    async fn pre_start(
        &self,
        _myself: ActorRef<Message>,
        _arguments: (),
    ) -> Result<State, ActorProcessingErr> {
        Ok(State::default())
    }
    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Deposit(n, reply) => reply.send(state.deposit(n))?,
            Message::Withdraw(n, reply) => reply.send(state.withdraw(n))?,
            Message::Balance(reply) => reply.send(state.cents)?,
            Message::History(last, reply) => reply.send(state.history(last))?,
            Message::Rename(owner) => state.owner = owner,
        }
        Ok(())
    }
    async fn post_stop(
        &self,
        _myself: ActorRef<Message>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        println!("{} has {}", state.owner, state.cents);
        Ok(())
    }
}

#[tokio::main]
async fn main() {
    let (account, running) = Actor::spawn(None, Account, ()).await.unwrap();
    assert_eq!(call!(account, Message::Deposit, 100).unwrap(), 100);
    assert_eq!(
        call!(account, Message::Withdraw, 300).unwrap(),
        Err(Short(200))
    );
    assert_eq!(call!(account, Message::Withdraw, 30).unwrap(), Ok(70));
    cast!(account, Message::Rename("Ada".into())).unwrap();
    assert_eq!(call!(account, Message::History, 5).unwrap(), vec![-30, 100]);
    assert_eq!(call!(account, Message::Balance).unwrap(), 70);
    account.drain().unwrap();
    running.await.unwrap();
}
