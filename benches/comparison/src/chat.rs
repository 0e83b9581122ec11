//! The clients of a chat server, on a thread that may block.
//!
//! The first line of a client is `ROOM NAME`. Each further line is for all members of the room, its
//! own included, and `/quit` is the last one.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How many lines the server keeps for a member that does not read.
pub const OUTBOX: usize = 8;

/// How long a client waits for a line before it says that the server hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer lines fill the buffers of the system sooner.
const LONG: usize = 100_000;

/// A member of a room.
pub struct Client {
    name: &'static str,
    lines: BufReader<TcpStream>,
}

impl Client {
    /// Joins a room, and returns when all members have heard of it.
    fn join(server: SocketAddr, room: &str, name: &'static str) -> Self {
        let stream = TcpStream::connect(server).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client {
            name,
            lines: BufReader::new(stream),
        };
        client.say(&format!("{room} {name}"));
        client.hear();
        client
    }

    fn say(&mut self, line: &str) {
        writeln!(self.lines.get_mut(), "{line}").expect("the server reads");
    }

    /// Prints the next line.
    fn hear(&mut self) {
        match self.line() {
            Some(line) => println!("{} hears: {line}", self.name),
            None => println!("{} is disconnected", self.name),
        }
    }

    /// Returns the next line, or `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the server writes");
        line.strip_suffix('\n').map(str::to_owned)
    }
}

/// Has five clients join, talk, quit and stop to read. Returns the two that stay.
pub fn talk(server: SocketAddr) -> [Client; 2] {
    let mut ada = Client::join(server, "tea", "ada");
    let mut bob = Client::join(server, "tea", "bob");
    ada.hear();
    let mut carl = Client::join(server, "coffee", "carl");
    ada.say("milk?");
    ada.hear();
    bob.hear();
    carl.say("black");
    carl.hear();
    bob.say("/quit");
    bob.hear();
    ada.hear();
    let dan = Client::join(server, "tea", "dan");
    ada.hear();
    dan.lines.get_ref().shutdown(Shutdown::Both).unwrap(); // as if its program had ended
    ada.hear();
    let mut eve = Client::join(server, "tea", "eve");
    ada.hear();
    let long = "x".repeat(LONG);
    let last = loop {
        ada.say(&long);
        match ada.line() {
            Some(line) if line.ends_with(&long) => {} // which eve does not read
            line => break line,
        }
    };
    println!("ada hears at last: {}", last.expect("ada stays"));
    while eve.line().is_some() {} // what was on its way
    println!("eve is disconnected");
    assert!(ada.line().is_some_and(|line| line.ends_with(&long)));
    [ada, carl]
}

/// Prints what the members hear when the server ends.
pub fn hear_the_end(members: [Client; 2]) {
    for mut member in members {
        member.hear();
        member.hear();
    }
}
