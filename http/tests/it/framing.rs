//! Framing: what is between requests, and requests that two readers could understand differently.

use std::io::Write;

use crate::support::{Client, plain};

#[test]
fn malformed_requests_are_refused_and_the_connection_is_closed() {
    let served = plain();
    for (request, status) in [
        ("GET /Xy HTTP/1.1\r\n\r\n", 400),
        ("GET /Xy HTTP/1.1\nHost: localhost\n\n", 400),
        ("GET /Xy\r\n\r\n", 400),
        ("GET /Xy HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
        (
            "GET /Xy HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
            400,
        ),
        (
            "POST /Xy HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n",
            400,
        ),
        (
            "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\
             Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\na",
            400,
        ),
        ("\u{16}\u{3}\u{1}\u{0}\u{5}garbage", 400),
        (
            "GET /Kinds?list=[\"1\"] HTTP/1.1\r\nHost: localhost\r\n\r\n",
            400,
        ),
        ("GET host:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("CONNECT /Xy HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ] {
        let mut client = served.client();
        client.send(request);
        let response = client.response();
        assert_eq!(response.status, status, "{request:?}");
        assert_eq!(response.header("connection"), Some("close"));
        assert_eq!(
            response.header("server"),
            Some("greenroom"),
            "hyper answers"
        );
        let is_recovered = !response.text().starts_with("cannot recover request (");
        assert_eq!(is_recovered, status != 400, "{}", response.body);
        assert!(client.is_closed(), "{request:?}");
    }
    assert_eq!(served.messages(), 0);
}

#[test]
fn a_refused_request_is_answered_after_those_before_it() {
    let served = plain();
    let mut client = served.client();
    let get = "GET /Xy HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send(format!("{get}{get}GET /Xy HTTP/1.1\n\n{get}"));
    let statuses = [(); 3].map(|()| client.response().status);
    assert_eq!(statuses, [200, 200, 400]);
    assert!(client.is_closed());
    assert_eq!(served.messages(), 2);
}

#[test]
fn requests_may_come_in_pieces_and_bodies_in_chunks() {
    let served = plain();
    let mut client = served.client();
    let request = "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                   Transfer-Encoding: chunked\r\n\r\n3\r\n{\"x\r\n5;a=b\r\n\":2}\n\r\n0\r\nA: b\r\n\r\n";
    for piece in [1, 7, request.len()] {
        for bytes in request.as_bytes().chunks(piece) {
            client.send(bytes);
        }
        assert_eq!(
            client.response().body,
            "[[0.5,0.5]]",
            "in pieces of {piece}"
        );
    }
    assert_eq!(client.get("/Xy").body, "[[0.5]]");
}

#[test]
fn a_malformed_chunk_is_refused() {
    let served = plain();
    for chunk in ["g\r\n", "-1\r\n", "1\na\r\n", "ffffffff\r\n"] {
        let mut client = served.client();
        client.send(format!(
            "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\n\r\n{chunk}"
        ));
        let response = client.response();
        assert_eq!(response.status, 400, "{chunk:?}");
        // The chunk may come before the head was looked at, or after that.
        let texts = [
            "cannot recover request (malformed chunk)",
            "cannot recover request (a chunk is too large)",
            "cannot recover request \"/Xy\" (the body is incomplete or malformed)",
        ];
        assert!(texts.contains(&&*response.text()), "{}", response.body);
        assert!(client.is_closed());
    }
    assert_eq!(served.messages(), 0);
}

#[test]
fn a_body_of_a_refused_type_is_no_request() {
    let served = plain();
    let mut client = served.client();
    let inner = "GET /Act?how=panic HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let length = inner.len();
    client.send(format!(
        "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{inner}"
    ));
    assert_eq!(client.response().status, 404);
    assert_eq!(client.get("/Xy").status, 200);
    assert_eq!(served.messages(), 1);
}

#[test]
fn a_client_that_waits_for_100_is_told_to_continue() {
    let served = plain();
    let mut client = Client::new(served.server.local_addr());
    client.send(
        "POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 2\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.response().status, 100);
    client.send("{}");
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_refusal_of_a_head_request_has_no_body() {
    let served = plain();
    let uri = "x".repeat(9000);
    for (request, status) in [
        ("HEAD /Xy HTTP/1.1\r\n\r\n".to_owned(), 400),
        (
            format!("HEAD /{uri} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            414,
        ),
    ] {
        for step in [1, request.len()] {
            let mut client = served.client();
            for bytes in request.as_bytes().chunks(step) {
                // The end of a long head need not be read.
                let _ = client.0.write_all(bytes);
            }
            let response = client.response_to(true).unwrap();
            assert_eq!(response.status, status);
            assert_ne!(response.header("content-length"), Some("0"));
            assert!(client.is_closed(), "{status} in pieces of {step}");
        }
    }
}
