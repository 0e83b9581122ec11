//! Servers with a few types, and a client that sees each byte.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{NaiveDate, NaiveDateTime};
use greenroom::{Context, Handle, Refusal, RefusalKind, Reply, Runtime, spawn};
use greenroom_http::{HttpRequest, HttpResponse, Limits, Server, ServerBuilder};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The request of layer_cake's example: the size of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Xy {
    #[serde(default = "one")]
    pub x: u32,
    #[serde(default = "one")]
    pub y: u32,
}

fn one() -> u32 {
    1
}

/// A request with a field of each kind.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kinds {
    pub number: i64,
    pub float: f64,
    pub yes: bool,
    pub text: String,
    pub color: Color,
    pub list: Vec<u8>,
    pub map: std::collections::BTreeMap<String, u8>,
    pub maybe: Option<u32>,
    pub day: NaiveDate,
    pub at: NaiveDateTime,
    pub id: Uuid,
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    #[default]
    Red,
    Green,
}

/// How the answer to an `Act` is to be.
#[derive(Debug, Serialize, Deserialize)]
pub struct Act {
    pub how: String,
}

pub enum Message {
    Xy(Xy, Reply<Vec<Vec<f64>>>),
    Kinds(Kinds, Reply<Kinds>),
    Act(Act, Reply<u32>),
    Nan(Reply<f64>),
    Raw(HttpRequest, Reply<HttpResponse>),
}

/// What the actor does with the replies that it keeps, and has seen.
#[derive(Clone, Default)]
pub struct Seen {
    pub kept: Arc<Mutex<Vec<Reply<u32>>>>,
    pub messages: Arc<Mutex<usize>>,
}

async fn answers(mut cx: Context<Message>, seen: Seen) {
    while let Some(message) = cx.recv().await {
        *seen.messages.lock().unwrap() += 1;
        match message {
            Message::Xy(Xy { x, y }, reply) => {
                reply.send(vec![vec![0.5; x as usize]; y as usize]);
            }
            Message::Kinds(kinds, reply) => reply.send(kinds),
            Message::Act(act, reply) => act_on(&act, reply, &seen),
            Message::Nan(reply) => reply.send(f64::NAN),
            Message::Raw(request, reply) => {
                let HttpRequest {
                    method,
                    uri,
                    headers,
                    body,
                    ..
                } = request;
                let body = String::from_utf8_lossy(&body);
                let text = format!("{method} {uri} {headers:?} {body}");
                reply.send(HttpResponse::new(202, text).header("x-own", "yes"));
            }
        }
    }
}

fn act_on(act: &Act, reply: Reply<u32>, seen: &Seen) {
    let refusal = match &*act.how {
        "answer" => return reply.send(42),
        "drop" => return drop(reply),
        "keep" => return seen.kept.lock().unwrap().push(reply),
        "panic" => panic!("a secret"),
        "busy" => Refusal::of(RefusalKind::Busy, "come again"),
        "timed" => Refusal::of(RefusalKind::TimedOut, "late"),
        "teapot" => Refusal::new("short", "and stout")
            .with_error_code(418)
            .with_exit_status(3),
        code => match code.parse() {
            Ok(code) => Refusal::new("odd", "").with_error_code(code),
            Err(_) => Refusal::new("unknown", code),
        },
    };
    reply.refuse(refusal);
}

/// Longer than any stop of a machine that tests share.
pub const LONG: Duration = Duration::from_secs(1000);

/// Returns limits whose times no slow machine hits: a client may stop between any two bytes.
pub fn patient() -> Limits {
    Limits {
        head_time: LONG,
        body_time: LONG,
        body_rate: 0,
        answer_time: LONG,
        idle_time: LONG,
        write_time: LONG,
        write_rate: 0,
        ..Limits::default()
    }
}

/// A server that runs, its actor, and what the actor has seen.
pub struct Served {
    pub runtime: Runtime,
    pub server: Server,
    pub actor: Handle<Message, ()>,
    pub seen: Seen,
}

/// Registers `/Xy`, `/Kinds`, `/Act` and `/Nan`, whose answer JSON does not have. Nothing but the
/// client ends a request, unless `more` says so.
pub fn served(more: impl FnOnce(ServerBuilder, &Handle<Message, ()>) -> ServerBuilder) -> Served {
    served_on(Runtime::builder().workers(2), more)
}

/// Does as [`served`], on a runtime with these options.
pub fn served_on(
    runtime: greenroom::Builder,
    more: impl FnOnce(ServerBuilder, &Handle<Message, ()>) -> ServerBuilder,
) -> Served {
    served_at("127.0.0.1:0", runtime, more)
}

