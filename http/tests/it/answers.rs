//! Answers: plain, in envelopes, refusals, and their order.

use std::time::Duration;

use greenroom::spool::Spool;
use greenroom::time::sleep;
use greenroom::{AskError, Context, Refusal, RefusalKind, Reply, spawn};
use greenroom_http::prometheus_client::collector::Collector;
use greenroom_http::prometheus_client::encoding::DescriptorEncoder;
use greenroom_http::{Answers, HttpEvent, PortableType, metrics};

use crate::support::{Response, Served, Xy, patient, plain, served, until};

#[test]
fn an_answer_is_json_with_its_length_its_date_and_its_server() {
    let response = plain().get("/Xy");
    assert_eq!((response.status, &*response.reason), (200, "OK"));
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("content-length"), Some("7"));
    assert_eq!(response.header("server"), Some("greenroom"));
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    assert!(response.header("date").unwrap().ends_with(" GMT"));
}

#[test]
fn an_envelope_has_the_name_of_the_type() {
    let table = "{\"value\":[\"vector<vector<float8>>\",[[0.5]],[]]}";
    let of_server = served(|builder, actor| {
        let address = actor.address();
        let builder = builder.on("Named", &address, crate::support::Message::Xy);
        builder.name("test_api.Table").answers(Answers::Envelope)
    });
    assert_eq!(of_server.get("/Xy").body, table);
    let named = "{\"value\":[\"test_api.Table\",[[0.5]],[]]}";
    assert_eq!(of_server.get("/Named").body, named);
    let plain = plain();
    let mut client = plain.client();
    client.send(
        "GET /Xy HTTP/1.1\r\nHost: localhost\r\nAccept: text/html, \
         application/vnd.layer_cake+json;q=0.9\r\n\r\n",
    );
    assert_eq!(client.response().body, table);
    assert_eq!(client.get("/Xy").body, "[[0.5]]");
}

#[test]
fn refusals_have_their_statuses() {
    let served = plain();
    let response = |how: &str| served.get(&format!("/Act?how={how}"));
    assert_eq!(response("answer").body, "42");
    for (how, status, reason, after) in [
        ("busy", 503, "Service Unavailable", Some("1")),
        ("timed", 504, "Gateway Timeout", None),
        ("teapot", 418, "I'm a teapot", None),
        // A status below 200 would not be the last one of an answer.
        ("100", 500, "Internal Server Error", None),
        ("199", 500, "Internal Server Error", None),
        ("200", 200, "OK", None),
        ("302", 302, "Found", None),
        ("599", 599, "Unassigned", None),
        ("600", 500, "Internal Server Error", None),
        ("-1", 500, "Internal Server Error", None),
        ("else", 500, "Internal Server Error", None),
        ("drop", 500, "Internal Server Error", None),
    ] {
        let response = response(how);
        assert_eq!(
            (response.status, &*response.reason),
            (status, reason),
            "{how}"
        );
        assert_eq!(response.header("retry-after"), after, "{how}");
    }
    let teapot = "{\"kind\":\"Fault\",\"condition\":\"short\",\"explanation\":\"and stout\",\"error_code\":418,\
                  \"exit_status\":3}";
    assert_eq!(response("teapot").body, teapot);
}

