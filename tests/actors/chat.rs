//! The example `chat`, run as its users run it, with real sockets.
//!
//! No test waits for a time: each one reads lines until those that must come have come.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};

use crate::child::{example, finish, interrupt_child};
use crate::support::{WATCH, within};

/// More than a number of seconds that a test takes.
const PATIENT: &str = "--patience=3600";
const LENGTH: usize = 1000;

struct Server {
    child: Child,
    printed: Receiver<String>,
    address: String,
}

impl Server {
    fn start(options: &[&str]) -> Server {
        let mut command = Command::new(example("chat"));
        command.args(options).arg("--listen=127.0.0.1:0");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The harness captures what a thread of the test prints, but not what a child does.
        let warned = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || {
            warned
                .map_while(Result::ok)
                .for_each(|line| eprintln!("{line}"))
        });
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (print, printed) = mpsc::channel();
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .try_for_each(|line| print.send(line))
        });
        let address = printed.recv().unwrap();
        let address = address.strip_prefix("listening on ").unwrap().to_owned();
        Server {
            child,
            printed,
            address,
        }
    }

    /// Connects a client, which is asked for its name.
    fn connect(&self) -> Client {
        let mut client = Client(BufReader::new(TcpStream::connect(&self.address).unwrap()));
        assert_eq!(client.line(), "* what is your name?");
        client
    }

    /// Connects a client that enters the lobby, where there are so many others.
    fn enter(&self, name: &str, others: usize) -> Client {
        let mut client = self.connect();
        client.says(name);
        assert_eq!(
            client.line(),
            format!("* welcome to lobby, others here: {others}")
        );
        client
    }

    /// Waits for the tally of a client: the lines that were written and those that it missed.
    fn tally(&self, name: &str) -> (u64, u64) {
        let tally = |line: String| {
            let numbers = line.strip_prefix(name)?.strip_prefix(": ")?;
            let (written, missed) = numbers.split_once(" lines written, ")?;
            Some((
                written.parse().ok()?,
                missed.strip_suffix(" missed")?.parse().ok()?,
            ))
        };
        self.printed.iter().find_map(tally).unwrap()
    }

    fn end(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn says(&mut self, line: &str) {
        writeln!(self.0.get_mut(), "{line}").unwrap();
    }

    /// Returns the next line, or what there is of it at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.strip_suffix('\n').unwrap_or(&line).to_owned()
    }

    /// Reads until this many lines were heard or missed. Returns those that were heard, and the
    /// number that was missed.
    fn account(&mut self, lines: u64) -> (Vec<String>, u64) {
        let (mut heard, mut missed) = (Vec::new(), 0);
        while heard.len() as u64 + missed < lines {
            let line = self.line();
            assert_ne!(line, "", "{missed} missed of {lines}, heard: {heard:?}");
            match missed_in(&line) {
                Some(more) => missed += more,
                None => heard.push(line),
            }
        }
        assert_eq!(heard.len() as u64 + missed, lines);
        (heard, missed)
    }

    /// Quits, and reads all that is left. Returns the numbers of lines heard and missed.
    fn quit(mut self) -> (u64, u64) {
        self.says("/quit");
        self.rest()
    }

    /// Reads until the server closes the socket. Returns the numbers of lines heard and missed.
    fn rest(mut self) -> (u64, u64) {
        let (mut heard, mut missed) = (0, 0);
        loop {
            let line = self.line();
            match missed_in(&line) {
                _ if line == "* bye" => break,
                Some(more) => missed += more,
                None => heard += 1,
            }
        }
        assert_eq!(self.line(), "", "the server has closed the socket");
        (heard, missed)
    }
}

fn missed_in(line: &str) -> Option<u64> {
    let number = line.strip_prefix("* you missed ")?.strip_suffix(" lines")?;
    Some(number.parse().unwrap())
}

/// Checks that no line was heard twice.
fn assert_each_once(heard: &[String]) {
    let long = "x".repeat(LENGTH);
    let heard = heard.iter().filter(|line| !line.ends_with(&long));
    let mut seen = HashSet::new();
    assert!(heard.into_iter().all(|line| seen.insert(line)));
}

