//! What the server itself refuses: each cause has its status, its text and its counter. The table of
//! the README is that of this test.

mod causes;

use std::net::Shutdown;
use std::time::Duration;

use greenroom_http::{HttpResponse, Limits, metrics};

use causes::{CAUSES, Cause, JSON, head};

use crate::support::{Message, Response, number, patient, served, until};

const SHORT: Duration = Duration::from_millis(50);

/// The limits of the server of each cause.
fn limits(of: &Cause) -> Limits {
    let mut limits = Limits {
        uri: 100,
        header_value: 64,
        headers: 10,
        head: 512,
        body: 100,
        depth: 3,
        list: 3,
        ..patient()
    };
    match of.counter {
        Some(("limit", "head_time")) => limits.head_time = SHORT,
        Some(("limit", "body_time")) => limits.body_time = SHORT,
        Some(("limit", "answer_time")) => limits.answer_time = SHORT,
        Some(("limit", "in_flight")) => limits.in_flight = 1,
        Some(("limit", "connections")) => limits.connections = 1,
        Some(("limit", "connections_a_peer")) => limits.connections_a_peer = 1,
        Some(("limit", "body_rate")) => limits.body_rate = u64::MAX,
        Some(("limit", "unsent")) => limits.unsent = 1 << 20,
        _ => {}
    }
    limits
}

/// Returns the explanation of a refusal.
fn explanation(response: &Response) -> String {
    assert_eq!(response.header("content-type"), Some("application/json"));
    let refusal: serde_json::Value = serde_json::from_str(&response.body).unwrap();
    let words = [
        "kind",
        "condition",
        "explanation",
        "error_code",
        "exit_status",
    ];
    assert!(
        words.iter().all(|word| refusal.get(word).is_some()),
        "{refusal}"
    );
    refusal["explanation"].as_str().unwrap().to_owned()
}

#[test]
fn each_cause_of_a_refusal_has_its_status_its_text_its_counter_and_its_end() {
    for cause in CAUSES {
        let name = cause.cause;
        let served = served(|builder, actor| {
            let builder = (cause.serve)(builder, &actor.address());
            builder.mount(metrics()).limits(limits(cause))
        });
        let (mut client, response) = loop {
            let mut client = served.client();
            (cause.send)(&served, &mut client);
            match client.response_to(false) {
                Some(response) => break (client, response),
                // The client may send its part of a head when the time is over.
                None => assert_eq!(cause.says, "the head took too long", "{name}"),
            }
        };
        assert_eq!(response.status, cause.status, "{name}: {response:?}");
        let said = explanation(&response);
        assert!(said.contains(cause.says), "{name}: {said}");
        let closes = response.header("connection") == Some("close");
        assert_eq!(closes, !cause.stays, "{name}");
        if closes {
            // Nothing more is wanted of the client.
            let _ = client.0.shutdown(Shutdown::Write);
            assert!(client.is_closed(), "{name}");
        } else {
            assert_eq!(client.get("/metrics").status, 200, "{name}");
        }
        if let Some((label, value)) = cause.counter {
            let family = match label {
                "limit" => "limits",
                _ => "refused_callers",
            };
            let line = format!("greenroom_http_{family}_total{{{label}=\"{value}\"}}");
            // The next connection may need the place of one that was kept.
            served.seen.kept.lock().unwrap().clear();
            let mut page = String::new();
            until("there is room for another connection", || {
                let mut client = served.client();
                head(&mut client, "GET /metrics", "");
                let response = client.response_to(false);
                page = response.map(|it| it.body).unwrap_or_default();
                number(&page, &line).is_some()
            });
            assert!(number(&page, &line) >= Some(1.0), "{name}: {page}");
        }
    }
}

