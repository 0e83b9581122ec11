//! A slow link: a relay that passes so many bytes a second in each direction.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// The time for which a portion of bytes is under way.
const TICK: Duration = Duration::from_millis(20);

/// Passes the connections of this listener on to `to`, until the test process ends.
pub fn relay(listener: TcpListener, to: String, bytes_a_second: usize) {
    let portion = bytes_a_second / 50;
    thread::spawn(move || {
        for from in listener.incoming() {
            let from = from.unwrap();
            let Ok(to) = TcpStream::connect(&to) else {
                continue;
            };
            let ways = [
                (from.try_clone().unwrap(), to.try_clone().unwrap()),
                (to, from),
            ];
            for (from, to) in ways {
                thread::spawn(move || pass(from, to, portion));
            }
        }
    });
}

fn pass(mut from: TcpStream, mut to: TcpStream, portion: usize) {
    let mut buffer = vec![0; portion];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        thread::sleep(TICK);
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Read), to.shutdown(Shutdown::Write));
}
