//! A chat server, in greenroom.

use std::collections::BTreeMap;

use async_net::{TcpListener, TcpStream};
use comparison::chat::{OUTBOX, hear_the_end, talk};
use futures_lite::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use futures_lite::{StreamExt, stream};
use greenroom::{Address, Context, spawn, unblock};

enum Message {
    Join(String, String, Address<Event>),
    Say(String, String, String),
    Leave(String, String),
}

type Room = BTreeMap<String, Address<Event>>;

async fn hub(mut cx: Context<Message>) {
    let mut rooms = BTreeMap::<String, Room>::new();
    while let Some(message) = cx.recv().await {
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
        }
    }
    for mut members in rooms.into_values() {
        tell_all(&mut members, "the server ends".into());
    }
}

fn tell_all(members: &mut Room, line: String) {
    let mut slow = Vec::new();
    for (name, member) in &*members {
        let told = member.tell(Event::Show(line.clone()));
        if told.is_err_and(|error| error.is_full()) {
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

enum Event {
    Line(String),
    Left,
    Show(String),
}

async fn connection(mut cx: Context<Event>, mut stream: TcpStream, hub: Address<Message>) {
    let mut lines = BufReader::new(stream.clone()).lines();
    let Some(Ok(hello)) = lines.next().await else {
        return;
    };
    let Some((room, name)) = hello.split_once(' ') else {
        return;
    };
    let [room, name] = [room, name].map(str::to_owned);
    let join = Message::Join(room.clone(), name.clone(), cx.address());
    if hub.send(join).await.is_err() {
        return;
    }
    let lines = lines
        .map_while(Result::ok)
        .take_while(|line| line != "/quit");
    let events = lines.map(Event::Line).chain(stream::once(Event::Left));
    let _lines = cx.attach(events).background(); // which end with the last address
    while let Some(event) = cx.recv().await {
        let is_done = match event {
            Event::Line(line) => hub
                .send(Message::Say(room.clone(), name.clone(), line))
                .await
                .is_ok(),
            Event::Show(line) => stream
                .write_all(format!("{line}\n").as_bytes())
                .await
                .is_ok(),
            Event::Left => false,
        };
        if !is_done {
            break;
        }
    }
    let _ = hub.send(Message::Leave(room, name)).await;
}

fn main() {
    greenroom::run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let hub = spawn!(hub(_), capacity = 64);
        let address = hub.address();
        let accepting = greenroom::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                spawn!(connection(_, stream, address.clone()), capacity = OUTBOX).detach();
            }
        });
        let members = unblock(move || talk(server)).await;
        drop(accepting);
        hub.stop();
        hub.join().await.unwrap();
        unblock(move || hear_the_end(members)).await;
    });
}
