//! The door: an actor that accepts clients, and owns their connections.
//!
//! When it is stopped, the listener is dropped, so no client comes in any more. Its children are
//! stopped, and their results are the last messages that it receives.

use std::io;
use std::time::Duration;

use async_net::{TcpListener, TcpStream};
use futures::stream::{self, StreamExt};
use greenroom::{Address, Context, Fault, spawn, time};

use crate::connection::{Tally, connection};
use crate::hall::Find;

/// The number of lines that a slow reader has waiting. More are dropped.
const OUTBOX: usize = 256;
/// The pause after a client that could not be accepted, for example since there are too many.
const PAUSE: Duration = Duration::from_millis(100);

pub enum Event {
    Came(io::Result<TcpStream>),
    Left(Result<Tally, Fault>),
}

pub async fn door(
    mut cx: Context<Event>,
    listener: TcpListener,
    patience: Duration,
    hall: Address<Find>,
) -> Tally {
    let clients = stream::unfold(listener, |listener| async move {
        Some((listener.accept().await.map(|(socket, _)| socket), listener))
    });
    cx.attach(clients.map(Event::Came)).detach();
    let mut sum = Tally {
        name: String::from("all"),
        written: 0,
        missed: 0,
    };
    while let Some(event) = cx.recv().await {
        match event {
            Event::Came(Ok(socket)) => {
                let hall = hall.clone();
                let client = spawn!(connection(_, socket, patience, hall), capacity = OUTBOX);
                cx.adopt(client, Event::Left);
            }
            Event::Came(Err(error)) => {
                eprintln!("chat: {error}");
                time::sleep(PAUSE).await;
            }
            Event::Left(Ok(tally)) => {
                sum.written += tally.written;
                sum.missed += tally.missed;
                println!("{tally}");
            }
            Event::Left(Err(fault)) => eprintln!("chat: a connection {fault}"),
        }
    }
    sum
}
