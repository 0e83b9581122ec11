//! Eight bytes to and fro over a blocking socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use crate::Outcome;
use crate::kinds::{say, until_closed};

pub fn serve() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    thread::spawn(move || -> Outcome<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut bytes = [0; 8];
        loop {
            stream.read_exact(&mut bytes)?;
            stream.write_all(&bytes)?;
        }
    });
    until_closed(&address)
}

pub fn client(address: &str, pings: u64) -> Outcome<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut times = Vec::new();
    for _ in 0..pings + pings / 5 {
        let begun = Instant::now();
        let mut bytes = [0; 8];
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let measured = &mut times[(pings / 5) as usize..];
    let (_, p50, _) = measured.select_nth_unstable_by(pings as usize / 2, f64::total_cmp);
    say(&p50.to_string())
}
