//! Clients: answers, refusals and faults of the other side, and what is never sent twice.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use greenroom::time::RetryIntervals;
use greenroom::{Address, AskError, Refusal, RefusalKind, Reply, Runtime};
use greenroom_http::{Answers, Client, ClientBuilder};

use crate::support::{Act, LONG, Served, Xy, held, patient, plain, served, until};

type Table = Vec<Vec<f64>>;

fn runtime() -> Runtime {
    let runtime = Runtime::builder().workers(2);
    runtime.driver(greenroom_http::driver()).build().unwrap()
}

fn open(runtime: &Runtime, builder: ClientBuilder) -> Client {
    runtime.block_on(async { builder.open().unwrap() })
}

fn client(served: &Served) -> (Runtime, Client) {
    let runtime = runtime();
    let client = open(&runtime, Client::connect(served.server.local_addr()));
    (runtime, client)
}

fn act(far: &Address<(Act, Reply<u32>)>, how: &str) -> Result<u32, AskError> {
    let how = how.to_owned();
    greenroom::run(far.ask(|reply| (Act { how }, reply)).into_future())
}

fn refused(outcome: Result<u32, AskError>) -> Refusal {
    match outcome {
        Err(AskError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_actor_elsewhere_has_an_address() {
    for form in [Answers::Plain, Answers::Envelope] {
        let served = served(|builder, _| builder.answers(form));
        for is_enveloped in [false, true] {
            let runtime = runtime();
            let builder = Client::connect(served.server.local_addr());
            let client = open(&runtime, builder.envelope(is_enveloped));
            let far = client.address::<Xy, Table>("Xy");
            let tables = (1..20).map(|x| far.request(move |reply| (Xy { x, y: 2 }, reply)));
            let tables: Vec<_> = tables.collect();
            for (x, table) in (1..20).zip(tables) {
                let table = runtime.block_on(table.into_future()).unwrap();
                assert_eq!(table, vec![vec![0.5; x]; 2]);
            }
        }
    }
}

#[test]
fn a_status_comes_back_as_the_refusal_that_it_was() {
    let served = plain();
    let (_runtime, client) = client(&served);
    let far = client.address::<Act, u32>("Act");
    assert_eq!(act(&far, "answer"), Ok(42));
    let teapot = Refusal::new("short", "and stout")
        .with_error_code(418)
        .with_exit_status(3);
    assert_eq!(refused(act(&far, "teapot")), teapot);
    let busy = Refusal::of(RefusalKind::Busy, "come again");
    assert_eq!(refused(act(&far, "busy")), busy);
    assert_eq!(refused(act(&far, "drop")).condition(), "no reply");
    let unknown = client.address::<Act, u32>("Else");
    assert_eq!(refused(act(&unknown, "answer")).error_code(), Some(404));
    let other = client.address::<Act, String>("Act");
    let outcome = other.ask(|reply| {
        (
            Act {
                how: "answer".to_owned(),
            },
            reply,
        )
    });
    let Err(AskError::Refused(refusal)) = greenroom::run(outcome.into_future()) else {
        panic!("an answer of another type was accepted");
    };
    assert_eq!(refusal.condition(), "malformed answer");
}

#[test]
fn a_client_connects_again_after_its_server_has_ended() {
    let first = plain();
    let address = first.server.local_addr();
    let (_runtime, client) = client(&first);
    let far = client.address::<Act, u32>("Act");
    assert_eq!(act(&far, "answer"), Ok(42));
    drop(first);
    let port = held(address);
    let gone = refused(act(&far, "answer"));
    assert!(matches!(
        gone.kind(),
        RefusalKind::NotConnected | RefusalKind::Unavailable
    ));
    port.listen(1).unwrap();
    let listener = TcpListener::from(port);
    let serves = std::thread::spawn(move || answer_one(&listener.accept().unwrap().0));
    assert_eq!(act(&far, "answer"), Ok(7));
    serves.join().unwrap();
}

/// Reads a request, and answers it with 7.
fn answer_one(mut stream: &TcpStream) {
    read_request(stream);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7";
    stream.write_all(answer.as_bytes()).unwrap();
}

fn read_request(mut stream: &TcpStream) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        request.push(byte[0]);
    }
    String::from_utf8(request).unwrap()
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Dials a listener whose queue is full, so that the system answers no further connection.
#[cfg(target_os = "linux")]
#[test]
fn a_try_to_connect_that_gets_no_answer_has_an_end() {
    let (_listener, address) = listener();
    let wait = Duration::from_millis(100);
    let try_it = |_| TcpStream::connect_timeout(&address, wait).ok();
    // A try is also over if the machine stops in it.
    let connect = || (0..5).find_map(try_it);
    let queued: Vec<_> = std::iter::from_fn(connect).take(10_000).collect();
    assert!(queued.len() < 10_000, "the queue is never full");
    let runtime = runtime();
    let once = RetryIntervals::steps([Duration::from_millis(1)]);
    let builder = Client::connect(address).retry_intervals(once.unwrap());
    let far = open(&runtime, builder.timeout(wait)).address::<Act, u32>("Act");
    let refusal = refused(act(&far, "answer"));
    assert_eq!(refusal.kind(), RefusalKind::NotConnected);
    // The limit of the system has another text, and comes after minutes.
    assert!(
        refusal.explanation().ends_with("(timed out)"),
        "{refusal:?}"
    );
}

#[test]
fn without_a_connection_nothing_was_sent() {
    // No other test gets the port meanwhile.
    let port = held(([127, 0, 0, 1], 0).into());
    let address = port.local_addr().unwrap().as_socket().unwrap();
    let runtime = runtime();
    let once = RetryIntervals::steps([Duration::from_millis(1)]);
    let builder = Client::connect(address).retry_intervals(once.unwrap());
    let far = open(&runtime, builder).address::<Act, u32>("Act");
    let refusal = refused(act(&far, "answer"));
    assert_eq!(refusal.kind(), RefusalKind::NotConnected);
    assert!(
        refusal
            .explanation()
            .starts_with(&format!("cannot connect to \"{address}\""))
    );
}

#[test]
fn a_request_that_may_have_arrived_is_not_sent_again() {
    let (listener, address) = listener();
    let (sender, received) = mpsc::channel();
    let serves = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            sender.send(read_request(&stream)).unwrap();
            // It is closed without an answer.
        }
    });
    let runtime = runtime();
    let far = open(&runtime, Client::connect(address)).address::<Act, u32>("Act");
    for how in ["first", "second"] {
        assert_eq!(refused(act(&far, how)).kind(), RefusalKind::Unavailable);
        let request = received.recv().unwrap();
        assert!(request.starts_with("POST /Act HTTP/1.1\r\n"), "{request}");
        assert!(
            request.ends_with(&format!("{{\"how\":\"{how}\"}}")),
            "{request}"
        );
    }
    assert!(received.try_recv().is_err(), "a request was sent twice");
    drop(serves);
}

