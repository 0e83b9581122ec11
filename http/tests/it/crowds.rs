//! Crowds of bad clients before a server with its default limits, in a process of its own: others
//! are served meanwhile, and afterwards it has what it had before.

use std::fs::{read_dir, read_to_string};
use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Client, number, until};
use crate::texture_server::{Process, example, listening, serve};

/// Returns the first number, or the second one if the whole matrix is to be run.
fn scaled(few: usize, all: usize) -> usize {
    match std::env::var("GREENROOM_MATRIX") {
        Ok(matrix) if matrix == "all" => all,
        _ => few,
    }
}

/// What a server has: actors, tasks and descriptors.
type Things = (f64, f64, usize);

fn descriptors(server: &Process) -> usize {
    let folder = format!("/proc/{}/fd", server.child.id());
    read_dir(folder).unwrap().count()
}

fn things(server: &Process, address: SocketAddr) -> Things {
    // The connection that asks counts, too: the same one each time.
    let mut client = Client::new(address);
    let page = client.get("/metrics").body;
    let is = |name| number(&page, name).unwrap();
    let descriptors = descriptors(server);
    (is("greenroom_actors"), is("greenroom_tasks"), descriptors)
}

/// Returns the resident memory of a server in KiB.
fn memory(server: &Process) -> usize {
    let status = read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Lets a crowd of so many connections come again and again. Each time the server must have what it
/// had before, and its memory must stop to grow: 2 KiB a connection would be a leak.
fn leaves_nothing(connections: usize, crowd: impl Fn(SocketAddr)) {
    let (server, address) = serve("4");
    crowd(address);
    let mut before = things(&server, address);
    until("the first crowd has gone", || {
        before = things(&server, address);
        // Eight workers, their spool, the listener, and the connection that asks.
        before.0 == 11.0
    });
    let mut grown = Vec::new();
    while !grown.iter().any(|grown| *grown <= 2 * connections) {
        // The allocator keeps what it has had, at first more each time.
        assert!(grown.len() < 10, "KiB more: {grown:?}");
        let memory_before = memory(&server);
        crowd(address);
        until("the crowd has gone", || things(&server, address) <= before);
        grown.push(memory(&server).saturating_sub(memory_before));
    }
    println!("{before:?}, KiB more: {grown:?}");
    let table = Client::new(address).get("/Xy");
    assert_eq!(table.status, 200);
}

const DEEP: usize = 100_000;

/// Returns the bytes of the bad client of this number.
fn nonsense(number: usize) -> Vec<u8> {
    let post = |length: usize, body: &str| {
        format!(
            "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
    };
    match number % 8 {
        0 => Vec::new(),
        1 => b"GET /Xy HTTP/1.1\r\nHo".to_vec(),
        2 => post(9, "{").into(),
        3 => post(DEEP, &"[".repeat(DEEP)).into(),
        // A body that is left over, and looks like a request.
        4 => post(2, "{}GET /Xy HTTP/1.1\r\n").into(),
        5 => post(1 << 30, &"x".repeat(1000)).into(),
        6 => b"GET /Xy?x=2 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        _ => {
            let mut random = fastrand::Rng::with_seed(number as u64);
            (0..300).map(|_| random.u8(..)).collect()
        }
    }
}

#[test]
fn connections_in_turn_leave_nothing() {
    let connections = scaled(400, 10_000);
    leaves_nothing(connections, |address| {
        for number in 0..connections {
            let mut client = Client::new(address);
            // The server may refuse what comes before all of it is there.
            let _ = client.0.write_all(&nonsense(number));
            match number / 8 % 3 {
                0 => drop(client.0.shutdown(Shutdown::Write)),
                // The others are answered at once.
                1 if number % 8 > 2 => drop(client.read(&mut [0; 8])),
                _ => {}
            }
            if number % 50 == 0 {
                assert_eq!(Client::new(address).get("/Xy?x=3").status, 200);
            }
        }
    });
}

/// Asks for tables until the crowd has gone. Returns how many it got.
fn honest(address: SocketAddr, has_gone: &AtomicBool) -> usize {
    let mut tables = 0;
    // A connection has 1000 requests.
    while !has_gone.load(Ordering::Acquire) {
        let mut client = Client::new(address);
        for _ in 0..100 {
            assert_eq!(client.get("/Xy?x=3&y=3").status, 200);
            tables += 1;
        }
    }
    tables
}

#[test]
fn connections_at_once_leave_nothing_and_others_are_served() {
    let connections = scaled(150, 1000);
    leaves_nothing(connections, |address| {
        let has_gone = AtomicBool::new(false);
        thread::scope(|scope| {
            let honest = [(); 2].map(|()| scope.spawn(|| honest(address, &has_gone)));
            let mut crowd = Vec::new();
            for number in 0..connections {
                let mut client = Client::new(address);
                let _ = client.0.write_all(&nonsense(number));
                if number % 10 == 9 {
                    let _ = client.0.shutdown(Shutdown::Write);
                }
                crowd.push(client);
            }
            // The answers are larger than the buffers of the sockets, and are not read.
            let unread = "GET /Xy?x=1000&y=300 HTTP/1.1\r\nHost: localhost\r\n\r\n";
            for client in crowd.iter_mut().step_by(50) {
                let _ = client.0.write_all(unread.as_bytes());
            }
            drop(crowd);
            has_gone.store(true, Ordering::Release);
            for tables in honest.map(|it| it.join().unwrap()) {
                assert!(tables > 0);
            }
        });
    });
}

/// Sends a byte of a head from time to time, as long as the server takes them. Returns the answers.
fn slowloris(address: SocketAddr, clients: usize) -> Vec<u8> {
    let mut clients: Vec<_> = (0..clients).map(|_| Client::new(address)).collect();
    let mut answers = Vec::new();
    for client in &mut clients {
        client.send("GET /Xy HTTP/1.1\r\nHost: localhost\r\nX: ");
        client.0.set_nonblocking(true).unwrap();
    }
    until("all are cut", || {
        clients.retain_mut(|client| {
            let mut bytes = [0; 64];
            match client.read(&mut bytes) {
                Ok(read) => {
                    answers.extend_from_slice(&bytes[..read.min(12)]);
                    false
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    client.0.write_all(b"x").is_ok()
                }
                Err(_) => false,
            }
        });
        clients.is_empty()
    });
    answers
}

#[test]
fn clients_that_send_a_byte_at_a_time_are_told_that_they_are_too_late() {
    let connections = scaled(50, 500);
    leaves_nothing(connections, |address| {
        let has_gone = AtomicBool::new(false);
        thread::scope(|scope| {
            let honest = scope.spawn(|| honest(address, &has_gone));
            let answers = slowloris(address, connections);
            has_gone.store(true, Ordering::Release);
            // A reset may overtake an answer, yet not all of them.
            let text = String::from_utf8(answers).unwrap();
            assert!(text.starts_with("HTTP/1.1 408"), "{text}");
            assert_eq!(text.replace("HTTP/1.1 408", ""), "");
            assert!(honest.join().unwrap() > 0);
        });
    });
}

#[test]
fn without_descriptors_a_server_waits_until_it_has_some_again() {
    let mut command = Command::new("sh");
    let server = example("texture_server");
    command.args([
        "-c",
        "ulimit -n 48 && exec \"$0\" --variant=4 --server-address=127.0.0.1:0",
    ]);
    command.arg(server.get_program());
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (server, address) = listening(&mut command);
    let clients = (0..150).map(|_| {
        let mut client = Client::new(address);
        client.send("GET /Xy?x=2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client
    });
    let clients: Vec<_> = clients.collect();
    until("no descriptor is left", || descriptors(&server) >= 48);
    // Each client that goes makes room for one that waits.
    for mut client in clients {
        assert_eq!(client.response().status, 200);
    }
    let table = Client::new(address).get("/Xy");
    assert_eq!(table.status, 200);
}
