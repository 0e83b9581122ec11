//! Requests: names, queries, forms and JSON, and what is refused.

use crate::support::{Color, Kinds, plain, served};

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

#[test]
fn the_last_segment_of_the_path_names_the_type() {
    let served = plain();
    for uri in [
        "/Xy?x=2&y=1",
        "/any/prefix/Xy?y=1&x=2",
        "//Xy?x=2",
        "/%58y?x=2",
    ] {
        let response = served.get(uri);
        assert_eq!(
            (response.status, &*response.body),
            (200, "[[0.5,0.5]]"),
            "{uri}"
        );
    }
    let unknown = served.get("/Yx?x=1");
    assert_eq!(
        (unknown.status, &*unknown.text()),
        (404, "not found (unknown type \"Yx\")")
    );
}

#[test]
fn fields_that_are_left_out_have_their_defaults() {
    let served = plain();
    for uri in ["/Xy", "/Xy?", "/Xy?x=", "/Xy?&&"] {
        assert_eq!(served.get(uri).body, "[[0.5]]", "{uri}");
    }
    let without = served.get("/Act");
    assert_eq!(without.status, 400);
    assert_eq!(
        without.text(),
        "cannot recover request \"/Act\" (missing field `how`)"
    );
}

#[test]
fn values_of_a_query_are_json_and_strings_have_no_quotes() {
    let served = plain();
    let uri = "/Kinds?number=-7&float=2.5&yes=true&text=a+b%26%C3%A9&color=green&list=[1,2]\
               &map={%22k%22:3}&maybe=4&day=2026-11-26&at=2026-11-26T08:30:00.5\
               &id=67e55044-10b1-426f-9247-bb680e5fe0c8";
    let kinds = Kinds {
        number: -7,
        float: 2.5,
        yes: true,
        text: "a b&é".to_owned(),
        color: Color::Green,
        list: vec![1, 2],
        map: [("k".to_owned(), 3)].into(),
        maybe: Some(4),
        day: "2026-11-26".parse().unwrap(),
        at: "2026-11-26T08:30:00.5".parse().unwrap(),
        id: "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap(),
    };
    let response = served.get(uri);
    assert_eq!(
        serde_json::from_str::<Kinds>(&response.body).unwrap(),
        kinds
    );
    let (_, query) = uri.split_once('?').unwrap();
    let of_form = served.post("/Kinds", &format!("{FORM}; charset=utf-8"), query);
    assert_eq!(of_form.body, response.body);
    let json = serde_json::to_string(&kinds).unwrap();
    for body in [json.clone(), format!("{{\"value\": {json}}}")] {
        assert_eq!(served.post("/Kinds", JSON, &body).body, response.body);
    }
}

