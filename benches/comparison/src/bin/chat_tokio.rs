//! A chat server, on tokio by hand.

use std::collections::BTreeMap;

use comparison::chat::{OUTBOX, hear_the_end, talk};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::{self, AbortHandle};

enum Message {
    Join(String, String, Member),
    Say(String, String, String),
    Leave(String, String),
    End,
}

struct Member {
    outbox: mpsc::Sender<String>,
    writer: AbortHandle,
}

type Room = BTreeMap<String, Member>;

async fn hub(mut mailbox: mpsc::Receiver<Message>) {
    let mut rooms = BTreeMap::<String, Room>::new();
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Join(room, name, member) => {
                let members = rooms.entry(room).or_default();
                members.insert(name.clone(), member);
                tell_all(members, format!("{name} joins"));
            }
            Message::Say(room, name, line) => {
                if let Some(members) = rooms.get_mut(&room) {
                    tell_all(members, format!("{name}: {line}"));
                }
            }
            Message::Leave(room, name) => {
                if let Some(members) = rooms.get_mut(&room)
                    && members.remove(&name).is_some()
                {
                    tell_all(members, format!("{name} leaves"));
                }
            }
            Message::End => break, // each connection has a sender, so the mailbox never closes
        }
    }
    for mut members in rooms.into_values() {
        tell_all(&mut members, "the server ends".into());
    }
}

fn tell_all(members: &mut Room, line: String) {
    let mut slow = Vec::new();
    for (name, member) in &*members {
        if let Err(TrySendError::Full(_)) = member.outbox.try_send(line.clone()) {
            slow.push(name.clone());
        }
    }
    for name in slow {
        if let Some(member) = members.remove(&name) {
            member.writer.abort();
        }
        tell_all(members, format!("{name} falls behind"));
    }
}

async fn write(mut outbox: mpsc::Receiver<String>, mut stream: OwnedWriteHalf) {
    while let Some(line) = outbox.recv().await {
        if stream
            .write_all(format!("{line}\n").as_bytes())
            .await
            .is_err()
        {
            break;
        }
    }
}

async fn connection(stream: TcpStream, hub: mpsc::Sender<Message>) {
    let (reader, writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    let Ok(Some(hello)) = lines.next_line().await else {
        return;
    };
    let Some((room, name)) = hello.split_once(' ') else {
        return;
    };
    let [room, name] = [room, name].map(str::to_owned);
    let (outbox, lines_to_write) = mpsc::channel(OUTBOX);
    let writer = tokio::spawn(write(lines_to_write, writer)).abort_handle();
    let join = Message::Join(room.clone(), name.clone(), Member { outbox, writer });
    if hub.send(join).await.is_err() {
        return;
    }
    while let Ok(Some(line)) = lines.next_line().await
        && line != "/quit"
    {
        if hub
            .send(Message::Say(room.clone(), name.clone(), line))
            .await
            .is_err()
        {
            break;
        }
    }
    let _ = hub.send(Message::Leave(room, name)).await;
}

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let (sender, mailbox) = mpsc::channel(64);
    let hub = tokio::spawn(hub(mailbox));
    let address = sender.clone();
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, address.clone()));
        }
    });
    let members = task::spawn_blocking(move || talk(server)).await.unwrap();
    accepting.abort();
    sender.send(Message::End).await.unwrap();
    hub.await.unwrap();
    task::spawn_blocking(move || hear_the_end(members))
        .await
        .unwrap();
}