/// Does as [`served_on`], at another address.
pub fn served_at(
    at: &str,
    runtime: greenroom::Builder,
    more: impl FnOnce(ServerBuilder, &Handle<Message, ()>) -> ServerBuilder,
) -> Served {
    let runtime = runtime.driver(greenroom_http::driver());
    let runtime = runtime.on_fault(|_| {}).build().unwrap();
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        if !text.contains("a secret") {
            eprintln!("{text}");
        }
    }));
    let seen = Seen::default();
    let own = seen.clone();
    let actor = spawn!(answers(_, own), on = &runtime);
    let address = actor.address();
    let builder = Server::bind(at)
        .limits(patient())
        .grace(LONG)
        .on("Xy", &address, Message::Xy)
        .on("Kinds", &address, Message::Kinds)
        .on("Act", &address, Message::Act)
        .on("Nan", &address, |_: Act, reply| Message::Nan(reply));
    let builder = more(builder, &actor);
    let server = runtime.block_on(runtime.spawn(builder.listen())).unwrap();
    Served {
        runtime,
        server,
        actor,
        seen,
    }
}

pub fn plain() -> Served {
    served(|builder, _| builder)
}

/// Takes an address when it is free, and listens there only when the test says so: no other test gets
/// it meanwhile.
pub fn held(address: SocketAddr) -> socket2::Socket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    // Connections of before may still be known to the system.
    socket.set_reuse_address(true).unwrap();
    until("the address is free", || {
        socket.bind(&address.into()).is_ok()
    });
    socket
}

/// A response as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    /// Returns what a refusal says, as its `Display` does. Any other body is as it is.
    pub fn text(&self) -> String {
        let json = serde_json::from_str::<serde_json::Value>(&self.body);
        let word = |key: &str| Some(json.as_ref().ok()?.get(key)?.as_str()?.to_owned());
        match (word("condition"), word("explanation")) {
            (Some(condition), Some(explanation)) => format!("{condition} ({explanation})"),
            _ => self.body.clone(),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }
}

/// A connection to a server.
pub struct Client(pub TcpStream);

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Client(stream)
    }

    /// Ends the connection so that the other side sees it at once.
    pub fn reset(self) {
        let socket = socket2::SockRef::from(&self.0);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads some bytes. A wait with a limit is interrupted when a process goes on after a stop.
    pub fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.0.read(bytes) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Waits until there is something to read.
    pub fn wait_for_answer(&self) {
        while let Err(error) = self.0.peek(&mut [0]) {
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "{error}");
        }
    }

    /// Reads a response. `is_of_head`: to a HEAD request, so it has no body.
    pub fn response_to(&mut self, is_of_head: bool) -> Option<Response> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match self.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                other => {
                    assert!(
                        head.is_empty(),
                        "{other:?}, {}",
                        String::from_utf8_lossy(&head)
                    );
                    return None;
                }
            }
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let (_, status) = lines.next().unwrap().split_once(' ').unwrap();
        let (status, reason) = status.split_once(' ').unwrap_or((status, ""));
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut response = Response {
            status: status.parse().unwrap(),
            reason: reason.to_owned(),
            headers: headers.collect(),
            body: String::new(),
        };
        let length = response.header("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; if is_of_head { 0 } else { length }];
        self.0.read_exact(&mut body).unwrap();
        response.body = String::from_utf8(body).unwrap();
        Some(response)
    }

    pub fn response(&mut self) -> Response {
        self.response_to(false).expect("the connection is open")
    }

    /// Returns whether the server closes the connection without saying more.
    pub fn is_closed(&mut self) -> bool {
        match self.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    pub fn get(&mut self, uri: &str) -> Response {
        self.send(format!("GET {uri} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        self.response()
    }

    pub fn post(&mut self, uri: &str, media: &str, body: &str) -> Response {
        let length = body.len();
        self.send(format!(
            "POST {uri} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        self.response()
    }
}

impl Served {
    pub fn client(&self) -> Client {
        Client::new(self.server.local_addr())
    }

    pub fn get(&self, uri: &str) -> Response {
        self.client().get(uri)
    }

    pub fn post(&self, uri: &str, media: &str, body: &str) -> Response {
        self.client().post(uri, media, body)
    }

    /// Waits until the actor has kept a reply, and takes it.
    pub fn kept(&self) -> greenroom::Reply<u32> {
        let kept = || self.seen.kept.lock().unwrap();
        until("a reply was kept", || !kept().is_empty());
        kept().remove(0)
    }

    /// Returns how many messages the actor has received.
    pub fn messages(&self) -> usize {
        *self.seen.messages.lock().unwrap()
    }
}

/// Returns the number of a line of metrics.
pub fn number(page: &str, line: &str) -> Option<f64> {
    let mut lines = page.lines();
    let rest = lines.find_map(|it| it.strip_prefix(line)?.strip_prefix(' '))?;
    Some(rest.parse().unwrap())
}

/// Waits until something is so, at most a minute.
pub fn until(what: impl Debug, mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("not within a minute: {what:?}");
}
