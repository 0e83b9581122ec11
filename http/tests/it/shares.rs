//! One client cannot shut out others: its connections, what it does not read, and how slowly it reads.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use greenroom_http::{Limits, metrics};

use crate::support::{Client, LONG, Message, Served, number, patient, served, until};

/// Serves clients at loopback addresses as if they were other machines.
fn shared(limits: Limits) -> Served {
    served(|builder, _| builder.count_loopback().mount(metrics()).limits(limits))
}

/// Connects from another address of this machine.
fn from(served: &Served, host: u8) -> Client {
    let own = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0));
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&served.server.local_addr().into()).unwrap();
    let stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(LONG)).unwrap();
    Client(stream)
}

fn hits(served: &Served, limit: &str) -> Option<f64> {
    let page = from(served, 99).get("/metrics").body;
    number(
        &page,
        &format!("greenroom_http_limits_total{{limit=\"{limit}\"}}"),
    )
}

#[test]
fn a_client_with_all_its_connections_loses_its_own_idle_one() {
    let limits = Limits {
        connections_a_peer: 2,
        ..patient()
    };
    let served = shared(limits);
    let [mut first, mut second] = [from(&served, 2), from(&served, 2)];
    let mut other = from(&served, 3);
    for client in [&mut second, &mut other] {
        assert_eq!(client.get("/Xy").status, 200);
    }
    // The first one has been idle longest, since it was accepted.
    let mut third = from(&served, 2);
    assert_eq!(third.get("/Xy").status, 200);
    assert!(first.is_closed());
    assert_eq!(
        (second.get("/Xy").status, other.get("/Xy").status),
        (200, 200)
    );
    assert_eq!(hits(&served, "connections_a_peer"), Some(1.0));
}

#[test]
fn a_client_whose_connections_are_all_busy_is_refused_and_others_are_not() {
    let limits = Limits {
        connections_a_peer: 2,
        ..patient()
    };
    let served = shared(limits);
    let mut busy = [from(&served, 2), from(&served, 2)];
    for client in &mut busy {
        client.send("GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    until("both are busy", || {
        served.seen.kept.lock().unwrap().len() == 2
    });
    let mut third = from(&served, 2);
    let refused = third.response();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    assert!(
        refused.body.contains("all connections are in use"),
        "{}",
        refused.body
    );
    assert_eq!(from(&served, 3).get("/Xy").status, 200);
    drop(served.seen.kept.lock().unwrap().drain(..));
    assert!(
        busy.iter_mut()
            .all(|client| client.response().status == 500)
    );
}

#[test]
fn a_crowd_of_idle_clients_leaves_room_for_an_honest_one() {
    let limits = Limits {
        connections: 8,
        ..patient()
    };
    let served = shared(limits);
    // Half of them have never sent a whole head.
    let mut crowd = Vec::new();
    for host in 2..10 {
        let mut client = from(&served, host);
        match host % 2 {
            0 => assert_eq!(client.get("/Xy").status, 200),
            _ => client.send("GET /Xy HT"),
        }
        crowd.push(client);
    }
    for _ in 0..30 {
        assert_eq!(from(&served, 77).get("/Xy").status, 200);
    }
    assert!(
        crowd
            .iter_mut()
            .map(is_open)
            .filter(|is_open| *is_open)
            .count()
            < 8
    );
}

