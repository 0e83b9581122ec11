//! Who may call: pages of the own site, of allowed ones and of others, and clients that are no pages.

use greenroom::Runtime;
use greenroom_http::{ServerBuilder, metrics};

use crate::support::{Message, Response, Served, number, served, served_at};

fn send(served: &Served, line: &str, fields: &str) -> Response {
    let mut client = served.client();
    client.send(format!("{line} HTTP/1.1\r\n{fields}\r\n"));
    let answer = client.response_to(line.starts_with("HEAD "));
    answer.expect("the connection is open")
}

/// The ways in which a page of another site makes a browser send GET without CORS.
const CROSS: [&str; 4] = ["no-cors", "navigate", "cors", "websocket"];

#[test]
fn pages_of_other_sites_reach_no_actor_by_get() {
    let served = served(|builder, _| builder.mount(metrics()));
    let of_site = |method: &str, site: &str| {
        let fields = format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n");
        send(&served, &format!("{method} /Xy"), &fields).status
    };
    for site in ["same-origin", "none"] {
        assert_eq!((of_site("GET", site), of_site("HEAD", site)), (200, 200));
    }
    let before = served.messages();
    for site in ["cross-site", "same-site", "anything"] {
        assert_eq!((of_site("GET", site), of_site("HEAD", site)), (403, 403));
    }
    for mode in CROSS {
        let fields =
            format!("Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: {mode}\r\n");
        assert_eq!(send(&served, "GET /Xy", &fields).status, 403);
    }
    assert_eq!(served.messages(), before);
    // A page may be mounted for all.
    let fields = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n";
    let page = send(&served, "GET /metrics", fields);
    assert_eq!(page.status, 200);
    let line = "greenroom_http_refused_callers_total{cause=\"site\"}";
    assert_eq!(number(&page.body, line), Some(10.0), "{}", page.body);
}

#[test]
fn a_readable_type_and_a_readable_actor_for_all_others_may_be_read_by_any_page() {
    let fields = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n";
    let readable = served(|builder, actor| {
        let builder = builder.on("Open", &actor.address(), Message::Xy).readable();
        builder.unknown(&actor.address(), Message::Raw)
    });
    assert_eq!(send(&readable, "GET /Open", fields).status, 200);
    assert_eq!(send(&readable, "GET /Xy", fields).status, 403);
    assert_eq!(send(&readable, "GET /else", fields).status, 403);
    let readable =
        served(|builder, actor| builder.unknown(&actor.address(), Message::Raw).readable());
    assert_eq!(send(&readable, "GET /else", fields).status, 202);
    assert_eq!(send(&readable, "GET /Nan", fields).status, 403);
}

#[test]
fn a_type_that_is_posted_only_is_read_by_nobody() {
    let served = served(|builder, actor| {
        let builder = builder.on("Once", &actor.address(), Message::Xy);
        builder.post_only().readable()
    });
    for site in ["none", "cross-site"] {
        let fields = format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n");
        assert_eq!(send(&served, "GET /Once", &fields).status, 405);
    }
}

/// Serves at an address that other machines reach, if this machine has one. Returns its name.
fn exposed(more: fn(ServerBuilder) -> ServerBuilder) -> Option<(Served, String)> {
    // No packet is sent. The system chooses the address from which one would be.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").ok()?;
    let own = socket.local_addr().unwrap().ip();
    if own.is_loopback() {
        return None;
    }
    let runtime = Runtime::builder().workers(2);
    let served = served_at(&format!("{own}:0"), runtime, |builder, _| {
        more(builder).expose()
    });
    Some((served, own.to_string()))
}

#[test]
fn an_exposed_server_answers_no_read_without_a_mark_unless_it_is_allowed() {
    for (allow, status) in [(false, 403), (true, 200)] {
        let more = match allow {
            true => |builder: ServerBuilder| builder.allow_unmarked(),
            false => |builder: ServerBuilder| builder,
        };
        let Some((served, own)) = exposed(more) else {
            eprintln!("this machine has no address but loopback");
            return;
        };
        let host = format!("Host: {own}\r\n");
        assert_eq!(send(&served, "GET /Xy", &host).status, status);
        let marked = format!("{host}Sec-Fetch-Site: none\r\n");
        assert_eq!(send(&served, "GET /Xy", &marked).status, 200);
        // A message that is posted is no page's, without an origin.
        let posted = format!("{host}Content-Length: 0\r\n");
        assert_eq!(send(&served, "POST /Xy", &posted).status, 200);
    }
}

#[test]
fn a_page_posts_to_the_port_from_which_it_comes_and_to_no_other() {
    let served = served(|builder, _| builder);
    let port = served.server.local_addr().port();
    let of_origin = |host: &str, origin: &str| {
        let fields = format!("Host: {host}\r\nOrigin: {origin}\r\nContent-Length: 0\r\n");
        send(&served, "POST /Xy", &fields).status
    };
    let own = format!("localhost:{port}");
    assert_eq!(of_origin(&own, &format!("http://localhost:{port}")), 200);
    for other in [
        "http://localhost",
        "http://localhost:3000",
        "null",
        "http://evil.org",
    ] {
        assert_eq!(of_origin(&own, other), 403, "{other}");
    }
    assert_eq!(of_origin(&own, &format!("http://127.0.0.1:{port}")), 403);
}

#[test]
fn pages_of_allowed_origins_may_ask_and_read() {
    let served = served(|builder, _| builder.cors(["https://friend.org"]));
    let host = "Host: localhost\r\n";
    let friend = format!("{host}Origin: https://friend.org\r\nSec-Fetch-Site: cross-site\r\n");
    let read = send(&served, "GET /Xy", &friend);
    assert_eq!(read.status, 200);
    let origin = "access-control-allow-origin";
    assert_eq!(read.header(origin), Some("https://friend.org"));
    assert_eq!(read.header("vary"), Some("Origin"));
    let before = format!("{friend}Access-Control-Request-Method: POST\r\n");
    let before = send(&served, "OPTIONS /Xy", &before);
    assert_eq!(before.status, 204);
    assert_eq!(before.header(origin), Some("https://friend.org"));
    let methods = Some("GET, HEAD, POST, OPTIONS");
    assert_eq!(before.header("access-control-allow-methods"), methods);
    let fields = Some("accept, content-type");
    assert_eq!(before.header("access-control-allow-headers"), fields);
    assert_eq!(before.header("access-control-max-age"), Some("600"));
    // Refusals are for the page, too.
    let refused = send(&served, "GET /Xy?z=1", &friend);
    assert_eq!(
        (refused.status, refused.header(origin)),
        (400, Some("https://friend.org"))
    );
    let stranger = format!("{host}Origin: https://stranger.org\r\n");
    let refused = send(&served, "GET /Xy", &stranger);
    assert_eq!((refused.status, refused.header(origin)), (403, None));
    let own = send(&served, "GET /Xy", host);
    assert_eq!(
        (own.header(origin), own.header("vary")),
        (None, Some("Origin"))
    );
}

#[test]
fn an_origin_that_is_none_is_an_error_of_listen() {
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    for origin in ["friend.org", "https://friend.org/", "null", "*"] {
        let builder = greenroom_http::Server::bind("127.0.0.1:0").cors([origin]);
        let error = runtime.block_on(builder.listen()).unwrap_err();
        let text = format!("cannot listen at \"127.0.0.1:0\" ({origin:?} is no origin)");
        assert_eq!(error.to_string(), text);
    }
}
