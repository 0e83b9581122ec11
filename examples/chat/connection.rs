//! A connection: an actor that has a socket, reads what is typed and writes what a room passes on.
//!
//! Its mailbox is its outbox, which is bounded. While the socket takes nothing, this actor receives
//! nothing: neither from the room, which then drops lines, nor from its own client.

use std::fmt::Display;
use std::net::Shutdown;
use std::time::Duration;

use async_net::TcpStream;
use futures::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use futures::stream::{self, Stream, StreamExt};
use greenroom::time::timeout;
use greenroom::{Address, AskError, Context};

use crate::hall::Find;
use crate::room::{Line, ToRoom};

/// The maximum length of a typed line in bytes. A client that types more is disconnected.
const LINE: u64 = 2000;
/// The maximum number of lines that are written at once.
const BATCH: usize = 256;
/// The maximum time that a client has to close its side.
const LINGER: Duration = Duration::from_secs(1);
/// The maximum length of a name in bytes.
const NAME: usize = 20;

pub enum Event {
    Out(Line),
    Typed(String),
    /// No more is typed.
    End,
}

/// What became of the lines that were meant for a client.
pub struct Tally {
    pub name: String,
    pub written: u64,
    pub missed: u64,
}

/// The place of a client in a room.
struct Seat {
    room: Address<ToRoom>,
    id: u64,
}

struct Client {
    socket: TcpStream,
    /// The time after which a client that takes nothing is disconnected.
    patience: Duration,
    hall: Address<Find>,
    room: String,
    seat: Option<Seat>,
    /// Nothing more is written, only counted.
    is_lost: bool,
    tally: Tally,
}

/// The socket failed, or its client took nothing for too long.
struct Lost;

/// Returns when the client has quit or is lost, or after a stop once its outbox is written.
pub async fn connection(
    mut cx: Context<Event>,
    socket: TcpStream,
    patience: Duration,
    hall: Address<Find>,
) -> Tally {
    let typed = lines(socket.clone()).map(Event::Typed);
    cx.attach(typed.chain(stream::iter([Event::End]))).detach();
    let tally = Tally {
        name: String::from("a client without a name"),
        written: 0,
        missed: 0,
    };
    let mut client = Client {
        socket,
        patience,
        hall,
        room: String::from("lobby"),
        seat: None,
        is_lost: false,
        tally,
    };
    if client.tell("what is your name?").await.is_ok() {
        let _ = client.serve(&mut cx).await; // if it is lost, its room still counts
    }
    if client.leave(&mut cx).await.is_ok() && client.tell("bye").await.is_ok() {
        client.close().await;
    }
    client.tally
}

impl Client {
    async fn serve(&mut self, cx: &mut Context<Event>) -> Result<(), Lost> {
        let mut next = None;
        loop {
            let event = match next.take() {
                Some(event) => event,
                None => match cx.recv().await {
                    Some(event) => event,
                    None => return Ok(()),
                },
            };
            match event {
                Event::Out(line) => {
                    let mut batch = vec![line];
                    while batch.len() < BATCH && next.is_none() {
                        match cx.try_recv() {
                            Some(Event::Out(line)) => batch.push(line),
                            Some(other) => next = Some(other),
                            None => break,
                        }
                    }
                    self.write(&batch).await?;
                }
                Event::Typed(text) => match text.split_once(' ') {
                    _ if text == "/quit" => return Ok(()),
                    Some(("/join", room)) => {
                        self.leave(cx).await?;
                        self.room = room.to_owned();
                        self.enter(cx, self.tally.name.clone()).await?;
                    }
                    _ => match &self.seat {
                        None => self.enter(cx, text).await?,
                        // Waits while the room has too much to do.
                        Some(Seat { room, id }) => {
                            if room.send(ToRoom::Say(*id, text)).await.is_err() {
                                self.seat = None;
                                self.tell("the room has failed; what is your name?").await?;
                            }
                        }
                    },
                },
                Event::End => return Ok(()),
            }
        }
    }