#[test]
fn a_connection_whose_answer_is_being_taken_is_not_idle() {
    let limits = Limits {
        connections: 1,
        ..patient()
    };
    let served = shared(limits);
    let mut reader = from(&served, 2);
    reader.send("GET /Xy?x=1000&y=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // The answer is there, and does not fit into the buffers of the system.
    reader.wait_for_answer();
    let refused = from(&served, 3).response();
    assert_eq!(refused.status, 503);
    assert_eq!(reader.response().status, 200);
    // Now it is idle, and makes room.
    until("another one has its place", || {
        let mut other = from(&served, 3);
        other.send("GET /Xy HTTP/1.1\r\nHost: localhost\r\n\r\n");
        other.response_to(false).is_some_and(|it| it.status == 200)
    });
}

/// Returns whether a connection is open, of a client that awaits nothing.
fn is_open(client: &mut Client) -> bool {
    client.0.set_nonblocking(true).unwrap();
    let read = client.0.read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn a_client_that_reads_too_slowly_is_cut() {
    // Faster than the client, and slower than any other one.
    let served = shared(Limits {
        write_rate: u64::MAX,
        ..patient()
    });
    let mut slow = from(&served, 2);
    slow.send("GET /Xy?x=1000&y=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut taken = 0;
    until("it is cut", || {
        // A byte at a time, within the time of a write.
        let mut byte = [0];
        match slow.read(&mut byte) {
            Ok(read) => taken += read,
            Err(_) => return true,
        }
        hits(&served, "write_rate") >= Some(1.0)
    });
    assert!(taken > 0);
}

#[test]
fn a_client_that_does_not_read_gets_no_further_request_answered() {
    let served = shared(Limits { ..patient() });
    let mut greedy = from(&served, 2);
    // Each answer has eight million bytes.
    let request = "GET /Xy?x=1000&y=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    greedy.send(request.repeat(8));
    until("the first is answered", || served.messages() > 0);
    // Another client is served meanwhile, and the second request of the greedy one is not.
    for _ in 0..10 {
        assert_eq!(from(&served, 3).get("/Xy").status, 200);
    }
    assert!(served.messages() <= 12, "{}", served.messages());
    for _ in 0..8 {
        assert_eq!(greedy.response().status, 200);
    }
}

#[test]
fn clients_that_do_not_read_cost_a_bounded_memory_and_then_nothing() {
    let served = shared(Limits {
        unsent: 1 << 20,
        ..patient()
    });
    let mut greedy = from(&served, 2);
    greedy.send("GET /Xy?x=1000&y=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let overloaded = || from(&served, 3).get("/Xy").status == 503;
    until("others are refused", overloaded);
    assert!(hits(&served, "unsent") >= Some(1.0));
    // A client that is gone holds nothing.
    let _ = greedy.0.flush();
    drop(greedy);
    until("all is free again", || {
        from(&served, 3).get("/Xy").status == 200
    });
}

#[test]
fn answers_without_a_body_are_never_unsent() {
    let served = served(|builder, actor| {
        let builder = builder.unknown(&actor.address(), Message::Raw);
        builder.limits(Limits {
            unsent: 100,
            ..patient()
        })
    });
    let mut client = served.client();
    for _ in 0..3 {
        client.send("HEAD /Xy?x=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.response_to(true).unwrap().status, 200);
        for status in [204, 205, 304] {
            // The text of a refusal, which is not sent.
            client.send(format!(
                "GET /Act?how={status} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            ));
            assert_eq!(client.response_to(true).unwrap().status, status);
        }
    }
    assert_eq!(client.get("/Xy").status, 200);
}

#[test]
fn the_clients_of_a_proxy_are_told_apart() {
    let proxy = Ipv4Addr::new(127, 0, 0, 50).into();
    let limits = Limits {
        connections_a_peer: 1,
        ..patient()
    };
    let served = served(|builder, _| {
        builder
            .count_loopback()
            .trust_proxy([proxy])
            .allow_unmarked()
            .mount(metrics())
            .limits(limits)
    });
    let ask = |how: &str, client: &str| {
        let mut connection = from(&served, 50);
        let forwarded = format!("Forwarded: for={client}\r\n");
        connection.send(format!(
            "GET {how} HTTP/1.1\r\nHost: localhost\r\n{forwarded}\r\n"
        ));
        connection
    };
    let mut kept = ask("/Act?how=keep", "192.0.2.1");
    let reply = served.kept();
    assert_eq!(ask("/Xy", "192.0.2.1").response().status, 503);
    assert_eq!(ask("/Xy", "192.0.2.2").response().status, 200);
    reply.send(1);
    assert_eq!(kept.response().status, 200);
    assert_eq!(ask("/Xy", "192.0.2.1").response().status, 200);
}

#[test]
fn what_comes_by_a_proxy_of_this_machine_is_not_from_this_machine() {
    let proxy = Ipv4Addr::new(127, 0, 0, 50).into();
    let served = served(|builder, _| builder.trust_proxy([proxy]));
    let ask = |host, mark: &str| {
        let mut client = from(&served, host);
        client.send(format!("GET /Xy HTTP/1.1\r\nHost: localhost\r\n{mark}\r\n"));
        client.response().status
    };
    assert_eq!((ask(50, ""), ask(51, "")), (403, 200));
    assert_eq!(ask(50, "Sec-Fetch-Site: same-origin\r\n"), 200);
}
