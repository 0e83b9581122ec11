//! This example measures a running `texture_server`:
//! `load [--connections N] [--seconds N] [--path PATH] ADDRESS`.
//!
//! ```text
//!  connection 1 ── request, answer, request, answer .. ──┐
//!  connection 2 ── request, answer, request, answer .. ──┼──> one tally
//!  connection N ── request, answer, request, answer .. ──┘
//! ```
//!
//! Each connection is a thread, and sends its next request when the last one is answered. It opens a
//! new connection when the server closes its own. By default 8 connections ask for `/Xy?x=8&y=8`
//! for 5 seconds. It prints lines like these:
//!
//! ```text
//! 170877 requests in 5.001 s
//! 34167 requests a second
//! status 200: 170877
//! p50 216 µs
//! p99 621 µs
//! ```
//!
//! An answer with status 200 must be a table of the size that the path asks for, plain or in the
//! envelope. A wrong table, or a connection that fails, ends it with exit status 71. With wrong
//! arguments it is 2.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The exit status of a fault.
const FAULT: u8 = 71;

const USAGE: &str = "usage: load [--connections N] [--seconds N] [--path PATH] ADDRESS";

/// An answer that takes longer is a fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// A longer answer is a fault.
const BODY_MAX: usize = 1 << 30;

struct Options {
    address: SocketAddr,
    connections: usize,
    time: Duration,
    path: String,
    /// The size of the table that the path asks for.
    columns: usize,
    rows: usize,
}

/// What the answers were, and how long each took in microseconds.
#[derive(Default)]
struct Tally {
    statuses: BTreeMap<u16, usize>,
    times: Vec<u32>,
}

impl Tally {
    fn count(&mut self, status: u16, time: Duration) {
        *self.statuses.entry(status).or_default() += 1;
        let time = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        self.times.push(time);
    }

    fn add(&mut self, other: Tally) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.times.extend(other.times);
    }

    fn print(&mut self, elapsed: Duration) {
        let (requests, seconds) = (self.times.len(), elapsed.as_secs_f64());
        println!("{requests} requests in {seconds:.3} s");
        println!("{:.0} requests a second", requests as f64 / seconds);
        for (status, count) in &self.statuses {
            println!("status {status}: {count}");
        }
        self.times.sort_unstable();
        for percent in [50, 99] {
            // The least time that so many percent of the requests did not exceed.
            let rank = (requests * percent).div_ceil(100).max(1);
            if let Some(time) = self.times.get(rank - 1) {
                println!("p{percent} {time} µs");
            }
        }
    }
}

/// What the head of an answer says.
struct Head {
    status: u16,
    /// The bytes of the head and of the body.
    head: usize,
    body: usize,
    /// The server closes the connection after this answer.
    is_last: bool,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

impl Head {
    /// Reads a head. Returns `None` as long as it is incomplete.
    fn of(bytes: &[u8]) -> io::Result<Option<Head>> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = str::from_utf8(&bytes[..end]);
        let text = text.map_err(|_| malformed("the head of an answer is no text"))?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok());
        let (mut body, mut is_last) = (None, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                body = value.parse().ok().filter(|length| *length <= BODY_MAX);
            } else if name.eq_ignore_ascii_case("connection") {
                is_last = value.eq_ignore_ascii_case("close");
            }
        }
        Ok(Some(Head {
            status: status.ok_or_else(|| malformed("an answer has no status"))?,
            head: end + 4,
            body: body.ok_or_else(|| malformed("an answer has no possible length"))?,
            is_last,
        }))
    }
}