#[test]
fn five_hundred_clients_and_one_that_never_reads_account_for_all_lines() {
    const CLIENTS: u64 = 500;
    within(10 * WATCH, || {
        let mut server = Server::start(&[PATIENT]);
        let mut deaf = server.enter("deaf", 0);
        let mut flood = server.enter("flood", 1);
        let mut for_deaf = 1; // "flood came"
        let long = "x".repeat(LENGTH);
        while !server.printed.try_iter().any(|line| line == "deaf is slow") {
            flood.says(&long);
            for_deaf += 1;
        }
        assert_eq!(flood.quit(), (0, 0));
        for_deaf += 1; // "flood left"

        let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            client.says(&format!("c{index}"));
        }
        // The number of clients that come after each one.
        let mut later: Vec<u64> = Vec::new();
        for client in &mut clients {
            let line = client.line();
            let others = line.strip_prefix("* welcome to lobby, others here: ");
            later.push(CLIENTS - others.unwrap().parse::<u64>().unwrap());
        }
        clients.iter_mut().for_each(|client| client.says("hello"));
        let (mut all_heard, mut all_missed) = (0, 0);
        for (client, later) in clients.iter_mut().zip(later) {
            let (heard, missed) = client.account(later + CLIENTS - 1);
            assert_each_once(&heard);
            all_heard += heard.len() as u64;
            all_missed += missed;
        }
        clients.iter_mut().for_each(|client| client.says("/quit"));
        let rests: Vec<_> = clients.into_iter().map(Client::rest).collect();
        let (heard, missed) = rests
            .iter()
            .fold((0, 0), |sum, rest| (sum.0 + rest.0, sum.1 + rest.1));
        assert_eq!(
            heard + missed,
            CLIENTS * (CLIENTS - 1) / 2,
            "those that left before"
        );
        all_heard += heard;
        all_missed += missed;
        // All others were served while the outbox of this one was full. Now it reads.
        for_deaf += 3 * CLIENTS; // they came, said hello, and left
        let (heard, missed) = deaf.account(for_deaf);
        assert!(missed > 0);
        assert_each_once(
            &heard
                .iter()
                .filter(|line| !line.ends_with('x'))
                .cloned()
                .collect::<Vec<_>>(),
        );
        assert_eq!(deaf.quit(), (0, 0));
        assert_eq!(server.tally("deaf"), (heard.len() as u64, missed));

        interrupt_child(&server.child);
        let all = (all_heard + heard.len() as u64, all_missed + missed);
        assert_eq!(server.tally("all"), all);
        assert!(server.end().success());
    });
}

#[test]
fn a_client_that_takes_nothing_is_disconnected_and_gets_what_was_written() {
    within(WATCH, || {
        let mut server = Server::start(&["--patience=0.05"]);
        let mut deaf = server.enter("deaf", 0);
        let mut flood = server.enter("flood", 1);
        let long = "x".repeat(LENGTH);
        let mut said = 0;
        let tally = loop {
            flood.says(&long);
            said += 1;
            if let Some(line) = server
                .printed
                .try_iter()
                .find(|line| line.starts_with("deaf: "))
            {
                break line;
            }
        };
        let (mut heard, mut line) = (0, String::new());
        // The last line may be incomplete.
        while deaf.0.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            heard += u64::from(missed_in(line.trim_end()).is_none());
            line.clear();
        }
        let (written, missed) = tally.split_once(" lines written, ").unwrap();
        assert_eq!(written, format!("deaf: {heard}"));
        let missed: u64 = missed.strip_suffix(" missed").unwrap().parse().unwrap();
        assert!(
            missed > 0 && heard + missed <= said + 1,
            "{tally}, {said} said"
        );

        assert_eq!(flood.line(), "* deaf left");
        assert_eq!(flood.quit(), (0, 0));
        interrupt_child(&server.child);
        assert_eq!(server.tally("all"), (heard + 1, missed));
        assert!(server.end().success());
    });
}

