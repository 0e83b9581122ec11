//! The load: connections that are kept and ask again as soon as they are answered.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::Outcome;
use crate::process::processor_time;

const CONNECTIONS: usize = 64;
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

/// Sends requests to a process, and measures both.
pub fn run(pid: u32, port: u16, path: &str, requests: u64) -> Outcome<Load> {
    let request: Rc<[u8]> = request(port, path).into();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            open.push(stream);
        }
        let (open, _) = ask_all(open, &request, requests / WARM_UP).await?;
        let (time, processor) = (Instant::now(), processor_time(pid)?);
        let (_, mut times) = ask_all(open, &request, requests).await?;
        let (time, after) = (time.elapsed(), processor_time(pid)?);
        let asked = times.len() as f64;
        let (_, p99, _) = times.select_nth_unstable(requests as usize * 99 / 100);
        Ok(Load {
            rate: asked / time.as_secs_f64(),
            p99: f64::from(*p99) / 1e3,
            processor: (after - processor) as f64 / asked / 1e3,
        })
    })
}

/// Lets all connections ask until so many requests are answered. Returns their times in nanoseconds.
async fn ask_all(
    open: Vec<TcpStream>,
    request: &Rc<[u8]>,
    requests: u64,
) -> Outcome<(Vec<TcpStream>, Vec<u32>)> {
    let left = Rc::new(Cell::new(requests));
    let times = Rc::new(RefCell::new(Vec::with_capacity(requests as usize)));
    let asking = open.into_iter().map(|stream| {
        let asking = ask(stream, request.clone(), left.clone(), times.clone());
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

async fn ask(
    mut stream: TcpStream,
    request: Rc<[u8]>,
    left: Rc<Cell<u64>>,
    times: Rc<RefCell<Vec<u32>>>,
) -> Outcome<TcpStream> {
    let mut bytes = [0; 4096];
    while left.get() > 0 {
        left.set(left.get() - 1);
        let begun = Instant::now();
        stream.write_all(&request).await?;
        let mut filled = 0;
        while response_length(&bytes[..filled])?.is_none_or(|length| filled < length) {
            match stream.read(&mut bytes[filled..]).await? {
                0 => return Err("the connection was closed".into()),
                read => filled += read,
            }
        }
        let time = begun.elapsed().as_nanos();
        times
            .borrow_mut()
            .push(u32::try_from(time).unwrap_or(u32::MAX));
    }
    Ok(stream)
}