/// A connection that is kept from one request to the next.
struct Connection {
    stream: TcpStream,
    /// The bytes of the answer that is being read.
    bytes: Vec<u8>,
    /// No request has been answered yet.
    is_new: bool,
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection {
            stream,
            bytes: Vec::new(),
            is_new: true,
        })
    }

    /// Sends a request and reads the answer. Returns `None` if the server has closed the connection
    /// before, as it may do between two requests.
    fn get(&mut self, request: &[u8]) -> io::Result<Option<Head>> {
        self.bytes.clear();
        let answered = match self.stream.write_all(request) {
            Ok(()) => self.read(),
            Err(error) => Err(error),
        };
        let is_closed = |error: &io::Error| {
            let kind = error.kind();
            matches!(
                kind,
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            )
        };
        match answered {
            Ok(head) => {
                self.is_new = false;
                Ok(Some(head))
            }
            Err(error) if !self.is_new && self.bytes.is_empty() && is_closed(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self) -> io::Result<Head> {
        let mut part = [0; 16 * 1024];
        let mut head = None;
        loop {
            if head.is_none() {
                head = Head::of(&self.bytes)?;
            }
            if let Some(complete) = head.take_if(|head| self.bytes.len() >= head.head + head.body) {
                return match self.bytes.len() == complete.head + complete.body {
                    true => Ok(complete),
                    false => Err(malformed("more has come than the answer")),
                };
            }
            match self.stream.read(&mut part) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.bytes.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Checks that a body is a table of the right size.
fn check(options: &Options, body: &[u8]) -> Result<(), String> {
    type Table = Vec<Vec<f64>>;
    #[derive(Deserialize)]
    struct Envelope {
        value: (IgnoredAny, Table, IgnoredAny),
    }
    let table = match body.first() {
        Some(b'{') => serde_json::from_slice(body).map(|it: Envelope| it.value.1),
        _ => serde_json::from_slice::<Table>(body),
    };
    let table = table.map_err(|error| match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => format!("an answer is no table: {error}"),
        Err(error) => format!("an answer is no JSON: {error}"),
    })?;
    let (columns, rows) = (options.columns, options.rows);
    if table.len() != rows {
        return Err(format!("a table has {} rows, not {rows}", table.len()));
    }
    match table.iter().find(|row| row.len() != columns) {
        Some(row) => Err(format!("a row has {} numbers, not {columns}", row.len())),
        None => Ok(()),
    }
}

/// Sends requests over one connection after the other until the time is over.
fn drive(
    options: &Options,
    first: Connection,
    end: Instant,
    tally: &mut Tally,
) -> Result<(), String> {
    let Options { address, path, .. } = options;
    let failed = |error: io::Error| format!("the connection to {address} failed: {error}");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut connection = first;
    loop {
        let begin = Instant::now();
        let answer = connection.get(request.as_bytes()).map_err(failed)?;
        let is_last = answer.as_ref().is_none_or(|head| head.is_last);
        if let Some(Head { status, head, .. }) = answer {
            tally.count(status, begin.elapsed());
            if status == 200 {
                check(options, &connection.bytes[head..])?;
            }
        }
        if Instant::now() >= end {
            return Ok(());
        }
        if is_last {
            connection = Connection::open(*address).map_err(failed)?;
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let address = options.address;
    let open = |_| Connection::open(address);
    let connections: io::Result<Vec<Connection>> = (0..options.connections).map(open).collect();
    let connections =
        connections.map_err(|error| format!("cannot connect to {address}: {error}"))?;
    let begin = Instant::now();
    let end = begin + options.time;
    let mut all = Tally::default();
    let drive = |connection| {
        let mut tally = Tally::default();
        let driven = drive(options, connection, end, &mut tally);
        (tally, driven)
    };
    let drive = &drive;
    let driven = thread::scope(|scope| {
        let start = |connection| scope.spawn(move || drive(connection));
        let threads: Vec<_> = connections.into_iter().map(start).collect();
        let mut first = Ok(());
        for thread in threads {
            let (tally, driven) = thread.join().expect("no thread panics");
            all.add(tally);
            first = first.and(driven);
        }
        first
    });
    all.print(begin.elapsed());
    driven
}

/// Returns a number of the query of a path, which is 1 if it is left out.
fn number_of(path: &str, name: &str) -> Result<usize, lexopt::Error> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    match pairs.find(|(key, _)| *key == name) {
        Some((_, value)) => {
            let wrong = |_| format!("{name} of the path is {value:?} and no number").into();
            value.parse().map_err(wrong)
        }
        None => Ok(1),
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let (mut connections, mut seconds) = (8, 5.0);
    let (mut path, mut address) = ("/Xy?x=8&y=8".to_owned(), None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("connections") => connections = parser.value()?.parse()?,
            Long("seconds") => seconds = parser.value()?.parse()?,
            Long("path") => path = parser.value()?.string()?,
            Value(value) if address.is_none() => address = Some(value.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let address = address.ok_or("ADDRESS is missing")?;
    let found = address.to_socket_addrs();
    let found = found.map_err(|error| format!("{address:?} is no address: {error}"))?;
    let time = Duration::try_from_secs_f64(seconds);
    let time = time.map_err(|error| format!("--seconds={seconds}: {error}"))?;
    if time > Duration::from_secs(86_400) {
        return Err(format!("--seconds={seconds} is more than a day").into());
    }
    if connections == 0 {
        return Err("--connections=0 is less than 1".into());
    }
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{path:?} is no path").into());
    }
    Ok(Options {
        address: found.into_iter().next().ok_or("ADDRESS has no address")?,
        connections,
        time,
        columns: number_of(&path, "x")?,
        rows: number_of(&path, "y")?,
        path,
    })
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("load: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("load: {problem}");
            ExitCode::from(FAULT)
        }
    }
}
