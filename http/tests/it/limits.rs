//! Limits: each with its status, and with a server that goes on.

use std::time::Duration;

use greenroom_http::Limits;

use crate::support::{Served, served, until};

fn limited(limits: Limits) -> Served {
    served(|builder, _| builder.limits(limits))
}

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(1000);

#[test]
fn sizes_of_requests_are_limited() {
    let served = limited(Limits {
        uri: 50,
        header_value: 40,
        headers: 3,
        head: 300,
        body: 10,
        ..Limits::default()
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
    let served = limited(Limits::default());
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
        ..Limits::default()
    });
    let (mut first, mut second) = (served.client(), served.client());
    assert_eq!(
        (first.get("/Xy").status, second.get("/Xy").status),
        (200, 200)
    );
    let mut third = served.client();
    let refused = third.response();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    drop(first);
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
        ..Limits::default()
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
        ..Limits::default()
    });
    let mut client = served.client();
    assert_eq!(client.get("/Xy").header("connection"), None);
    assert_eq!(client.get("/Xy").header("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn clients_that_send_nothing_or_half_a_head_are_closed() {
    let served = limited(Limits {
        head_time: SHORT,
        ..Limits::default()
    });
    assert!(served.client().is_closed());
    let mut half = served.client();
    half.send("GET /Xy HTTP/1.1\r\nHost:");
    assert_eq!(half.response().status, 408);
    assert!(half.is_closed());
}

#[test]
fn an_idle_connection_is_closed() {
    let served = limited(Limits {
        head_time: LONG,
        idle_time: SHORT,
        ..Limits::default()
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
            ..Limits::default()
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
        ..Limits::default()
    });
    assert_eq!(served.get("/Act?how=keep").status, 504);
    // The late answer is not wanted.
    assert!(!served.kept().is_wanted());
}

#[test]
fn a_client_that_takes_no_answer_is_cut() {
    let served = limited(Limits {
        write_time: SHORT,
        ..Limits::default()
    });
    let mut slow = served.client();
    // Far more than the buffers of both sockets.
    for _ in 0..64 {
        slow.send("GET /Xy?x=1000&y=200 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    until("it is cut", || {
        use std::io::Write;
        slow.0.write_all(b"G").is_err()
    });
    assert_eq!(served.get("/Xy").status, 200);
}

#[test]
fn a_limit_of_zero_is_an_error() {
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let builder = greenroom_http::Server::bind("127.0.0.1:0").limits(Limits {
        connections: 0,
        ..Limits::default()
    });
    let error = runtime.block_on(builder.listen()).unwrap_err();
    let text = "cannot listen at \"127.0.0.1:0\" (the limit connections is 0)";
    assert_eq!(error.to_string(), text);
}