#[test]
fn an_interrupt_writes_what_was_passed_on_and_says_goodbye() {
    within(WATCH, || {
        let mut server = Server::start(&[PATIENT]);
        let alan = server.enter("alan", 0);
        let mut ada = server.enter("ada", 1);
        for number in 0..1000 {
            ada.says(&number.to_string());
        }
        interrupt_child(&server.child);
        let alan = alan.rest();
        let ada = ada.rest();
        let all = (alan.0 + ada.0, alan.1 + ada.1);
        assert_eq!(server.tally("all"), all);
        assert!(server.end().success());
        assert!(TcpStream::connect(&server.address).is_err());
    });
}

#[test]
fn a_name_in_use_is_refused_and_rooms_are_apart() {
    within(WATCH, || {
        let server = Server::start(&[PATIENT]);
        let mut ada = server.enter("ada", 0);
        let mut other = server.connect();
        for (name, answer) in [
            ("ada", "* refused: name in use (ada); another name?"),
            (
                "a b",
                "* a name has 1 to 20 letters and digits; what is yours?",
            ),
            (
                "",
                "* a name has 1 to 20 letters and digits; what is yours?",
            ),
            ("alan", "* welcome to lobby, others here: 1"),
        ] {
            other.says(name);
            assert_eq!(other.line(), answer);
        }
        assert_eq!(ada.line(), "* alan came");
        other.says("hello");
        assert_eq!(ada.line(), "alan: hello");
        other.says("/join kitchen");
        assert_eq!(other.line(), "* welcome to kitchen, others here: 0");
        assert_eq!(ada.line(), "* alan left");
        other.says("alone");
        // The name is free again, where it was in use.
        let mut third = server.enter("alan", 1);
        assert_eq!(ada.line(), "* alan came");
        third.says("/join kitchen");
        assert_eq!(third.line(), "* refused: name in use (alan); another name?");
        third.says("tim");
        assert_eq!(third.line(), "* welcome to kitchen, others here: 1");
        // The end of what is typed is a quit, too.
        other
            .0
            .get_ref()
            .shutdown(std::net::Shutdown::Write)
            .unwrap();
        assert_eq!(other.line(), "* tim came");
        assert_eq!(other.rest(), (0, 0));
        assert_eq!(third.line(), "* alan left");
        assert_eq!(ada.line(), "* alan left");
    });
}

#[test]
fn a_line_that_is_too_long_ends_its_client() {
    within(WATCH, || {
        let server = Server::start(&[PATIENT]);
        let mut ada = server.enter("ada", 0);
        let mut long = server.enter("long", 1);
        for allowed in ["x".repeat(1999), String::new()] {
            ada.says(&allowed);
            assert_eq!(long.line(), format!("ada: {allowed}"));
        }
        long.says(&"x".repeat(2000));
        long.says("more");
        assert_eq!(long.rest(), (0, 0));
        assert_eq!(ada.line(), "* long came");
        assert_eq!(ada.line(), "* long left");
        assert_eq!(ada.quit(), (0, 0));
    });
}

#[test]
fn without_arguments_it_plays_both_sides() {
    let mut command = Command::new(example("chat"));
    let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "alan reads: * welcome to lobby, others here: 1",
        "grace reads: * refused: name in use (ada); another name?",
        "grace is slow",
        "alan heard or missed 20000 lines",
    ] {
        assert!(
            text.lines().any(|printed| printed == line),
            "{line}\n{text}"
        );
    }
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, status, problem) in [
        (&["--patience=-1"][..], 2, "it is out of range"),
        (&["--patience=soon"], 2, "it is not a number of seconds"),
        (&["--loud"], 2, "invalid option '--loud'"),
        (&["--listen=nowhere"], 1, "chat: "),
    ] {
        let mut command = Command::new(example("chat"));
        let output = finish(
            command
                .args(arguments)
                .stderr(Stdio::piped())
                .stdout(Stdio::null()),
        );
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{error}");
        assert!(error.contains(problem), "{error}");
    }
}
