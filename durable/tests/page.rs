//! The page `/jobs` and the section of the console, asked for over a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use greenroom_durable::{Job, Serve, Store, Stored, jobs_section, with_jobs};
use greenroom_http::{Server, console};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Letter(String);

impl Stored for Letter {
    const KIND: &'static str = "letter/1";
}

/// Sends a request and returns the whole response.
fn ask(address: &str, head: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn the_page_shows_dead_letters_and_its_form_puts_them_again() {
    let folder = tempfile::tempdir().unwrap();
    greenroom::run(async {
        let store = Store::sqlite(folder.path().join("letters.db"))
            .open()
            .await
            .unwrap();
        let queue = store.queue::<Letter>("<letters>").open().await.unwrap();
        let intervals = [std::time::Duration::from_millis(1)];
        let retries = greenroom::time::RetryIntervals::steps(intervals).unwrap();
        let serve = Serve::workers(1).retries(retries);
        let workers = queue.serve(serve, |_| async { Err::<(), _>("no <b>stamp</b>") });
        let workers = workers.await.unwrap();
        queue
            .put(Job::new(Letter("to \"Bob\"".into())).id("one"))
            .await
            .unwrap();
        queue.outcome("one").await.unwrap();
        workers.stop().await;

        let server = with_jobs(Server::bind("127.0.0.1:0"), &store)
            .listen()
            .await
            .unwrap();
        let address = server.local_addr().to_string();
        let own = address.clone();
        let get = move || ask(&own, "GET /jobs", "");
        let page = greenroom::unblock(get.clone()).await;
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        assert!(
            page.contains("<td>no &lt;b&gt;stamp&lt;/b&gt;</td>"),
            "{page}"
        );
        assert!(
            page.contains("name=\"queue\" value=\"&lt;letters&gt;\""),
            "{page}"
        );
        assert!(!page.contains("<letters>"), "{page}");

        let post = move |head: &'static str| {
            let address = address.clone();
            move || ask(&address, head, "queue=%3Cletters%3E&number=1")
        };
        let refused = greenroom::unblock(post("GET /RequeueJob")).await;
        assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
        let foreign = "POST /RequeueJob HTTP/1.1\r\norigin: http://elsewhere.example\r\nx: ";
        let refused = greenroom::unblock(post(foreign)).await;
        assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
        assert_eq!(queue.status().await.unwrap().dead, 1);
        let done = greenroom::unblock(post("POST /RequeueJob")).await;
        assert!(done.starts_with("HTTP/1.1 200 "), "{done}");
        let status = queue.status().await.unwrap();
        assert_eq!((status.dead, status.waiting), (0, 1));
        let again = greenroom::unblock(post("POST /RequeueJob")).await;
        assert!(!again.starts_with("HTTP/1.1 200 "), "{again}");
        server.stop().await;
        store.close().await;
    });
}

/// Returns the first line about a section.
fn look(address: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    write!(
        socket,
        "GET /console/v1 HTTP/1.1\r\nhost: {address}\r\n\r\n"
    )
    .unwrap();
    let mut lines = BufReader::new(socket).lines().map(Result::unwrap);
    lines
        .find(|line| line.contains("\"event\":\"section\""))
        .unwrap()
}

#[test]
fn the_console_has_a_row_for_each_queue_or_says_why_it_has_none() {
    let folder = tempfile::tempdir().unwrap();
    greenroom::run(async {
        let store = Store::sqlite(folder.path().join("letters.db"))
            .open()
            .await
            .unwrap();
        let queue = store.queue::<Letter>("letters").open().await.unwrap();
        let waits = queue.put(Job::new(Letter("to \"Bob\"".into()))).await;
        waits.unwrap();
        queue.pause().await.unwrap();
        let page = console().section("jobs", jobs_section(&store));
        let server = Server::bind("127.0.0.1:0")
            .mount(page)
            .listen()
            .await
            .unwrap();
        let address = server.local_addr().to_string();
        let own = address.clone();
        let line = greenroom::unblock(move || look(&own)).await;
        let row = r#""rows":[["letters (paused)",1,0,1,0,0,0,""#;
        assert!(line.contains(row), "{line}");

        store.close().await;
        let line = greenroom::unblock(move || look(&address)).await;
        assert!(line.contains(r#""columns":["error"]"#), "{line}");
        server.stop().await;
    });
}