    /// Enters the room under this name, or tells why that is not possible.
    async fn enter(&mut self, cx: &Context<Event>, name: String) -> Result<(), Lost> {
        if !(1..=NAME).contains(&name.len()) || !name.chars().all(char::is_alphanumeric) {
            let rule = format!("a name has 1 to {NAME} letters and digits; what is yours?");
            return self.tell(rule).await;
        }
        match self.ask_for_seat(cx, &name).await {
            Ok((seat, others)) => {
                self.seat = Some(seat);
                self.tally.name = name;
                let welcome = format!("welcome to {}, others here: {others}", self.room);
                self.tell(welcome).await
            }
            Err(error) => self.tell(format!("{error}; another name?")).await,
        }
    }

    async fn ask_for_seat(
        &self,
        cx: &Context<Event>,
        name: &str,
    ) -> Result<(Seat, usize), AskError> {
        let outbox = cx.address().map(Event::Out);
        let id = outbox.id();
        let room = self.hall.ask(|reply| (self.room.clone(), reply)).await?;
        let enter = |reply| ToRoom::Enter(name.to_owned(), outbox, reply);
        let others = room.ask(enter).await?;
        Ok((Seat { room, id }, others))
    }

    /// Leaves the room, and writes what it had passed on before.
    async fn leave(&mut self, cx: &mut Context<Event>) -> Result<(), Lost> {
        let Some(seat) = self.seat.take() else {
            return Ok(());
        };
        let untold = seat.room.ask(|reply| ToRoom::Leave(seat.id, reply)).await;
        let mut last = Vec::new();
        while let Some(event) = cx.try_recv() {
            if let Event::Out(line) = event {
                last.push(line);
            }
        }
        last.extend(untold.ok().filter(|&untold| untold > 0).map(Line::Missed));
        self.write(&last).await
    }

    /// Writes these lines, and counts what became of them.
    async fn write(&mut self, lines: &[Line]) -> Result<(), Lost> {
        let mut text = String::new();
        for line in lines {
            match line {
                Line::Text(line) => text.push_str(line),
                Line::Missed(lines) => text.push_str(&format!("* you missed {lines} lines")),
            }
            text.push('\n');
        }
        let (written, result) = self.send(text.as_bytes()).await;
        let complete = text.as_bytes()[..written]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        for (index, line) in lines.iter().enumerate() {
            match line {
                Line::Text(_) if index < complete => self.tally.written += 1,
                Line::Text(_) => self.tally.missed += 1,
                Line::Missed(lines) => self.tally.missed += lines,
            }
        }
        result
    }

    async fn tell(&mut self, text: impl Display) -> Result<(), Lost> {
        self.send(format!("* {text}\n").as_bytes()).await.1
    }

    /// Reads until the client closes its side, too. A socket that is closed while it has unread input
    /// is reset, and the client might lose the last lines.
    async fn close(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
        let mut ignored = [0; 1024];
        let rest = async { while let Ok(1..) = self.socket.read(&mut ignored).await {} };
        let _ = timeout(LINGER, rest).await;
    }

    /// Writes bytes. Returns how many the socket took.
    async fn send(&mut self, bytes: &[u8]) -> (usize, Result<(), Lost>) {
        let mut written = 0;
        if self.is_lost {
            return (written, Err(Lost));
        }
        let all = async {
            while written < bytes.len() {
                match self.socket.write(&bytes[written..]).await {
                    Ok(0) | Err(_) => return Err(Lost),
                    Ok(more) => written += more,
                }
            }
            Ok(())
        };
        let result = timeout(self.patience, all).await.unwrap_or(Err(Lost));
        self.is_lost = result.is_err();
        (written, result)
    }
}

/// Returns the lines that are typed, until the first that is incomplete or too long.
fn lines(socket: TcpStream) -> impl Stream<Item = String> {
    stream::unfold(BufReader::new(socket), |mut reader| async move {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(LINE);
        limited.read_until(b'\n', &mut line).await.ok()?;
        let line = line.strip_suffix(b"\n")?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some((String::from_utf8_lossy(line).into_owned(), reader))
    })
}
