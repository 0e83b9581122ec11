//! Limits: each with its status, and with a server that goes on.

use std::io::Write;
use std::time::Duration;

use greenroom_http::{Limits, metrics};

use crate::support::{Client, LONG, Response, Served, number, patient, served, until};

fn limited(limits: Limits) -> Served {
    served(|builder, _| builder.limits(limits))
}

const SHORT: Duration = Duration::from_millis(50);

#[test]
fn sizes_of_requests_are_limited() {
    let served = limited(Limits {
        uri: 50,
        header_value: 40,
        headers: 3,
        head: 300,
        body: 10,
        ..patient()
    });
    let of_head = |head: String| {
        let mut client = served.client();
        client.send(head);
        let status = client.response().status;
        assert!(status == 200 || client.is_closed());
        status
    };
    let uri = |extra: usize| {
        of_head(format!(
            "GET /{}Xy HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "/".repeat(extra)
        ))
    };
    assert_eq!((uri(47), uri(48), uri(5000)), (200, 414, 414));
    let fields = |fields: &str| {
        of_head(format!(
            "GET /Xy HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
        ))
    };
    assert_eq!(fields("A: b\r\nA: b\r\n"), 200);
    assert_eq!(fields("A: b\r\nA: b\r\nA: b\r\n"), 431);
    assert_eq!(fields(&format!("A: {}\r\n", "x".repeat(40))), 200);
    assert_eq!(fields(&format!("A: {}\r\n", "x".repeat(41))), 431);
    assert_eq!(fields(&format!("A: {}", "x".repeat(5000))), 431);
    let form = "application/x-www-form-urlencoded";
    assert_eq!(served.post("/Xy", form, "x=1&y=1&&&").status, 200);
    let mut client = served.client();
    assert_eq!(client.post("/Xy", form, "x=1&y=1&&&&").status, 413);
    assert!(client.is_closed());
    // A body of unknown length.
    let mut client = served.client();
    client.send(
        "POST /Xy HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
         6\r\nx=1&&&\r\n6\r\ny=1&&&\r\n0\r\n\r\n",
    );
    assert_eq!(client.response().status, 413);
}

