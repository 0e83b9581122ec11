//! The examples `texture_server` and `load`: answers, ends and exit statuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::support::{Client, held, until};

const VARIANTS: [&str; 4] = ["1", "2", "3", "4"];

/// An address at which the system chooses the port.
const ANY_PORT: &str = "127.0.0.1:0";

/// Nothing that a test waits for takes longer.
const WATCH: Duration = Duration::from_secs(180);

/// Returns a command for an example, which cargo builds beside the tests.
pub fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent);
    let example: PathBuf = profile.unwrap().join("examples").join(name);
    assert!(
        example.is_file(),
        "{} is not built: `cargo test` builds it, `cargo test --test it` alone does not, so run \
         `cargo build --example {name}` with the same options first",
        example.display(),
    );
    let mut command = Command::new(example);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that is killed when the test is over.
pub struct Process {
    pub child: Child,
    lines: Receiver<String>,
}

/// A process that has ended.
struct Ended {
    status: Option<i32>,
    /// The lines of stdout that were not read before.
    lines: Vec<String>,
    errors: String,
}

impl Process {
    pub fn new(command: &mut Command) -> Process {
        let mut child = command.spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        Process { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(WATCH).expect("a line is printed")
    }

    /// Sends SIGINT.
    fn interrupt(&self) {
        let kill = format!("kill -INT {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success());
    }

    fn end(mut self) -> Ended {
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut errors).unwrap();
        Ended {
            status: status.unwrap().code(),
            lines: self.lines.iter().collect(),
            errors,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the lines of an output as they come.
fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (sends, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if sends.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    lines
}

/// Starts a server, and returns the address at which it listens.
pub fn serve(variant: &str) -> (Process, SocketAddr) {
    let mut command = example("texture_server");
    listening(command.args(["--variant", variant, "--server-address", ANY_PORT]))
}

/// Runs the command of a server, and returns the address at which it listens.
pub fn listening(command: &mut Command) -> (Process, SocketAddr) {
    let server = Process::new(command);
    let line = server.line();
    let address = line.strip_prefix("listening at ").expect(&line);
    let address = address.parse().unwrap();
    (server, address)
}

/// Reads a table in the envelope of the document.
fn table(body: &str) -> Vec<Vec<f64>> {
    let begin = "{\"value\":[\"vector<vector<float8>>\",";
    let table = body
        .strip_prefix(begin)
        .and_then(|it| it.strip_suffix(",[]]}"));
    plain_table(table.expect(body))
}

fn plain_table(body: &str) -> Vec<Vec<f64>> {
    let table: Vec<Vec<f64>> = serde_json::from_str(body).expect(body);
    let mut numbers = table.iter().flatten();
    assert!(numbers.all(|number| (0.0..1.0).contains(number)), "{body}");
    table
}

/// Checks the end of a server that was interrupted, and returns the lines that were left.
fn aborted(server: Process) -> Vec<String> {
    let Ended {
        status,
        lines,
        errors,
    } = server.end();
    let text = "texture_server: aborted (user or software interrupt)\n";
    assert_eq!((&*errors, status), (text, Some(71)));
    lines
}

#[test]
fn each_variant_answers_with_tables_and_stops_at_an_interrupt() {
    for variant in VARIANTS {
        let (server, address) = serve(variant);
        let mut client = Client::new(address);
        for (uri, columns, rows) in [("/Xy?x=3&y=2", 3, 2), ("/Xy", 1, 1), ("/Xy?y=0", 0, 0)] {
            let response = client.get(uri);
            assert_eq!(response.status, 200, "{variant}: {}", response.body);
            let table = table(&response.body);
            assert_eq!(table.len(), rows, "{variant}: {}", response.body);
            assert!(table.iter().all(|row| row.len() == columns));
        }
        assert_ne!(client.get("/Xy").body, client.get("/Xy").body);
        server.interrupt();
        assert_eq!(server.line(), "stopping; Ctrl-C again cuts what is open");
        assert!(client.is_closed());
        assert_eq!(
            aborted(server),
            ["1 connections finished, 0 were cut"],
            "{variant}"
        );
    }
}

#[test]
fn each_variant_answers_many_clients_at_once() {
    for variant in VARIANTS {
        let (_server, address) = serve(variant);
        let client = move |x: usize| {
            let mut client = Client::new(address);
            for y in 1..20 {
                let table = table(&client.get(&format!("/Xy?x={x}&y={y}")).body);
                assert_eq!((table.len(), table[0].len()), (y, x));
            }
        };
        let clients = (1..20).map(|x| thread::spawn(move || client(x)));
        let clients: Vec<_> = clients.collect();
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
    }
}

#[test]
fn a_table_that_is_too_large_is_refused() {
    let (_server, address) = serve("4");
    let mut client = Client::new(address);
    for (x, y) in [(1001, 1000), (0, 1_000_001), (u32::MAX, u32::MAX)] {
        let response = client.get(&format!("/Xy?x={x}&y={y}"));
        assert_eq!(response.status, 400);
        let text = format!(
            "{{\"value\":[\"layer_cake.point_runtime.Faulted\",{{\"condition\":\"table too large\",\
             \"explanation\":\"{x} x {y} is more than 1000000 numbers\",\"error_code\":400,\"exit_status\":null}},[]]}}"
        );
        assert_eq!(response.body, text);
    }
    assert_eq!(client.get("/Xy?x=-1").status, 400);
    assert_eq!(client.get("/Xy?x=1000&y=1000").status, 200);
}

#[test]
fn a_second_interrupt_cuts_what_is_open() {
    let (server, address) = serve("1");
    let mut open = Client::new(address);
    open.send(
        "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 3\r\nExpect: 100-continue\r\n\r\n",
    );
    // The server has read the head, and waits for the body.
    assert_eq!(open.response().status, 100);
    server.interrupt();
    assert_eq!(server.line(), "stopping; Ctrl-C again cuts what is open");
    server.interrupt();
    // A stop that was not cut would have printed how many connections have finished.
    assert_eq!(aborted(server), [""; 0]);
    assert!(open.is_closed());
}

#[test]
fn a_port_in_use_is_a_fault() {
    let (_server, address) = serve("1");
    let same = format!("--server-address={address}");
    let mut command = example("texture_server");
    let second = Process::new(command.args(["--variant=4", &same])).end();
    let text = format!(
        "texture_server: cannot listen at \"{address}\" ([Errno 98] Address already in use)\n"
    );
    assert_eq!((second.errors, second.status), (text, Some(71)));
    assert_eq!(second.lines, [""; 0]);
}

#[test]
fn a_level_traces_the_actors() {
    for level in ["--debug-level=DEBUG", "-dl=DEBUG"] {
        let mut command = example("texture_server");
        command.args(["--variant=4", "--object-count=2"]);
        command.args(["--server-address", ANY_PORT, level]);
        let (server, address) = listening(&mut command);
        let mut client = Client::new(address);
        assert_eq!(client.get("/Xy").status, 200);
        let peer = client.0.local_addr().unwrap();
        server.interrupt();
        let Ended { status, errors, .. } = server.end();
        assert_eq!(status, Some(71));
        // As layer_cake writes them.
        for text in [
            &*format!(">http listener - Listening on \"{address}\""),
            &format!(">http listener - Accepted \"{peer}\""),
            ">spool[SPOOLING] - Received Xy from <",
            ">worker 0 - Received Xy from <",
            ">worker 1 - Created by <",
        ] {
            assert!(errors.contains(text), "{text}: {errors}");
        }
        assert!(!errors.contains("worker 2"), "{errors}");
    }
}

#[test]
fn wrong_arguments_are_answered_with_the_usage() {
    for (arguments, problem) in [
        (&[][..], "--variant is missing"),
        (
            &["--variant=5"],
            "cannot parse argument \"5\": \"5\" is no variant from 1 to 4",
        ),
        (
            &["--variant=1", "--object-count=2"],
            "only variant 4 has parameters of a spool",
        ),
        (
            &["--variant=4", "--size-of-queue=few"],
            "cannot parse argument \"few\": invalid digit found in string",
        ),
        (
            &["--variant=4", "--workers=2"],
            "invalid option '--workers'",
        ),
        (&["--variant=1", "more"], "unexpected argument \"more\""),
        (&["-d", "DEBUG"], "invalid option '-d'"),
    ] {
        let ended = Process::new(example("texture_server").args(arguments)).end();
        let text = format!("texture_server: {problem}\nusage: texture_server --variant 1..4 [");
        assert!(ended.errors.starts_with(&text), "{}", ended.errors);
        assert_eq!(ended.status, Some(2));
    }
}

#[test]
fn tables_are_plain_on_demand() {
    let mut command = example("texture_server");
    command.args(["--variant=1", "--plain", "--server-address", ANY_PORT]);
    let (_server, address) = listening(&mut command);
    let response = Client::new(address).get("/Xy?x=3&y=2");
    assert_eq!(plain_table(&response.body).len(), 2);
}

#[test]
fn the_parameters_of_the_spool_are_those_of_the_arguments() {
    let parameters = |arguments: &[&str]| {
        let mut command = example("texture_server");
        command.args(["--variant=4", "--server-address", ANY_PORT]);
        Process::new(command.args(arguments)).end()
    };
    // The spool judges them, and its fault lists all of them.
    for (arguments, listed) in [
        (
            &["--object-count=0"][..],
            "count=0, size=None, responsiveness=5.0), stand_down=30.0",
        ),
        (
            &["--size-of-queue=0", "--object-count=16"],
            "count=16, size=0, responsiveness=5.0), stand_down=30.0",
        ),
        (
            &[
                "--responsiveness=0.25",
                "--stand-down=2.5",
                "--size-of-queue=7",
            ],
            "count=8, size=7, responsiveness=0.25), stand_down=2.5",
        ),
        (
            &["--stand-down=0.05", "--responsiveness=None"],
            "count=8, size=None, responsiveness=None), stand_down=0.05",
        ),
        (
            &["--busy-pass-rate=0", "--stand-down=None"],
            "count=8, size=None, responsiveness=5.0), stand_down=None",
        ),
    ] {
        let ended = parameters(arguments);
        assert!(ended.errors.contains(listed), "{listed}: {}", ended.errors);
        assert_eq!((ended.status, ended.lines), (Some(71), Vec::new()));
    }
}

fn load(arguments: &[&str]) -> Ended {
    Process::new(example("load").args(arguments)).end()
}

#[test]
fn a_load_is_counted() {
    let (_server, address) = serve("4");
    let address = address.to_string();
    let few = ["--connections=3", "--seconds=0.05"];
    for (path, status) in [("/Xy?x=5&y=3", 200), ("/Xy?x=1001&y=1000", 400)] {
        let ended = load(&[&few[..], &["--path", path, &address]].concat());
        assert_eq!((&*ended.errors, ended.status), ("", Some(0)));
        let requests = ended.lines[0].split(' ').next().unwrap();
        assert!(requests.parse::<usize>().unwrap() >= 3);
        assert!(ended.lines[1].ends_with(" requests a second"));
        assert_eq!(ended.lines[2], format!("status {status}: {requests}"));
        let begins = |line: usize, with| ended.lines[line].starts_with(with);
        assert!(begins(3, "p50 ") && begins(4, "p99 "), "{:?}", ended.lines);
    }
}

/// Reads a request without a body. Returns false if the connection is closed before.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

#[test]
fn a_load_goes_on_when_the_server_closes_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = |more: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\n{more}content-length: {length}\r\n\r\n{body}")
    };
    let server = thread::spawn(move || {
        // Each connection is closed after its answers. The last table is too long.
        for answers in [
            vec![answer("", "[[0.5]]"), answer("", "[[0.25]]")],
            vec![answer("Connection: close\r\n", "[[0.5]]")],
            vec!["HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()],
            vec![answer("", "[[0.5],[0.5]]")],
        ] {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                assert!(read_request(&mut stream));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    let ended = load(&["--connections=1", "--seconds=60", "--path=/Xy", &address]);
    let text = "load: a table has 2 rows, not 1\n";
    assert_eq!((&*ended.errors, ended.status), (text, Some(71)));
    let requests = &ended.lines[0];
    assert!(requests.starts_with("5 requests in "), "{requests}");
    assert_eq!(ended.lines[2..4], ["status 200: 4", "status 503: 1"]);
    server.join().unwrap();
}

#[test]
fn a_load_fails_at_a_wrong_table_and_without_a_server() {
    let (server, bound) = serve("1");
    let address = bound.to_string();
    // To the server %79 is y, and to `load` it is not.
    let ended = load(&["--seconds=0", "--path=/Xy?%79=2", &address]);
    let text = "load: a table has 2 rows, not 1\n";
    assert_eq!((&*ended.errors, ended.status), (text, Some(71)));
    drop(server);
    let _port = held(bound);
    let ended = load(&["--seconds=0", &address]);
    let begin = format!("load: cannot connect to {address}: ");
    assert!(ended.errors.starts_with(&begin), "{}", ended.errors);
    assert_eq!(ended.status, Some(71));
    for wrong in [&[][..], &["--connections=0", &address], &["a", "b"]] {
        assert_eq!(load(wrong).status, Some(2));
    }
}
