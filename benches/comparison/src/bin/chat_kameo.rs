//! A chat server, in kameo.

use std::collections::BTreeMap;

use comparison::chat::{OUTBOX, hear_the_end, talk};
use kameo::error::Infallible;
use kameo::prelude::*;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task;

#[derive(Actor)]
struct Member(OwnedWriteHalf);

#[messages]
impl Member {
    #[message]
    async fn show(&mut self, line: String) -> std::io::Result<()> {
        self.0.write_all(format!("{line}\n").as_bytes()).await
    }
}

type Room = BTreeMap<String, ActorRef<Member>>;

#[derive(Default)]
struct Hub(BTreeMap<String, Room>);

impl Actor for Hub {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(hub: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(hub)
    }

    async fn on_stop(
        &mut self,
        _hub: WeakActorRef<Self>,
        _reason: ActorStopReason,
    ) -> Result<(), Infallible> {
        for members in self.0.values_mut() {
            tell_all(members, "the server ends".into());
        }
        Ok(())
    }
}

#[messages]
impl Hub {
    #[message]
    fn join(&mut self, room: String, name: String, member: ActorRef<Member>) {
        let members = self.0.entry(room).or_default();
        members.insert(name.clone(), member);
        tell_all(members, format!("{name} joins"));
    }

    #[message]
    fn say(&mut self, room: String, name: String, line: String) {
        if let Some(members) = self.0.get_mut(&room) {
            tell_all(members, format!("{name}: {line}"));
        }
    }

    #[message]
    fn leave(&mut self, room: String, name: String) {
        if let Some(members) = self.0.get_mut(&room)
            && members.remove(&name).is_some()
        {
            tell_all(members, format!("{name} leaves"));
        }
    }
}

fn tell_all(members: &mut Room, line: String) {
    let mut slow = Vec::new();
    for (name, member) in &*members {
        let sent = member.tell(Show { line: line.clone() }).try_send();
        if let Err(SendError::MailboxFull(_)) = sent {
            slow.push(name.clone());
        }
    }
    for name in slow {
        if let Some(member) = members.remove(&name) {
            member.kill();
        }
        tell_all(members, format!("{name} falls behind"));
    }
}

async fn connection(stream: TcpStream, hub: ActorRef<Hub>) {
    let (reader, writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    let Ok(Some(hello)) = lines.next_line().await else {
        return;
    };
    let Some((room, name)) = hello.split_once(' ') else {
        return;
    };
    let [room, name] = [room, name].map(str::to_owned);
    let member = Member::spawn_with_mailbox(Member(writer), mailbox::bounded(OUTBOX));
    let join = Join {
        room: room.clone(),
        name: name.clone(),
        member,
    };
    if hub.tell(join).await.is_err() {
        return;
    }
    while let Ok(Some(line)) = lines.next_line().await
        && line != "/quit"
    {
        let say = Say {
            room: room.clone(),
            name: name.clone(),
            line,
        };
        if hub.tell(say).await.is_err() {
            break;
        }
    }
    let _ = hub.tell(Leave { room, name }).await;
}

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let hub = Hub::spawn(Hub::default());
    let address = hub.clone();
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, address.clone()));
        }
    });
    let members = task::spawn_blocking(move || talk(server)).await.unwrap();
    accepting.abort();
    hub.stop_gracefully().await.unwrap();
    hub.wait_for_shutdown().await;
    task::spawn_blocking(move || hear_the_end(members))
        .await
        .unwrap();
}