#[test]
fn a_huge_body_is_refused_before_it_is_sent() {
    let served = limited(patient());
    let mut client = served.client();
    client.send(
        "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9223372036854775807\r\n\
         Expect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.response().status, 413);
}

#[test]
fn connections_are_limited() {
    let served = limited(Limits {
        connections: 2,
        ..patient()
    });
    let mut busy = [served.client(), served.client()];
    for client in &mut busy {
        client.send("GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    until("both are busy", || {
        served.seen.kept.lock().unwrap().len() == 2
    });
    let mut third = served.client();
    let refused = third.response();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    served.kept().send(1);
    until("there is room again", || {
        let mut client = served.client();
        client.send("GET /Xy HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.response_to(false).is_some_and(|it| it.status == 200)
    });
}

#[test]
fn requests_in_flight_are_limited() {
    let served = limited(Limits {
        in_flight: 1,
        ..patient()
    });
    let mut first = served.client();
    first.send("GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let reply = served.kept();
    let mut second = served.client();
    let refused = second.get("/Xy");
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    reply.send(1);
    assert_eq!(first.response().status, 200);
    assert_eq!(second.get("/Xy").status, 200);
}

#[test]
fn a_connection_ends_after_its_last_request() {
    let served = limited(Limits {
        requests_a_connection: 2,
        ..patient()
    });
    let mut client = served.client();
    assert_eq!(client.get("/Xy").header("connection"), None);
    assert_eq!(client.get("/Xy").header("connection"), Some("close"));
    assert!(client.is_closed());
}

/// Sends half a head until there is a response: the client may send it when the time is over.
fn half_a_head(served: &Served) -> (Client, Response) {
    let mut answered = None;
    until("half a head came in time", || {
        let mut client = served.client();
        client.send("GET /Xy HTTP/1.1\r\nHost:");
        answered = client.response_to(false).map(|response| (client, response));
        answered.is_some()
    });
    answered.unwrap()
}

#[test]
fn clients_that_send_nothing_or_half_a_head_are_closed() {
    let served = limited(Limits {
        head_time: SHORT,
        ..patient()
    });
    assert!(served.client().is_closed());
    let (mut half, response) = half_a_head(&served);
    assert_eq!(response.status, 408);
    assert!(half.is_closed());
}

#[test]
fn an_idle_connection_is_closed() {
    let served = limited(Limits {
        idle_time: SHORT,
        ..patient()
    });
    let mut client = served.client();
    assert_eq!(client.get("/Xy").status, 200);
    assert!(client.is_closed());
}

#[test]
fn a_body_that_comes_too_slowly_is_refused() {
    for (body_time, body_rate) in [(SHORT, 1), (LONG, u64::MAX)] {
        let served = limited(Limits {
            body_time,
            body_rate,
            ..patient()
        });
        let mut client = served.client();
        client.send("POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab");
        assert_eq!(client.response().status, 408);
        assert!(client.is_closed());
    }
}

#[test]
fn an_actor_that_does_not_answer_in_time_is_not_waited_for() {
    let served = limited(Limits {
        answer_time: SHORT,
        ..patient()
    });
    assert_eq!(served.get("/Act?how=keep").status, 504);
    // The late answer is not wanted.
    assert!(!served.kept().is_wanted());
}

#[test]
fn a_client_that_takes_no_answer_is_cut() {
    let served = limited(Limits {
        write_time: SHORT,
        ..patient()
    });
    let mut slow = served.client();
    // Far more than the buffers of both sockets, asked for at once: it may be cut at any time.
    slow.send("GET /Xy?x=1000&y=200 HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(64));
    until("it is cut", || slow.0.write_all(b"G").is_err());
    assert_eq!(served.get("/Xy").status, 200);
}

#[test]
fn a_client_that_takes_an_answer_slowly_is_not_idle() {
    let served = limited(Limits {
        idle_time: SHORT,
        ..patient()
    });
    let small = with_fields("");
    // The answer has far more bytes than the buffers of both sockets.
    let large = small.replace("/Xy", "/Xy?x=1000&y=2000");
    for next in ["", &*small] {
        let mut slow = served.client();
        slow.send(format!("{large}{next}"));
        slow.wait_for_answer();
        // The idle time of others begins later, and is over.
        for _ in 0..3 {
            let mut other = served.client();
            assert_eq!(other.get("/Xy").status, 200);
            assert!(other.is_closed());
        }
        assert_eq!(slow.response().status, 200);
        if !next.is_empty() {
            assert_eq!(slow.response().body, "[[0.5]]");
        }
        assert!(slow.is_closed(), "it is idle now");
    }
}

/// Hits one limit in a way that the test describes, and checks its status and its counter.
fn hits(name: &str, status: Option<u16>, limits: Limits, hit: impl FnOnce(&Served) -> Option<u16>) {
    let served = served(|builder, _| builder.mount(metrics()).limits(limits));
    assert_eq!(hit(&served), status, "{name}");
    let line = format!("greenroom_http_limits_total{{limit=\"{name}\"}}");
    // A connection of before may still be open.
    let body = |uri: &str| {
        let mut client = served.client();
        client.send(format!("GET {uri} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        client.response_to(false).map(|response| response.body)
    };
    until(name, || {
        body("/metrics").is_some_and(|page| number(&page, &line) >= Some(1.0))
    });
    until(name, || body("/Xy").is_some_and(|body| body == "[[0.5]]"));
}

/// Returns the status of the answer to these bytes, if there is one.
fn raw(bytes: impl AsRef<[u8]>) -> impl FnOnce(&Served) -> Option<u16> {
    move |served| {
        let mut client = served.client();
        client.send(bytes);
        client.response_to(false).map(|response| response.status)
    }
}

fn with_fields(fields: &str) -> String {
    format!("GET /Xy HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

#[test]
fn each_limit_of_a_request_has_its_status_and_its_counter() {
    let limits = Limits {
        uri: 50,
        header_value: 40,
        headers: 10,
        head: 300,
        body: 30,
        depth: 2,
        list: 2,
        requests_a_connection: 3,
        ..patient()
    };
    let get = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "x".repeat(50)
    );
    hits("uri", Some(414), limits.clone(), raw(get));
    let value = with_fields(&format!("A: {}\r\n", "x".repeat(41)));
    hits("header_value", Some(431), limits.clone(), raw(value));
    let long = with_fields(&format!("A: {}\r\n", "x".repeat(30)).repeat(9));
    hits("head", Some(431), limits.clone(), raw(long));
    let many = with_fields(&"A: b\r\n".repeat(10));
    hits("headers", Some(431), limits.clone(), raw(many));
    let post = |body: &str| {
        let body = body.to_owned();
        move |served: &Served| Some(served.post("/Xy", "application/json", &body).status)
    };
    hits("body", Some(413), limits.clone(), post(&" ".repeat(31)));
    hits("depth", Some(400), limits.clone(), post("[[[1]]]"));
    hits("list", Some(400), limits.clone(), post("[1,2,3]"));
    let query = with_fields("").replace("/Xy", "/Kinds?list=[1,2,3]");
    hits("list", Some(400), limits.clone(), raw(query));
    hits("requests_a_connection", Some(200), limits, |served| {
        let mut client = served.client();
        let [_, _, last] = [(); 3].map(|()| client.get("/Xy"));
        (last.header("connection") == Some("close")).then_some(last.status)
    });
}

#[test]
fn each_limit_of_a_server_has_its_status_and_its_counter() {
    hits(
        "connections",
        Some(503),
        Limits {
            connections: 1,
            ..patient()
        },
        |served| {
            let mut first = served.client();
            first.send(with_fields("").replace("/Xy", "/Act?how=keep"));
            let reply = served.kept();
            let status = served.client().response().status;
            reply.send(1);
            assert_eq!(first.response().status, 200);
            Some(status)
        },
    );
    let in_flight = Limits {
        in_flight: 1,
        ..patient()
    };
    hits("in_flight", Some(503), in_flight, |served| {
        let mut first = served.client();
        first.send(with_fields("").replace("/Xy", "/Act?how=keep"));
        let reply = served.kept();
        let status = served.get("/Xy").status;
        reply.send(1);
        assert_eq!(first.response().status, 200);
        Some(status)
    });
}

#[test]
fn each_limit_of_a_time_has_its_status_and_its_counter() {
    let head_time = Limits {
        head_time: SHORT,
        ..patient()
    };
    hits("head_time", Some(408), head_time.clone(), |served| {
        Some(half_a_head(served).1.status)
    });
    hits("head_time", None, head_time, raw(""));
    let half = "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab";
    let body_time = Limits {
        body_time: SHORT,
        ..patient()
    };
    hits("body_time", Some(408), body_time, raw(half));
    let body_rate = Limits {
        body_rate: u64::MAX,
        ..patient()
    };
    hits("body_rate", Some(408), body_rate, raw(half));
    let answer_time = Limits {
        answer_time: SHORT,
        ..patient()
    };
    let act = with_fields("").replace("/Xy", "/Act?how=keep");
    hits("answer_time", Some(504), answer_time, raw(act));
    let idle_time = Limits {
        idle_time: SHORT,
        ..patient()
    };
    hits("idle_time", None, idle_time, |served| {
        let mut client = served.client();
        assert_eq!(client.get("/Xy").status, 200);
        client.response_to(false).map(|response| response.status)
    });
    let write_time = Limits {
        write_time: SHORT,
        ..patient()
    };
    hits("write_time", None, write_time, |served| {
        let mut slow = served.client();
        // Far more than the buffers of both sockets.
        slow.send(
            with_fields("")
                .replace("/Xy", "/Xy?x=1000&y=200")
                .repeat(64),
        );
        until("it is cut", || slow.0.write_all(b"G").is_err());
        None
    });
}

#[test]
fn defaults_are_those_that_are_promised() {
    let seconds = Duration::from_secs;
    let promised = Limits {
        uri: 8000,
        header_value: 8 << 10,
        head: 16 << 10,
        headers: 64,
        body: 256 << 10,
        depth: 64,
        list: 10_000,
        connections: 1024,
        connections_a_peer: 64,
        in_flight: 256,
        requests_a_connection: 1000,
        head_time: seconds(5),
        body_time: seconds(30),
        body_rate: 1 << 10,
        answer_time: seconds(30),
        idle_time: seconds(15),
        write_time: seconds(10),
        write_rate: 1 << 10,
        unsent: 64 << 20,
    };
    assert_eq!(Limits::default(), promised);
}

#[test]
fn an_impossible_limit_is_an_error() {
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let default = Limits::default;
    for (limits, why) in [
        (
            Limits {
                connections: 0,
                ..default()
            },
            "the limit connections is 0",
        ),
        (
            Limits {
                idle_time: Duration::ZERO,
                ..default()
            },
            "the limit idle_time is 0",
        ),
        (
            Limits {
                uri: 70_000,
                ..default()
            },
            "the limit uri is 70000, more than 65534",
        ),
        (
            Limits {
                depth: 128,
                ..default()
            },
            "the limit depth is 128, more than 127",
        ),
    ] {
        let builder = greenroom_http::Server::bind("127.0.0.1:0").limits(limits);
        let error = runtime.block_on(builder.listen()).unwrap_err();
        let text = format!("cannot listen at \"127.0.0.1:0\" ({why})");
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn limits_may_be_as_large_as_they_can_be() {
    let served = limited(Limits {
        uri: 65_534,
        header_value: 200_000,
        head: 256 * 1024,
        headers: 10_000,
        depth: 127,
        ..patient()
    });
    let uri = format!("/{}/Xy", "x".repeat(65_534 - 4));
    assert_eq!(served.get(&uri).status, 200);
    let value = with_fields(&format!("A: {}\r\n", "x".repeat(200_000)));
    assert_eq!(raw(value)(&served), Some(200));
    let many = with_fields(&"A: b\r\n".repeat(9_999));
    assert_eq!(raw(many)(&served), Some(200));
    let deep = "[".repeat(127) + &"]".repeat(127);
    let response = served.post("/Xy", "application/json", &deep);
    assert!(response.body.contains("invalid type"), "{}", response.body);
}
