//! What ractor does at a panic, with mailboxes that are never full, and at the end.

use comparison::facts::{WAITING, Work, print};
use comparison::gate::is_pending;
use ractor::concurrency::{OneshotSender, oneshot};
use ractor::{
    Actor, ActorProcessingErr, ActorRef, MessagingErr, RpcReplyPort, SupervisionEvent, call,
};

enum Message {
    Note,
    Divide(u64, RpcReplyPort<u64>),
}

struct Divider(Work);

impl Actor for Divider {
    type Msg = Message;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, _: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Note => self.0.note().await,
            Message::Divide(n, reply) => reply.send(self.0.divide(n).await)?,
        }
        Ok(())
    }
}

/// Learns how its child ends.
struct Parent;

impl Actor for Parent {
    type Msg = ();
    type State = Option<OneshotSender<String>>;
    type Arguments = OneshotSender<String>;

    async fn pre_start(
        &self,
        _myself: ActorRef<()>,
        learned: OneshotSender<String>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(Some(learned))
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<()>,
        event: SupervisionEvent,
        learned: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(_, error) = event {
            learned.take().unwrap().send(error.to_string()).unwrap();
        }
        Ok(())
    }
}

async fn panics() -> [String; 4] {
    let work = Work::default();
    let (learned, owner) = oneshot();
    let (parent, _) = Actor::spawn(None, Parent, learned).await.unwrap();
    let divider = Divider(work.clone());
    let (divider, running) = Actor::spawn_linked(None, divider, (), parent.get_cell())
        .await
        .unwrap();
    work.gate.close();
    let mut ask = Box::pin(async { call!(divider, Message::Divide, 0) });
    assert!(is_pending(&mut ask).await);
    work.gate.reached(1).await;
    for _ in 0..WAITING {
        divider.cast(Message::Note).unwrap();
    }
    work.gate.open();
    let asker = ask.await.unwrap_err();
    running.await.unwrap();
    let Err(MessagingErr::SendErr(Message::Note)) = divider.cast(Message::Note) else {
        panic!("a later message does not come back")
    };
    [
        format!("`{asker}`"),
        format!("`{}`, as an event of the supervisor", owner.await.unwrap()),
        format!("{} are handled", work.notes()),
        "comes back".into(),
    ]
}

async fn unbounded() -> String {
    let work = Work::default();
    work.gate.close();
    let (divider, _running) = Actor::spawn(None, Divider(work.clone()), ()).await.unwrap();
    for _ in 0..100_000 {
        divider.cast(Message::Note).unwrap();
    }
    divider.kill();
    "is accepted: no mailbox is bounded, only the queue of a factory".into()
}

async fn stop() -> String {
    let work = Work::default();
    let (divider, running) = Actor::spawn(None, Divider(work.clone()), ()).await.unwrap();
    for _ in 0..WAITING {
        divider.cast(Message::Note).unwrap();
    }
    divider.drain().unwrap();
    assert!(divider.cast(Message::Note).is_err());
    running.await.unwrap();
    format!("{} are handled: `drain`", work.notes())
}

fn main() {
    let tokio = || tokio::runtime::Runtime::new().unwrap();
    let facts = tokio().block_on(async { (panics().await, unbounded().await, stop().await) });
    let ([asker, owner, waiting, later], unbounded, stop) = facts;
    let restart = "the supervisor spawns another actor, with an empty mailbox".into();
    let work = Work::default();
    work.gate.close();
    tokio().block_on(async {
        let (divider, _) = Actor::spawn(None, Divider(work.clone()), ()).await.unwrap();
        for _ in 0..WAITING {
            divider.cast(Message::Note).unwrap();
        }
    });
    work.gate.open();
    let end = format!("{} are handled, unless `main` waits for them", work.notes());
    let room = "never waits".into();
    print([
        asker, owner, waiting, later, restart, unbounded, room, stop, end,
    ]);
}
