//! What kameo does at a panic, with a full mailbox, and at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comparison::facts::{WAITING, Work, print};
use comparison::gate::is_pending;
use kameo::error::Infallible;
use kameo::message::BoxMessage;
use kameo::prelude::*;
use kameo::supervision::RestartPolicy;

#[derive(Clone, Default)]
struct Divider {
    work: Work,
    undelivered: Arc<AtomicUsize>,
}

impl Actor for Divider {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(divider: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(divider)
    }

    async fn on_undelivered(
        &mut self,
        _reason: ActorStopReason,
        undelivered: Vec<BoxMessage<Self>>,
    ) -> Result<(), Infallible> {
        self.undelivered
            .fetch_add(undelivered.len(), Ordering::Relaxed);
        Ok(())
    }
}

#[messages]
impl Divider {
    #[message]
    async fn note(&self) {
        self.work.note().await;
    }

    #[message]
    async fn divide(&self, n: u64) -> u64 {
        self.work.divide(n).await
    }
}

#[derive(Actor)]
struct Parent;

/// Has the actor panic while messages wait, and returns what the asker gets.
async fn panic(divider: &ActorRef<Divider>, work: &Work) -> String {
    work.gate.close();
    let mut ask = Box::pin(async { divider.ask(Divide { n: 0 }).await });
    assert!(is_pending(&mut ask).await);
    work.gate.reached(1).await;
    for _ in 0..WAITING {
        divider.tell(Note).await.unwrap();
    }
    work.gate.open();
    ask.await.unwrap_err().to_string()
}

async fn panics() -> [String; 4] {
    let args = Divider::default();
    let divider = Divider::spawn(args.clone());
    let asker = panic(&divider, &args.work).await;
    let ActorStopReason::Panicked(owner) = divider.wait_for_shutdown_result().await.unwrap() else {
        panic!("it ends with another reason")
    };
    let owner = owner.with_str(str::to_owned).expect("the panic has a text");
    let kept = args.undelivered.load(Ordering::Relaxed);
    let Err(SendError::ActorNotRunning(Note)) = divider.tell(Note).await else {
        panic!("a later message does not come back")
    };
    [
        format!("`{asker}`"),
        format!("`{owner}`, from `wait_for_shutdown_result`"),
        format!("{kept} of {WAITING} go to `on_undelivered`"),
        "comes back".into(),
    ]
}

async fn restart() -> String {
    let args = Divider::default();
    let parent = Parent::spawn(Parent);
    let divider = Divider::supervise(&parent, args.clone())
        .restart_policy(RestartPolicy::Transient)
        .spawn()
        .await;
    panic(&divider, &args.work).await;
    let answer = loop {
        match divider.ask(Divide { n: 5 }).await {
            Err(SendError::ActorRestarting(Divide { n: 5 })) => {} // such an ask comes back
            answer => break answer,
        }
    };
    assert_eq!(answer.unwrap(), 20);
    format!(
        "{} are handled, at the same address; asks come back",
        args.work.notes()
    )
}

async fn full() -> [String; 2] {
    let args = Divider::default();
    let work = args.work.clone();
    work.gate.close();
    let divider = Divider::spawn_with_mailbox(args, mailbox::bounded(1));
    divider.tell(Note).await.unwrap();
    work.gate.reached(1).await;
    divider.tell(Note).await.unwrap();
    let Err(SendError::MailboxFull(Note)) = divider.tell(Note).try_send() else {
        panic!("a message does not come back")
    };
    let mut send = Box::pin(async { divider.tell(Note).await });
    assert!(is_pending(&mut send).await);
    work.gate.open();
    send.await.unwrap();
    [
        "comes back: `tell(..).try_send()`".into(),
        "waits: `tell(..).await`, `ask(..).await`".into(),
    ]
}

async fn stop() -> String {
    let args = Divider::default();
    let divider = Divider::spawn(args.clone());
    for _ in 0..WAITING {
        divider.tell(Note).await.unwrap();
    }
    divider.stop_gracefully().await.unwrap();
    assert!(divider.tell(Note).await.is_err());
    divider.wait_for_shutdown().await;
    format!("{} are handled: `stop_gracefully`", args.work.notes())
}

fn main() {
    let tokio = || tokio::runtime::Runtime::new().unwrap();
    let facts =
        tokio().block_on(async { (panics().await, restart().await, full().await, stop().await) });
    let ([asker, owner, waiting, later], restart, [full, room], stop) = facts;
    let args = Divider::default();
    args.work.gate.close();
    tokio().block_on(async {
        let divider = Divider::spawn(args.clone());
        for _ in 0..WAITING {
            divider.tell(Note).await.unwrap();
        }
    });
    args.work.gate.open();
    let end = format!(
        "{} are handled, unless `main` waits for them",
        args.work.notes()
    );
    print([asker, owner, waiting, later, restart, full, room, stop, end]);
}
