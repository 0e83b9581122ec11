//! Connections to a program, which the test plays.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;

use greenroom::{Context, Runtime};
use greenroom_console::feed::{Fed, LineFeed, LineOrigin};
use greenroom_console::session::{Demand, Session};
use greenroom_http::{Server, console};

use crate::lines::Lines;

/// Returns the head of a request.
fn read_head(stream: &mut impl Read) -> String {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    head
}

/// A program that answers each connection with one of these texts, and then closes it. It returns what it
/// was asked.
fn program(answers: Vec<String>) -> (LineOrigin, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            asked.push(read_head(&mut stream));
            stream.write_all(answer.as_bytes()).unwrap();
        }
        asked
    });
    let token = Some("secret".to_owned());
    (LineOrigin::Live(url.parse().unwrap(), token), answering)
}

fn with_body(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n{body}")
}

fn whole(name: &str) -> String {
    let mut lines = Lines::new();
    lines.idle(1, name);
    lines.tick();
    with_body("200 OK", lines.text())
}

/// Takes what comes until the session demands something else than to draw, or has this actor.
async fn until(session: &mut Session, feed: &mut LineFeed, name: &str) -> Option<Demand> {
    loop {
        let fed = feed.next().await?;
        let demand = session.take(fed);
        if !matches!(demand, Demand::Nothing | Demand::Draw) {
            return Some(demand);
        }
        if session.model.is_whole() && session.model.label(1).starts_with(name) {
            return None;
        }
    }
}

fn on_tokio<T>(test: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(test)
}

#[test]
fn a_lost_connection_is_made_again_and_said() {
    let (origin, answering) = program(vec![whole("first"), whole("second")]);
    let session = on_tokio(async {
        let mut session = Session::new(&origin, None);
        let mut feed = LineFeed::begin(&origin, false);
        assert_eq!(until(&mut session, &mut feed, "first").await, None);
        assert_eq!(until(&mut session, &mut feed, "second").await, None);
        session
    });
    let log: Vec<_> = session.model.log().iter().map(|line| &*line.text).collect();
    assert_eq!(
        log,
        ["the connection is lost: the program has closed the connection"]
    );
    for head in answering.join().unwrap() {
        assert!(head.starts_with("GET /console/v1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: Bearer secret\r\n"), "{head}");
    }
}

#[test]
fn a_program_that_mounts_its_console_is_shown() {
    let runtime = Runtime::new().unwrap();
    let idle = |mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} };
    let shop = greenroom::actor(idle).name("shop").on(&runtime).spawn();
    let server = Server::bind("127.0.0.1:0").mount(console()).listen();
    let server = runtime.block_on(server).unwrap();
    let url = format!("http://{}", server.local_addr());
    let origin = LineOrigin::Live(url.parse().unwrap(), None);
    on_tokio(async {
        let mut session = Session::new(&origin, None);
        let mut feed = LineFeed::begin(&origin, false);
        while !session.model.is_whole() {
            let fed = feed.next().await.unwrap();
            let demand = session.take(fed);
            assert!(
                matches!(demand, Demand::Nothing | Demand::Draw),
                "{demand:?}"
            );
        }
        let label = session.model.label(shop.id());
        assert!(label.starts_with("shop"), "{label}");
    });
}

#[test]
fn a_program_that_hangs_is_silent_for_more_and_more_seconds_and_then_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (ends, ended) = channel::<()>();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream);
        stream.write_all(whole("hung").as_bytes()).unwrap();
        // It keeps the connection, and sends no more.
        let _ = ended.recv();
    });
    let origin = LineOrigin::Live(url.parse().unwrap(), None);
    on_tokio(async {
        let mut session = Session::new(&origin, None);
        let mut feed = LineFeed::begin(&origin, false);
        assert_eq!(until(&mut session, &mut feed, "hung").await, None);
        // From here on time passes at once when nothing else is to be done.
        tokio::time::pause();
        let mut seconds = Vec::new();
        loop {
            match feed.next().await.unwrap() {
                Fed::Silence(count) => seconds.push(count),
                Fed::Lines(_) => seconds.clear(),
                Fed::Lost(why, _) => {
                    assert_eq!(why, "nothing came for 30 s");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(seconds.into_iter().eq(1..=30));
    });
    drop(ends);
    answering.join().unwrap();
}

#[test]
fn a_gap_demands_a_new_connection() {
    let mut lines = Lines::new();
    lines.tick();
    let body = lines.text().to_owned() + "{\"seq\":7,\"event\":\"reset\"}\n";
    let (origin, answering) = program(vec![with_body("200 OK", &body)]);
    let session = on_tokio(async {
        let mut session = Session::new(&origin, None);
        let mut feed = LineFeed::begin(&origin, false);
        let demand = until(&mut session, &mut feed, "none").await;
        assert_eq!(demand, Some(Demand::Reconnect));
        session
    });
    let log: Vec<_> = session.model.log().iter().map(|line| &*line.text).collect();
    assert_eq!(log, ["line 3 was lost: line 7 came; connecting again"]);
    answering.join().unwrap();
}

#[test]
fn a_wrong_token_is_refused_and_a_full_house_is_tried_again() {
    let answers = ["503 Service Unavailable", "401 Unauthorized"];
    let (origin, answering) = program(answers.map(|status| with_body(status, "")).to_vec());
    let mut session = Session::new(&origin, None);
    let demand = on_tokio(async {
        let mut feed = LineFeed::begin(&origin, false);
        until(&mut session, &mut feed, "none").await
    });
    let Some(Demand::Fail(why)) = demand else {
        panic!("{demand:?}");
    };
    assert!(why.contains("--token-file"), "{why}");
    let log = &session.model.log()[0].text;
    assert!(log.contains("as many viewers as it allows"), "{log}");
    answering.join().unwrap();
}

#[cfg(unix)]
#[test]
fn a_unix_socket_is_read_as_well() {
    use std::os::unix::net::UnixListener;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop");
    let listener = UnixListener::bind(&path).unwrap();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream);
        stream.write_all(whole("local").as_bytes()).unwrap();
    });
    let origin = LineOrigin::Live(path.to_str().unwrap().parse().unwrap(), None);
    on_tokio(async {
        let mut session = Session::new(&origin, None);
        let mut feed = LineFeed::begin(&origin, false);
        assert_eq!(until(&mut session, &mut feed, "local").await, None);
    });
    answering.join().unwrap();
}
