//! Clients that come and go, stop in the middle, or send garbage: nothing is left of them, and others
//! are served meanwhile.

use std::net::Shutdown;

use greenroom_http::Limits;

use crate::support::{Client, Served, patient, served, until};

/// Starts a server with room for many connections that do nothing.
fn roomy() -> Served {
    served(|builder, _| {
        builder.limits(Limits {
            connections: 5000,
            ..patient()
        })
    })
}

/// Returns the number of live actors of the runtime.
fn actors(served: &Served) -> usize {
    served.runtime.stats().actors.len()
}

/// Waits until the server has as many actors as before: none for connections.
fn until_all_are_gone(served: &Served, before: usize) {
    until("the connections have ended", || actors(served) == before);
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    let served = roomy();
    assert_eq!(served.get("/Xy").status, 200);
    until("it is gone", || actors(&served) == 2);
    for number in 0..2000 {
        let mut client = served.client();
        match number % 4 {
            0 => assert_eq!(client.get("/Xy").status, 200),
            1 => client.send("GET /Xy HTTP/1.1\r\nHo"),
            2 => client.send("POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"),
            _ => {}
        }
    }
    until_all_are_gone(&served, 2);
    assert_eq!(served.get("/Xy").status, 200);
}

#[test]
fn many_idle_and_slow_clients_do_not_keep_others_from_being_served() {
    let served = roomy();
    let before = actors(&served);
    let mut clients: Vec<Client> = (0..150).map(|_| served.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 4 {
            0 => assert_eq!(client.get("/Xy").status, 200),
            1 => client.send("GET /Xy HTTP/1.1\r\nHost: local"),
            // The answer is large, and is not read.
            2 => client.send("GET /Xy?x=1000&y=100 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            _ => {}
        }
    }
    for _ in 0..50 {
        assert_eq!(served.get("/Xy").status, 200);
    }
    // Those that were slow are served when they go on.
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 4 {
            1 => {
                client.send("host\r\n\r\n");
                assert_eq!(client.response().status, 200);
            }
            2 => assert_eq!(client.response().status, 200),
            _ => {}
        }
    }
    drop(clients);
    until_all_are_gone(&served, before);
}

#[test]
fn a_client_that_sends_no_more_gets_all_its_answers() {
    let served = roomy();
    let before = actors(&served);
    let keep = "GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Fast answers and slow ones, of requests that come at once.
    for _ in 0..100 {
        let mut client = served.client();
        client.send(keep.replace("/Act?how=keep", "/Xy").repeat(2) + keep);
        client.0.shutdown(Shutdown::Write).unwrap();
        let reply = served.kept();
        assert_eq!(
            (client.response().status, client.response().status),
            (200, 200)
        );
        assert!(reply.is_wanted());
        reply.send(7);
        assert_eq!(client.response().body, "7");
        assert!(client.is_closed());
    }
    until_all_are_gone(&served, before);
}

#[test]
fn garbage_harms_nothing() {
    let served = roomy();
    let before = actors(&served);
    let mut random = fastrand::Rng::with_seed(7);
    let valid = b"POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                  Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    for _ in 0..300 {
        let mut bytes = valid.to_vec();
        for _ in 0..=random.usize(..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"\r\n \0:"[random.usize(..5)]),
            }
        }
        let mut client = served.client();
        client.send(&bytes);
        client.0.shutdown(Shutdown::Write).unwrap();
        while let Some(response) = client.response_to(false) {
            let known = [200, 400, 403, 404, 405, 408, 413, 414, 431, 501, 505];
            assert!(known.contains(&response.status), "{response:?}");
        }
    }
    assert_eq!(served.get("/Xy").status, 200);
    until_all_are_gone(&served, before);
}

#[test]
fn deep_and_endless_values_are_refused_without_harm() {
    let served = roomy();
    let json = "application/json";
    for body in [
        "[".repeat(100_000),
        "{\"a\":".repeat(50_000),
        format!("[{}", "\"".repeat(100_000)),
        format!("{{\"x\":{}}}", "9".repeat(100_000)),
        "\\".repeat(100_000),
    ] {
        assert_eq!(served.post("/Xy", json, &body).status, 400, "{body:.10}");
        let form = format!("x={}", body.replace(['%', '&', '+'], ""));
        let media = "application/x-www-form-urlencoded";
        assert_eq!(served.post("/Xy", media, &form).status, 400, "{body:.10}");
    }
}