#[test]
fn an_answer_that_does_not_come_in_time_is_not_waited_for() {
    let (listener, address) = listener();
    let runtime = runtime();
    let builder = Client::connect(address).timeout(Duration::from_millis(20));
    let far = open(&runtime, builder).address::<Act, u32>("Act");
    assert_eq!(refused(act(&far, "late")).kind(), RefusalKind::TimedOut);
    drop(listener);
}

#[test]
fn the_queue_of_a_client_has_an_end() {
    let served = plain();
    let runtime = runtime();
    let builder = Client::connect(served.server.local_addr()).connections(1);
    let far = open(&runtime, builder).address::<Act, u32>("Act");
    let tell = || {
        let (reply, answer) = Reply::<u32>::pair();
        let how = "keep".to_owned();
        far.tell((Act { how }, reply)).unwrap();
        answer
    };
    // One is under way, and 256 wait.
    let first = tell();
    let reply = served.kept();
    let waiting: Vec<_> = (0..256).map(|_| tell()).collect();
    let refusal = refused(runtime.block_on(tell()));
    assert_eq!(refusal.kind(), RefusalKind::Overloaded);
    // Those that are not awaited any more are not sent.
    let last = waiting.into_iter().next_back().unwrap();
    reply.send(1);
    assert_eq!(runtime.block_on(first), Ok(1));
    served.kept().send(2);
    assert_eq!(runtime.block_on(last), Ok(2));
    assert_eq!(served.messages(), 2);
}