#[test]
fn a_client_that_takes_no_json_gets_a_line_of_text() {
    let served = served(|builder, _| builder);
    for (accept, is_json) in [
        ("text/html,application/xhtml+xml,*/*;q=0.8", true),
        ("application/json", true),
        ("application/*", true),
        ("text/plain", false),
        ("text/html, image/png", false),
        ("text/plain, application/json;q=0", false),
        ("Application/JSON; q=0.1", true),
    ] {
        for uri in [
            "/Zz",
            "/Xy?z=1",
            "/Act?how=teapot",
            "/Nan?how=x",
            "/Act?how=busy",
        ] {
            let mut client = served.client();
            head(
                &mut client,
                &format!("GET {uri}"),
                &format!("Accept: {accept}\r\n"),
            );
            let response = client.response();
            let media = response.header("content-type").unwrap();
            let text = "text/plain; charset=utf-8";
            let expected = if is_json { "application/json" } else { text };
            assert_eq!(media, expected, "{accept} {uri}");
            let is_again = response.header("retry-after").is_some();
            assert_eq!(is_again, response.status == 503, "{accept} {uri}");
        }
    }
}

#[test]
fn an_unassigned_status_has_a_phrase_and_205_has_no_body() {
    let served = served(|builder, actor| builder.unknown(&actor.address(), Message::Raw));
    assert_eq!(served.get("/Act?how=599").reason, "Unassigned");
    let reset = served.get("/Act?how=205");
    assert_eq!((reset.status, &*reset.body), (205, ""));
    assert_eq!(reset.header("content-length"), Some("0"));
}

#[test]
fn a_page_may_be_at_the_root() {
    let page = HttpResponse::new(200, "<p>hello").header("content-type", "text/html");
    let served = served(|builder, _| builder.index(page));
    let response = served.get("/");
    assert_eq!((response.status, &*response.body), (200, "<p>hello"));
    let mut client = served.client();
    head(&mut client, "DELETE /", "");
    let refused = client.response();
    assert_eq!(refused.status, 405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD, OPTIONS"));
    head(&mut client, "OPTIONS /", "");
    assert_eq!(
        client.response().header("allow"),
        Some("GET, HEAD, OPTIONS")
    );
}

#[test]
fn a_client_that_waits_with_its_body_is_not_asked_for_it_in_vain() {
    let served = served(|builder, _| builder);
    for (line, fields, status) in [
        ("POST /Zz", "", 404),
        ("DELETE /Xy", "", 405),
        ("POST /Xy", "Content-Encoding: gzip\r\n", 415),
        ("POST /Xy", "Content-Type: text/csv\r\n", 400),
        ("POST /Xy", "Origin: http://evil.org\r\n", 403),
    ] {
        let mut client = served.client();
        let fields = format!("{fields}Expect: 100-continue\r\nContent-Length: 5\r\n");
        head(&mut client, line, &fields);
        let response = client.response();
        assert_eq!(response.status, status, "{line} {fields}");
        assert_eq!(response.header("connection"), Some("close"));
    }
    let mut client = served.client();
    let fields = format!("{JSON}Expect: 100-continue\r\nContent-Length: 7\r\n");
    head(&mut client, "POST /Xy", &fields);
    assert_eq!(client.response().status, 100);
    client.send("{\"x\":2}");
    assert_eq!(client.response().body, "[[0.5,0.5]]");
}

/// Returns the table of the README.
fn table() -> String {
    let mut table =
        String::from("| cause | status | says | counter | connection |\n|---|---|---|---|---|\n");
    for cause in CAUSES {
        let counter = cause.counter.map_or(String::new(), |(label, value)| {
            format!("`{label}=\"{value}\"`")
        });
        let end = if cause.stays { "stays" } else { "ends" };
        let (name, status, says) = (cause.cause, cause.status, cause.says);
        table += &format!("| {name} | {status} | {says} | {counter} | {end} |\n");
    }
    table
}

#[test]
fn the_readme_has_the_table_of_all_causes() {
    let readme = include_str!("../../README.md");
    let table = table();
    assert!(
        readme.contains(&table),
        "the README has another table than:\n{table}"
    );
}
