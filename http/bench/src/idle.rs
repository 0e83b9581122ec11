//! What connections cost while no request comes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use crate::Outcome;
use crate::load::{request, response_length};
use crate::process::{Serving, resident, switches};
use crate::servers::Kind;

const CONNECTIONS: usize = 1000;

/// The cost of idle connections.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    /// Bytes of live memory a connection.
    pub live: f64,
    /// Bytes of resident memory a connection.
    pub resident: f64,
    /// Context switches of the server in five seconds.
    pub switches: u64,
}

/// Measures a server with 1000 connections, of which each has had one answer.
pub fn measure(kind: Kind) -> Outcome<Idle> {
    let mut server = Serving::start(kind)?;
    let request = request(server.port, &kind.path(0));
    let _first = asked(server.port, &request)?;
    server.memory()?;
    sleep(Duration::from_millis(200));
    let (live, before) = (server.memory()?, resident(server.pid())?);
    let connections = (0..CONNECTIONS).map(|_| asked(server.port, &request));
    let _connections: Vec<TcpStream> = connections.collect::<Outcome<_>>()?;
    sleep(Duration::from_millis(500));
    let (live, after) = (server.memory()? - live, resident(server.pid())?);
    sleep(Duration::from_millis(500));
    let switched = switches(server.pid())?;
    sleep(Duration::from_secs(5));
    Ok(Idle {
        live: live as f64 / CONNECTIONS as f64,
        resident: after.saturating_sub(before) as f64 / CONNECTIONS as f64,
        switches: switches(server.pid())? - switched,
    })
}

/// Opens a connection and waits for an answer.
fn asked(port: u16, request: &[u8]) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(request)?;
    let (mut bytes, mut filled) = ([0; 8192], 0);
    while response_length(&bytes[..filled])?.is_none_or(|length| filled < length) {
        match stream.read(&mut bytes[filled..])? {
            0 => return Err("the connection was closed".into()),
            read => filled += read,
        }
    }
    Ok(stream)
}