#[test]
fn what_is_no_value_of_the_type_is_refused_with_the_reason_and_reaches_no_actor() {
    let served = plain();
    for (uri, why) in [
        ("/Xy?zz=1", "unknown key \"zz\" in \"Xy\" query"),
        ("/Xy?flag", "unexpected field \"flag\" query"),
        ("/Xy?x=1&x=2", "duplicate field `x`"),
        ("/", "no type name"),
        ("/Xy/", "no type name"),
    ] {
        let response = served.get(uri);
        assert_eq!(response.status, 400, "{uri}");
        assert_eq!(
            response.text(),
            format!("cannot recover request \"{uri}\" ({why})")
        );
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
    for (uri, begin) in [
        ("/Xy?x=two", "no conversion for \"x\" ("),
        ("/Xy?x=two&y=three", "no conversion for \"x\" ("),
        (
            "/Kinds?color=blue",
            "no conversion for \"color\" (unknown variant `blue`",
        ),
        ("/Xy?x=%zz", "incomplete escape"),
        ("/%ff", "\"%ff\" is not UTF-8"),
    ] {
        let response = served.get(uri);
        assert_eq!(response.status, 400, "{uri}");
        let text = format!("cannot recover request \"{uri}\" ({begin}");
        assert!(response.text().starts_with(&text), "{}", response.body);
    }
    for (media, body, begin) in [
        ("text/xml", "<x/>", "unexpected content type \"text/xml\")"),
        (JSON, "{\"x\":", "EOF while parsing"),
        (
            JSON,
            "{\"value\":{\"zz\":1}}",
            "unknown key \"zz\" in \"Xy\" body)",
        ),
        (JSON, "\"a\"", "invalid type: string"),
        (JSON, &"[".repeat(65), "JSON is deeper than 64)"),
        (
            JSON,
            &format!("[{}1]", "1,".repeat(10_000)),
            "a list is longer than 10000)",
        ),
        (FORM, "x=\"1\"", "no conversion for \"x\""),
        (
            FORM,
            &format!("x={}", "[".repeat(65)),
            "no conversion for \"x\" (JSON is deeper than 64))",
        ),
    ] {
        let response = served.post("/Xy", media, body);
        assert_eq!(response.status, 400, "{body:.20}");
        let text = format!("cannot recover request \"/Xy\" ({begin}");
        assert!(response.text().starts_with(&text), "{}", response.body);
    }
    let mut client = served.client();
    client.send("POST /Xy HTTP/1.1\r\nHost: a.localhost\r\nHost: b\r\n\r\n");
    assert_eq!(client.response().status, 400);
    let mut client = served.client();
    client.send("POST /Xy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    let text = "cannot recover request \"/Xy\" (unexpected content type \"None\")";
    assert_eq!(client.response().text(), text);
    assert_eq!(served.messages(), 0);
    // The connection goes on after a refused value.
    assert_eq!(client.get("/Xy").status, 200);
}

#[test]
fn dates_and_uuids_are_whole_and_have_no_quotes() {
    let served = plain();
    for (field, value) in [
        ("day", "today"),
        ("day", "%222026-11-26%22"),
        ("at", "2026-11-26"),
        ("id", "67e55044"),
        ("id", "%2267e55044-10b1-426f-9247-bb680e5fe0c8%22"),
    ] {
        let response = served.get(&format!("/Kinds?{field}={value}"));
        assert_eq!(response.status, 400, "{field}={value}");
        let why = format!("no conversion for \"{field}\" (");
        assert!(response.text().contains(&why), "{}", response.body);
    }
    assert_eq!(served.messages(), 0);
}

#[test]
fn input_is_repeated_escaped_and_cut() {
    let served = plain();
    let response = served.get(&format!(
        "/Xy?x=%22%0d%0a%00{}",
        "<".repeat(1000).replace('<', "%3C")
    ));
    assert!(response.body.len() < 700, "{}", response.body);
    assert!(
        !response.body.contains(['\r', '\n', '\0', '<']),
        "{}",
        response.body
    );
}

#[test]
fn methods_that_a_type_does_not_have_are_named() {
    let served = served(|builder, actor| {
        let builder = builder.on("Only", &actor.address(), crate::support::Message::Xy);
        builder.post_only()
    });
    let mut client = served.client();
    let refused = client.get("/Only?x=1");
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("POST, OPTIONS"))
    );
    assert_eq!(client.post("/Only", FORM, "x=2").body, "[[0.5,0.5]]");
    for (method, status) in [
        ("PATCH", 405),
        ("PUT", 405),
        ("DELETE", 405),
        ("OPTIONS", 204),
    ] {
        client.send(format!("{method} /Xy HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let response = client.response();
        let allow = response.header("allow");
        assert_eq!(
            (response.status, allow),
            (status, Some("GET, HEAD, POST, OPTIONS"))
        );
    }
}

#[test]
fn the_server_itself_has_options() {
    let served = plain();
    let mut client = served.client();
    client.send("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = client.response_to(true).unwrap();
    let allow = response.header("allow");
    assert_eq!(
        (response.status, allow),
        (204, Some("GET, HEAD, POST, OPTIONS"))
    );
}

#[test]
fn a_head_request_is_answered_as_get_without_a_body() {
    let served = plain();
    let mut client = served.client();
    client.send("HEAD /Xy HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = client.response_to(true).unwrap();
    assert_eq!(
        (response.status, response.header("content-length")),
        (200, Some("7"))
    );
    assert_eq!(client.get("/Xy").body, "[[0.5]]");
}

#[test]
fn other_names_are_handled_by_the_actor_for_unknown_ones() {
    let served =
        served(|builder, actor| builder.unknown(&actor.address(), crate::support::Message::Raw));
    let response = served.post("/other?q", "text/plain", "hello");
    let asked = "POST /other?q {\"host\": \"localhost\", \"content-type\": \"text/plain\", \
                 \"content-length\": \"5\"} hello";
    assert_eq!((response.status, &*response.body), (202, asked));
    assert_eq!(response.header("x-own"), Some("yes"));
    assert_eq!(served.get("/Xy").status, 200);
    assert_eq!(served.get("/").status, 400);
}

#[test]
fn only_allowed_hosts_and_origins_may_call() {
    let served = served(|builder, _| builder.hosts(["example.org"]));
    let mut client = served.client();
    let mut status = |host: &str, origin: &str| {
        let origin = match origin {
            "" => String::new(),
            origin => format!("Origin: {origin}\r\n"),
        };
        client.send(format!("GET /Xy HTTP/1.1\r\nHost: {host}\r\n{origin}\r\n"));
        client.response().status
    };
    assert_eq!(status("localhost:5050", ""), 200);
    assert_eq!(status("example.org", "https://example.org"), 200);
    assert_eq!(status("evil.org", ""), 403);
    assert_eq!(status("localhost", "http://evil.org"), 403);
    assert_eq!(status("localhost", "null"), 403);
    let mut client = served.client();
    client.send("GET http://evil.org/Xy HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response().status, 403);
}