#[test]
fn a_request_that_is_given_up_is_given_up_by_the_server_too() {
    let served = plain();
    let runtime = runtime();
    let builder = Client::connect(served.server.local_addr()).connections(1);
    let far = open(&runtime, builder).address::<Act, u32>("Act");
    let (reply, answer) = Reply::<u32>::pair();
    let how = "keep".to_owned();
    far.tell((Act { how }, reply)).unwrap();
    let kept = served.kept();
    drop(answer);
    until("the server gives it up", || !kept.is_wanted());
    assert_eq!(act(&far, "answer"), Ok(42));
}

#[test]
fn a_request_that_takes_too_long_is_given_up_by_the_server_too() {
    let (served, runtime) = (plain(), runtime());
    let builder = Client::connect(served.server.local_addr()).connections(1);
    let builder = builder.timeout(Duration::from_millis(50));
    let far = open(&runtime, builder).address::<Act, u32>("Act");
    // The time may be over before the request was sent.
    until("a request has come", || {
        let refusal = refused(act(&far, "keep"));
        assert_eq!(refusal.kind(), RefusalKind::TimedOut);
        served.messages() > 0
    });
    let kept = served.kept();
    until("the server gives it up", || !kept.is_wanted());
}

#[test]
fn a_name_that_is_too_long_is_refused_and_the_connection_goes_on() {
    let served = plain();
    let runtime = runtime();
    let builder = Client::connect(served.server.local_addr()).connections(1);
    let client = open(&runtime, builder);
    let far = client.address::<Act, u32>(&"x".repeat(70_000));
    for _ in 0..2 {
        let refusal = refused(act(&far, "answer"));
        assert_eq!(refusal.condition(), "malformed request");
    }
    assert_eq!(act(&client.address("Act"), "answer"), Ok(42));
}

#[test]
fn an_answer_that_is_too_large_is_refused_and_the_next_one_comes() {
    let (served, runtime) = (plain(), runtime());
    let builder = Client::connect(served.server.local_addr()).connections(1);
    let client = open(&runtime, builder.largest_answer(100));
    let far = client.address::<Xy, Table>("Xy");
    let ask = |x| runtime.block_on(far.ask(|reply| (Xy { x, y: 1 }, reply)).into_future());
    let Err(AskError::Refused(refusal)) = ask(1000) else {
        panic!("it is larger");
    };
    let text = "answer too large (the answer has more than 100 bytes)";
    assert_eq!(
        (refusal.kind(), &*refusal.to_string()),
        (RefusalKind::Fault, text)
    );
    assert_eq!(ask(2), Ok(vec![vec![0.5; 2]]));
}

#[test]
fn a_connection_that_the_server_closes_after_an_answer_is_replaced() {
    let served = served(|builder, _| {
        builder.limits(greenroom_http::Limits {
            requests_a_connection: 1,
            ..patient()
        })
    });
    let (_runtime, client) = client(&served);
    let far = client.address::<Act, u32>("Act");
    for _ in 0..50 {
        assert_eq!(act(&far, "answer"), Ok(42));
    }
    assert_eq!(served.messages(), 50);
}

