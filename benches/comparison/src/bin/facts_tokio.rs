//! What tokio's tasks and channels do at a panic, with a full channel, and at the end.

use comparison::facts::{WAITING, Work, print};
use comparison::gate::is_pending;
use tokio::sync::mpsc::{self, error::SendError, error::TrySendError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

enum Message {
    Note,
    Divide(u64, oneshot::Sender<u64>),
}

async fn divider(mut mailbox: mpsc::Receiver<Message>, work: Work) {
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Note => work.note().await,
            Message::Divide(n, reply) => {
                let _ = reply.send(work.divide(n).await);
            }
        }
    }
}

fn spawn(work: &Work, capacity: usize) -> (mpsc::Sender<Message>, JoinHandle<()>) {
    let (sender, mailbox) = mpsc::channel(capacity);
    (sender, tokio::spawn(divider(mailbox, work.clone())))
}

async fn panics() -> [String; 4] {
    let work = Work::default();
    let (sender, running) = spawn(&work, 8);
    work.gate.close();
    let (reply, answer) = oneshot::channel();
    assert!(sender.try_send(Message::Divide(0, reply)).is_ok());
    work.gate.reached(1).await;
    for _ in 0..WAITING {
        assert!(sender.try_send(Message::Note).is_ok());
    }
    work.gate.open();
    let asker = answer.await.unwrap_err();
    let panic = running.await.unwrap_err().into_panic();
    let owner = panic.downcast_ref::<&str>().expect("the panic has a text");
    let Err(SendError(Message::Note)) = sender.send(Message::Note).await else {
        panic!("a later message does not come back")
    };
    [
        format!("`{asker}`"),
        format!("`{owner}`, from the `JoinHandle`"),
        format!("{} are handled", work.notes()),
        "comes back".into(),
    ]
}

async fn full() -> [String; 2] {
    let work = Work::default();
    work.gate.close();
    let (sender, _running) = spawn(&work, 1);
    assert!(sender.try_send(Message::Note).is_ok());
    work.gate.reached(1).await;
    assert!(sender.try_send(Message::Note).is_ok());
    let Err(TrySendError::Full(Message::Note)) = sender.try_send(Message::Note) else {
        panic!("a message does not come back")
    };
    let mut send = Box::pin(async { sender.send(Message::Note).await.is_ok() });
    assert!(is_pending(&mut send).await);
    work.gate.open();
    assert!(send.await);
    ["comes back: `try_send`".into(), "waits: `send`".into()]
}

async fn stop() -> String {
    let work = Work::default();
    let (sender, running) = spawn(&work, 8);
    for _ in 0..WAITING {
        assert!(sender.try_send(Message::Note).is_ok());
    }
    drop(sender);
    running.await.unwrap();
    format!("{} are handled, once every sender is dropped", work.notes())
}

fn main() {
    let tokio = || tokio::runtime::Runtime::new().unwrap();
    let facts = tokio().block_on(async { (panics().await, full().await, stop().await) });
    let ([asker, owner, waiting, later], [full, room], stop) = facts;
    let restart = "the program spawns another task, with an empty channel".into();
    let work = Work::default();
    work.gate.close();
    tokio().block_on(async {
        let (sender, _running) = spawn(&work, 8);
        for _ in 0..WAITING {
            assert!(sender.try_send(Message::Note).is_ok());
        }
    });
    work.gate.open();
    let end = format!("{} are handled, unless `main` waits for them", work.notes());
    print([asker, owner, waiting, later, restart, full, room, stop, end]);
}
