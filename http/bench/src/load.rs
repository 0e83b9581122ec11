//! The load: connections that are kept and ask again as soon as they are answered.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::Outcome;
use crate::process::{Serving, processor_time};
use crate::servers::Kind;

/// Each of so many requests comes once before the measurement.
const WARM_UP: u64 = 5;

/// What a load has shown.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Requests a second.
    pub rate: f64,
    /// The time within which 99 of 100 requests were answered, in microseconds.
    pub p99: f64,
    /// Processor time of the server a request, in microseconds.
    pub processor: f64,
}

/// Measures a fresh server, from so many processes that share the connections and the requests.
pub fn measure(kind: Kind, processes: u64, connections: u64, requests: u64) -> Outcome<Load> {
    let server = Serving::start(kind)?;
    let (port, connections) = (
        server.port.to_string(),
        (connections / processes).to_string(),
    );
    let requests_each = requests / processes;
    let arguments = [
        "load",
        &port,
        kind.name(),
        &connections,
        &requests_each.to_string(),
    ];
    let started = (0..processes).map(|_| Sending::start(&arguments));
    let mut sending = started.collect::<Outcome<Vec<Sending>>>()?;
    for process in &mut sending {
        process.line()?;
    }
    let (time, processor) = (Instant::now(), processor_time(server.pid())?);
    for process in &mut sending {
        let input = process.child.stdin.take().ok_or("no input")?;
        drop(input);
    }
    let mut p99 = 0.0_f64;
    for process in &mut sending {
        p99 = p99.max(process.line()?.trim().parse()?);
    }
    let (time, after) = (time.elapsed(), processor_time(server.pid())?);
    let asked = (requests_each * processes) as f64;
    Ok(Load {
        rate: asked / time.as_secs_f64(),
        p99,
        processor: (after - processor) as f64 / asked / 1e3,
    })
}

/// A process that sends requests.
struct Sending {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Sending {
    fn start(arguments: &[&str]) -> Outcome<Sending> {
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.args(arguments).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Sending { child, output })
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("the load has ended".into()),
            _ => Ok(line),
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn request(port: u16, path: &str) -> Vec<u8> {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: http-bench\r\n\
         Accept: */*\r\n\r\n"
    );
    head.into_bytes()
}

/// Returns the length of a response, once its head is there. Its status must be 200.
pub fn response_length(bytes: &[u8]) -> Outcome<Option<usize>> {
    // The servers write the names of fields in different cases.
    const LENGTH: &[u8] = b"\r\ncontent-length: ";
    let is = |it: &[u8], what: &[u8]| it.eq_ignore_ascii_case(what);
    let find = |what: &[u8]| bytes.windows(what.len()).position(|it| is(it, what));
    let Some(end) = find(b"\r\n\r\n") else {
        return Ok(None);
    };
    let at = find(LENGTH).ok_or("no length")? + LENGTH.len();
    let digits = bytes[at..].iter().take_while(|it| it.is_ascii_digit());
    let length = digits.fold(0, |sum, it| sum * 10 + usize::from(*it - b'0'));
    match bytes.starts_with(b"HTTP/1.1 200 ") && at < end {
        true => Ok(Some(end + 4 + length)),
        false => Err("the status is not 200".into()),
    }
}

/// Warms a server up, prints a line, waits until the standard input ends, sends so many requests,
/// and prints the time within which 99 of 100 were answered.
pub fn run(port: u16, kind: Kind, connections: usize, requests: u64) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let mut open = Vec::new();
        for number in 0..connections {
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            let request = request(port, &kind.path(number));
            let connection = Connection { stream, request };
            // Each asks once before the next one opens: the line of a listener is short.
            let (left, times) = (Rc::new(Cell::new(1)), Rc::default());
            open.push(connection.ask(left, times).await?);
        }
        let (open, _) = ask_all(open, requests / WARM_UP).await?;
        say("ready")?;
        std::io::stdin().lock().read_line(&mut String::new())?;
        let (_, mut times) = ask_all(open, requests).await?;
        let (_, p99, _) = times.select_nth_unstable(requests as usize * 99 / 100);
        say(&format!("{}", f64::from(*p99) / 1e3))
    })
}

fn say(line: &str) -> Outcome<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// A connection with the request that it sends.
struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
}

/// Lets all connections ask until so many requests are answered. Returns their times in nanoseconds.
async fn ask_all(open: Vec<Connection>, requests: u64) -> Outcome<(Vec<Connection>, Vec<u32>)> {
    let left = Rc::new(Cell::new(requests));
    let times = Rc::new(RefCell::new(Vec::with_capacity(requests as usize)));
    let asking = open.into_iter().map(|connection| {
        let asking = connection.ask(left.clone(), times.clone());
        // The text is enough, and an error of any kind can be sent.
        tokio::task::spawn_local(async { asking.await.map_err(|error| error.to_string()) })
    });
    let asking: Vec<_> = asking.collect();
    let mut open = Vec::new();
    for task in asking {
        open.push(task.await??);
    }
    Ok((open, times.take()))
}

impl Connection {
    async fn ask(mut self, left: Rc<Cell<u64>>, times: Rc<RefCell<Vec<u32>>>) -> Outcome<Self> {
        let mut bytes = [0; 4096];
        while left.get() > 0 {
            left.set(left.get() - 1);
            let begun = Instant::now();
            self.stream.write_all(&self.request).await?;
            let mut filled = 0;
            while response_length(&bytes[..filled])?.is_none_or(|length| filled < length) {
                match self.stream.read(&mut bytes[filled..]).await? {
                    0 => return Err("the connection was closed".into()),
                    read => filled += read,
                }
            }
            let time = begun.elapsed().as_nanos();
            times
                .borrow_mut()
                .push(u32::try_from(time).unwrap_or(u32::MAX));
        }
        Ok(self)
    }
}