#[test]
fn a_close_that_races_with_a_request_never_makes_it_come_twice() {
    let (listener, address) = listener();
    let (sender, received) = mpsc::channel();
    // Each connection is closed after its answer, which does not say so.
    let serves = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            let mut first = [0];
            if stream.read(&mut first).unwrap_or(0) == 0 {
                continue;
            }
            let request = read_request(&stream);
            sender.send(request).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7";
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let runtime = runtime();
    let builder = Client::connect(address).connections(1);
    let far = open(&runtime, builder).address::<Act, u32>("Act");
    let mut answered = 0;
    for number in 0..100 {
        match act(&far, &number.to_string()) {
            Ok(7) => answered += 1,
            other => assert_eq!(refused(other).kind(), RefusalKind::Unavailable),
        }
    }
    let came: Vec<String> = received.try_iter().collect();
    assert_eq!(came.len(), answered);
    let mut bodies: Vec<_> = came.iter().map(|it| it.rsplit("\r\n").next()).collect();
    bodies.dedup();
    assert_eq!(bodies.len(), answered);
    assert!(answered >= 1);
    drop(serves);
}

#[test]
fn answers_that_are_none_are_refusals() {
    let (listener, address) = listener();
    let answers = [
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n7",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        "HTTP/1.1 200",
        "",
    ];
    let serves = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&stream);
            stream.write_all(answer.as_bytes()).unwrap();
        }
        // What follows is answered as it should be.
        answer_one(&listener.accept().unwrap().0);
    });
    let runtime = runtime();
    let builder = Client::connect(address).connections(1);
    let far = open(&runtime, builder).address::<Act, u32>("Act");
    for answer in answers {
        let refusal = refused(act(&far, "a"));
        assert_eq!(
            refusal.kind(),
            RefusalKind::Unavailable,
            "{answer}: {refusal}"
        );
        // What hyper says is not all.
        let is_chunked = answer.contains("chunked");
        let cause = "connection: Invalid chunk size line: missing size digit)";
        assert_eq!(
            refusal.explanation().ends_with(cause),
            is_chunked,
            "{refusal}"
        );
    }
    assert_eq!(act(&far, "a"), Ok(7));
    serves.join().unwrap();
}

#[test]
fn a_client_may_be_a_worker_of_a_spool() {
    let served = plain();
    let (runtime, client) = client(&served);
    runtime.block_on(async {
        let spool = greenroom::spool::Spool::<Xy, Table>::external()
            .spawn()
            .unwrap();
        let far = client.address::<Xy, Table>("Xy");
        spool.join_worker(far);
        assert_eq!(spool.ask(Xy { x: 1, y: 1 }).await, Ok(vec![vec![0.5]]));
    });
}

#[test]
fn impossible_options_are_errors() {
    let runtime = runtime();
    runtime.block_on(async {
        for address in ["", "localhost", "127.0.0.1", "http://a:1", "a@b:1", "a:x"] {
            let error = Client::connect(address).open().unwrap_err();
            let text = format!("cannot connect to {address:?} (it is no host with a port)");
            assert_eq!(error.to_string(), text);
        }
        let error = Client::connect("localhost:1")
            .connections(0)
            .open()
            .unwrap_err();
        assert!(error.to_string().contains("is 0, not from 1 to 1024"));
        let builder = Client::connect("localhost:1").connections(usize::MAX);
        assert!(builder.open().is_err());
        for path in ["", "a/", "/a", "/a?b/", "/a#b/", "/a b/"] {
            let error = Client::connect("localhost:1")
                .path(path)
                .open()
                .unwrap_err();
            let text = format!("{path:?} is no path with slashes at both ends");
            assert!(error.to_string().contains(&text), "{error}");
        }
    });
    assert!(
        Client::connect("localhost:1").open().is_err(),
        "there is no runtime"
    );
}

/// A request whose drop panics.
#[derive(serde::Serialize)]
struct Bomb {
    how: String,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a secret");
    }
}

#[test]
fn a_request_whose_drop_panics_harms_no_other_one() {
    let served = plain();
    let runtime = runtime();
    let builder = Client::connect(served.server.local_addr()).connections(1);
    let client = open(&runtime, builder);
    let bomb = client.address::<Bomb, u32>("Act");
    for _ in 0..3 {
        let how = "answer".to_owned();
        let outcome = bomb.ask(|reply| (Bomb { how }, reply));
        let _ = greenroom::run(outcome.into_future());
        assert_eq!(act(&client.address("Act"), "answer"), Ok(42));
    }
}