/// Refuses a request. Returns its response.
fn refused(served: &Served, refusal: Refusal) -> Response {
    let mut client = served.client();
    client.send("GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    served.kept().refuse(refusal);
    client.response()
}

#[test]
fn each_kind_of_refusal_has_its_status_its_pause_and_its_name() {
    let served = plain();
    for (kind, status, after, name, condition) in [
        (RefusalKind::Fault, 500, None, "Fault", "fault"),
        (RefusalKind::Aborted, 500, None, "Aborted", "aborted"),
        (RefusalKind::TimedOut, 504, None, "TimedOut", "timed out"),
        (
            RefusalKind::Unavailable,
            503,
            Some("1"),
            "Unavailable",
            "temporarily unavailable",
        ),
        (RefusalKind::Busy, 503, Some("1"), "Busy", "busy"),
        (
            RefusalKind::Overloaded,
            503,
            Some("1"),
            "Overloaded",
            "overloaded",
        ),
        (
            RefusalKind::OutOfService,
            503,
            Some("1"),
            "OutOfService",
            "out of service",
        ),
        (
            RefusalKind::ToBeConfirmed,
            500,
            None,
            "ToBeConfirmed",
            "to be confirmed",
        ),
        (
            RefusalKind::NotListening,
            500,
            None,
            "NotListening",
            "not listening",
        ),
        (
            RefusalKind::NotConnected,
            500,
            None,
            "NotConnected",
            "not connected",
        ),
        (
            RefusalKind::NotAccepted,
            500,
            None,
            "NotAccepted",
            "not accepted",
        ),
    ] {
        let response = refused(&served, Refusal::of(kind, "why"));
        assert_eq!(response.status, status);
        assert_eq!(response.header("retry-after"), after, "{name}");
        let body = format!(
            "{{\"kind\":\"{name}\",\"condition\":\"{condition}\",\"explanation\":\"why\",\
             \"error_code\":null,\"exit_status\":null}}"
        );
        assert_eq!(response.body, body);
        // An error code goes before the status of the kind, also for the pause.
        let coded = refused(&served, Refusal::of(kind, "why").with_error_code(429));
        assert_eq!((coded.status, coded.header("retry-after")), (429, None));
    }
}

#[test]
fn a_busy_spool_asks_for_a_pause_beyond_its_average_response_time() {
    async fn slow(mut cx: Context<((), Reply<u32>)>) {
        while let Some(((), reply)) = cx.recv().await {
            sleep(Duration::from_millis(3500)).await;
            reply.send(1);
        }
    }
    let busy = greenroom::sim::run(1, async {
        let spool = Spool::builder(|_| spawn!(slow(_))).workers(1);
        let spool = spool.responsiveness(Duration::from_secs(1)).spawn();
        let spool = spool.unwrap();
        assert_eq!(spool.ask(()).await, Ok(1));
        match spool.ask(()).await {
            Err(AskError::Refused(busy)) => busy,
            other => panic!("not refused: {other:?}"),
        }
    });
    let response = refused(&plain(), busy);
    assert_eq!(
        (response.status, response.header("retry-after")),
        (503, Some("4"))
    );
}

#[test]
fn a_panic_while_an_answer_is_made_is_answered() {
    #[derive(Debug)]
    struct Fails;
    impl Collector for Fails {
        fn encode(&self, _: DescriptorEncoder<'_>) -> std::fmt::Result {
            panic!("a secret");
        }
    }
    let served = served(|builder, actor| {
        let address = actor.address();
        builder
            .on("Made", &address, |_: Xy, _: Reply<u32>| panic!("a secret"))
            .unknown(&address, |_, _| panic!("a secret"))
            .mount(metrics().collector(Fails))
    });
    let mut client = served.client();
    for uri in ["/Made", "/nothing", "/metrics"] {
        client.send(format!("GET {uri} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let response = client.response_to(false).expect(uri);
        assert_eq!(response.status, 500, "{uri}");
        assert!(!response.body.contains("secret"), "{}", response.body);
    }
    assert_eq!(client.get("/Xy").status, 200);
}

#[test]
fn a_panic_is_answered_without_its_text_and_a_closed_actor_with_503() {
    let served = plain();
    let mut client = served.client();
    let panicked = client.get("/Act?how=panic");
    assert_eq!(panicked.status, 500);
    assert!(!panicked.body.contains("secret"), "{}", panicked.body);
    until("the actor ends", || served.actor.is_closed());
    let closed = client.get("/Act?how=answer");
    assert_eq!(
        (closed.status, closed.header("retry-after")),
        (503, Some("1"))
    );
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let served = plain();
    let mut client = served.client();
    let get = |uri: &str| format!("GET {uri} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let many = (1..=50).map(|x| get(&format!("/Xy?x={x}")));
    client.send(many.collect::<String>());
    for x in 1..=50 {
        assert_eq!(
            client.response().body,
            format!("[[{}]]", vec!["0.5"; x].join(","))
        );
    }
    // The first of two is answered late.
    client.send(get("/Act?how=keep") + &get("/Xy"));
    served.kept().send(7);
    assert_eq!(
        (client.response().body, client.response().body),
        ("7".into(), "[[0.5]]".into())
    );
}

#[test]
fn a_reply_is_not_wanted_when_the_client_is_gone() {
    let served = plain();
    // Also one that has sent another request behind it.
    for requests in [1, 2] {
        let mut client = served.client();
        let request = "GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n";
        client.send(request.repeat(requests));
        let reply = served.kept();
        assert!(reply.is_wanted());
        client.reset();
        until("the client is gone", || !reply.is_wanted());
    }
    assert_eq!(served.get("/Xy").status, 200);
}

#[test]
fn an_old_client_is_answered_and_the_connection_closed() {
    let served = plain();
    let mut client = served.client();
    client.send("GET /Xy HTTP/1.0\r\n\r\n");
    assert_eq!(client.response().body, "[[0.5]]");
    assert!(client.is_closed());
}

#[test]
fn an_old_client_is_not_told_to_go_on_after_the_last_answer() {
    let served = served(|builder, _| {
        builder.limits(greenroom_http::Limits {
            requests_a_connection: 2,
            ..patient()
        })
    });
    let mut client = served.client();
    for connection in ["keep-alive", "close"] {
        client.send("GET /Xy HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.response().header("connection"), Some(connection));
    }
    assert!(client.is_closed());
}

/// Returns what curl prints for these arguments, if it is installed.
fn curl(arguments: &[&str]) -> Option<String> {
    let mut curl = std::process::Command::new("curl");
    let Ok(output) = curl.arg("-sS").args(arguments).output() else {
        eprintln!("curl is not installed");
        return None;
    };
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn curl_is_answered() {
    let served = plain();
    let url = |path: &str| format!("http://{}{path}", served.server.local_addr());
    let own = url("/Xy");
    for arguments in [
        &[&*url("/Xy?x=2&y=2")][..],
        &["-d", "x=2", "-d", "y=2", &own],
        &["--json", "{\"x\": 2, \"y\": 2}", &own],
        &["--json", "{\"value\": {\"x\": 2, \"y\": 2}}", &own],
        &["--http1.0", &url("/Xy?x=2&y=2")],
        &["-G", "--data-urlencode", "x=2", "-d", "y=2", &own],
    ] {
        let Some(printed) = curl(arguments) else {
            return;
        };
        assert_eq!(printed, "[[0.5,0.5],[0.5,0.5]]", "{arguments:?}");
    }
}

/// The answer that layer_cake's document on multithreading shows for `curl -s 'http://127.0.0.1:5050/Xy?x=2&y=2'`.
const SHOWN: &str = r#"{
    "value": [
        "vector<vector<float8>>",
        [
            [
                0.7121297344671714,
                0.2617093660768349
            ],
            [
                0.44326145558200136,
                0.1843574524335293
            ]
        ],
        []
    ]
}"#;

#[test]
fn an_envelope_has_the_bytes_that_layer_cake_shows() {
    let made = |mut cx: Context<(Xy, Reply<Vec<Vec<f64>>>)>| async move {
        let mut numbers = [
            0.7121297344671714,
            0.2617093660768349,
            0.44326145558200136,
            0.1843574524335293,
        ]
        .into_iter();
        while let Some((Xy { x, y }, reply)) = cx.recv().await {
            let mut row = |_| numbers.by_ref().take(x as usize).collect();
            reply.send((0..y).map(&mut row).collect());
        }
    };
    let made = greenroom::actor(made);
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let made = made.on(&runtime).spawn();
    let served = served(|builder, _| {
        let builder = builder.on("Shown", &made.address(), |xy: Xy, reply| (xy, reply));
        builder.answers(Answers::Envelope)
    });
    // The document shows it with spaces and lines, which the bytes do not have.
    let compact: String = SHOWN.split_whitespace().collect();
    let url = format!("http://{}/Shown?x=2&y=2", served.server.local_addr());
    if let Some(printed) = curl(&["-s", &url]) {
        assert_eq!(printed, compact);
    }
}

#[test]
fn a_type_may_give_its_name_to_an_envelope() {
    struct Own;
    greenroom_http::portable!(Own, "test_api.Own");
    let served = served(|builder, actor| {
        let builder = builder.on("Named", &actor.address(), crate::support::Message::Xy);
        let name = Vec::<Own>::portable();
        builder.name(&name).answers(Answers::Envelope)
    });
    let named = "{\"value\":[\"vector<test_api.Own>\",[[0.5]],[]]}";
    assert_eq!(served.get("/Named").body, named);
}

/// A writer that the test can read.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_trace_has_a_line_for_each_request() {
    use greenroom::trace::{Level, Lines};
    let log = Log::default();
    let lines = Lines::to(log.clone(), Level::Trace);
    let served = crate::support::served_on(
        greenroom::Runtime::builder().workers(1).tracer(lines),
        |builder, _| builder,
    );
    assert_eq!(served.get("/Xy?x=2").status, 200);
    assert_eq!(served.get("/Else?a=%0a").status, 404);
    let text = || String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    until("both lines are written", || text().contains("status=404"));
    let text = text();
    let has = |line: &str| text.lines().any(|it| it.ends_with(line));
    assert!(has("GET /Xy?x=2 (status=200)"), "{text}");
    assert!(has("GET /Else?a=%0a (status=404)"), "{text}");
}

#[test]
fn events_tell_that_a_server_does_not_listen() {
    let (sender, received) = std::sync::mpsc::channel();
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let observer = greenroom::actor(move |mut cx: Context<HttpEvent>| async move {
        while let Some(event) = cx.recv().await {
            sender.send(event).unwrap();
        }
    });
    let observer = observer.on(&runtime).spawn();
    let other = plain();
    let second = greenroom_http::Server::bind(other.server.local_addr());
    let listens = second.events(&observer.address()).listen();
    let error = runtime.block_on(listens).unwrap_err();
    assert_eq!(received.recv().unwrap(), HttpEvent::NotListening(error));
}

#[test]
fn events_tell_of_connections() {
    let (sender, received) = std::sync::mpsc::channel();
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let observer = greenroom::actor(move |mut cx: greenroom::Context<HttpEvent>| async move {
        while let Some(event) = cx.recv().await {
            sender.send(event).unwrap();
        }
    });
    let observer = observer.on(&runtime).spawn();
    let served = served(|builder, _| builder.events(&observer.address()));
    let addr = served.server.local_addr();
    assert_eq!(received.recv().unwrap(), HttpEvent::Listening { addr });
    let mut client = served.client();
    client.get("/Xy");
    let peer = client.0.local_addr().unwrap();
    assert_eq!(
        received.recv().unwrap(),
        HttpEvent::Accepted { id: 1, peer }
    );
    drop(client);
    let why = greenroom_http::CloseReason::Done;
    assert_eq!(received.recv().unwrap(), HttpEvent::Closed { id: 1, why });
}
