//! What greenroom does at a panic, with a full mailbox, and at the end.

use std::sync::mpsc;
use std::thread;

use comparison::facts::{WAITING, Work, print};
use comparison::gate::is_pending;
use greenroom::supervise::Restarts;
use greenroom::{Address, Context, Reply, spawn};

enum Message {
    Note,
    Divide(u64, Reply<u64>),
}

async fn divider(mut cx: Context<Message>, work: Work) {
    while let Some(message) = cx.recv().await {
        match message {
            Message::Note => work.note().await,
            Message::Divide(n, reply) => reply.send(work.divide(n).await),
        }
    }
}

/// Has the actor panic while messages wait, and returns what the asker gets.
async fn panic(divider: &Address<Message>, work: &Work) -> String {
    work.gate.close();
    let mut ask = Box::pin(async { divider.ask(|reply| Message::Divide(0, reply)).await });
    assert!(is_pending(&mut ask).await);
    work.gate.reached(1).await;
    for _ in 0..WAITING {
        divider.tell(Message::Note).unwrap();
    }
    work.gate.open();
    ask.await.unwrap_err().to_string()
}

async fn panics() -> [String; 4] {
    let work = Work::default();
    let (keep, undelivered) = mpsc::channel();
    let keep = move |message| keep.send(message).unwrap();
    let divider = spawn!(
        divider(_, work.clone()),
        name = "divider",
        on_undelivered = keep
    );
    let address = divider.address();
    let asker = panic(&address, &work).await;
    let owner = divider.join().await.unwrap_err();
    let kept = undelivered.try_iter().count();
    let closed = address.tell(Message::Note).unwrap_err();
    assert!(closed.is_closed() && matches!(closed.into_inner(), Message::Note));
    [
        format!("`{asker}`"),
        format!("`{owner}`, from `join`"),
        format!("{kept} of {WAITING} go to `on_undelivered`"),
        "comes back".into(),
    ]
}

async fn restart() -> String {
    let work = Work::default();
    let divider = spawn!(divider(_, work.clone()), restart = Restarts::on_fault());
    panic(&divider, &work).await;
    assert_eq!(divider.ask(|reply| Message::Divide(5, reply)).await, Ok(20));
    format!("{} are handled, at the same address", work.notes())
}

async fn full() -> [String; 2] {
    let work = Work::default();
    work.gate.close();
    let divider = spawn!(divider(_, work.clone()), capacity = 1);
    divider.tell(Message::Note).unwrap();
    work.gate.reached(1).await;
    divider.tell(Message::Note).unwrap();
    let full = divider.tell(Message::Note).unwrap_err();
    assert!(full.is_full() && matches!(full.into_inner(), Message::Note));
    let mut send = Box::pin(async { divider.send(Message::Note).await });
    assert!(is_pending(&mut send).await);
    work.gate.open();
    send.await.unwrap();
    ["comes back: `tell`".into(), "waits: `send`, `ask`".into()]
}

async fn stop() -> String {
    let work = Work::default();
    let divider = spawn!(divider(_, work.clone()));
    for _ in 0..WAITING {
        divider.tell(Message::Note).unwrap();
    }
    divider.stop();
    assert!(divider.tell(Message::Note).is_err());
    divider.join().await.unwrap();
    format!("{} are handled: `stop`", work.notes())
}

fn end_of_main() -> String {
    let work = Work::default();
    work.gate.close();
    let opening = greenroom::run(async {
        let divider = spawn!(divider(_, work.clone()));
        for _ in 0..WAITING {
            divider.tell(Message::Note).unwrap();
        }
        let gate = work.gate.clone();
        thread::spawn(move || gate.open())
    });
    opening.join().unwrap();
    format!("{} are handled, for at most 5 s", work.notes())
}

fn main() {
    let facts =
        greenroom::run(async { (panics().await, restart().await, full().await, stop().await) });
    let ([asker, owner, waiting, later], restart, [full, room], stop) = facts;
    print([
        asker,
        owner,
        waiting,
        later,
        restart,
        full,
        room,
        stop,
        end_of_main(),
    ]);
}
