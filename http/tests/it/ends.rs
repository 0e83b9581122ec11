//! Ends: what listens where, stops, grace and drops.

use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use greenroom::{Context, Reply, Runtime, spawn};
use greenroom_http::{Limits, ListenError, ListenProblem, Server};

use crate::support::{Message, Served, Xy, patient, plain, served, until};

fn listen(builder: greenroom_http::ServerBuilder) -> Result<Server, ListenError> {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(builder.listen())
}

#[test]
fn a_port_in_use_is_named() {
    let served = plain();
    let address = served.server.local_addr();
    let error = listen(Server::bind(address)).unwrap_err();
    let text = format!("cannot listen at \"{address}\" ([Errno 98] Address already in use)");
    assert_eq!(error.to_string(), text);
}

#[test]
fn only_an_exposed_server_listens_where_other_machines_reach_it() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let error = listen(Server::bind(address)).unwrap_err();
        assert_eq!(error.problem(), &ListenProblem::NotLoopback);
        assert_eq!(error.address(), address);
    }
    for address in ["127.0.0.1:0", "localhost:0"] {
        drop(listen(Server::bind(address)).unwrap());
    }
    drop(listen(Server::bind("0.0.0.0:0").expose()).unwrap());
}

#[test]
fn options_without_a_type_and_impossible_names_are_errors() {
    let served = plain();
    let address = served.actor.address();
    let bind = || Server::bind("127.0.0.1:0");
    for (builder, why) in [
        (bind().post_only(), "`post_only` comes before any `on`"),
        (bind().name("a"), "`name` comes before any `on`"),
        (
            bind().on("", &address, Message::Xy),
            "\"\" is no name of a type",
        ),
        (
            bind().on("a/b", &address, Message::Xy),
            "\"a/b\" is no name of a type",
        ),
        (
            bind()
                .on("a", &address, Message::Xy)
                .on("a", &address, Message::Act),
            "the type \"a\" is registered twice",
        ),
    ] {
        let error = listen(builder).unwrap_err();
        assert_eq!(error.problem(), &ListenProblem::Option(why.to_owned()));
    }
    assert!(listen(Server::bind("nonsense")).is_err());
    let outside = futures_lite::future::block_on(bind().listen());
    assert!(outside.is_err(), "there is no runtime");
}

#[test]
fn a_stop_answers_what_is_open_and_closes() {
    let served = plain();
    let (mut idle, mut open) = (served.client(), served.client());
    assert_eq!(idle.get("/Xy").status, 200);
    open.send("GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let reply = served.kept();
    let address = served.server.local_addr();
    let server = served.server;
    let stopped = served.runtime.spawn(async move { server.stop().await });
    assert!(idle.is_closed());
    until("nothing listens", || TcpStream::connect(address).is_err());
    reply.send(5);
    let response = open.response();
    assert_eq!(
        (&*response.body, response.header("connection")),
        ("5", Some("close"))
    );
    assert!(open.is_closed());
    let report = served.runtime.block_on(stopped);
    assert_eq!((report.finished, report.cut), (2, 0));
}

#[test]
fn a_stop_does_not_wait_for_the_rest_of_a_request() {
    // Those who wait would wait for the whole of the grace.
    let served = plain();
    let (mut fresh, mut first, mut second) = (served.client(), served.client(), served.client());
    first.send("GET /Xy HTTP/1.1\r\nHo");
    assert_eq!(second.get("/Xy").status, 200);
    second.send("GET /Xy HTTP/1.1\r\nHo");
    let connections = || served.runtime.stats().actors.len() - 2;
    until("all are accepted", || connections() == 3);
    let server = served.server;
    let stopped = served.runtime.spawn(async move { server.stop().await });
    for client in [&mut fresh, &mut first, &mut second] {
        assert!(client.is_closed());
    }
    assert_eq!(served.runtime.block_on(stopped).finished, 3);
}

#[test]
fn connections_are_cut_when_the_grace_is_over() {
    let served = served(|builder, _| builder.grace(Duration::from_millis(10)));
    let mut open = served.client();
    open.send("GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let _reply = served.kept();
    let server = served.server;
    let report = served.runtime.block_on(served.runtime.spawn(async move {
        let report = server.stop().await;
        assert_eq!(server.stop().await, Default::default());
        report
    }));
    assert_eq!((report.finished, report.cut), (0, 1));
    assert!(open.is_closed());
}

#[test]
fn a_client_that_reads_too_slowly_at_a_stop_has_not_all_its_answers() {
    let served = served(|builder, _| {
        builder.limits(Limits {
            write_time: Duration::from_secs(1),
            ..patient()
        })
    });
    let mut slow = served.client();
    // Far more than the buffers of both sockets.
    slow.send("GET /Xy?x=1000&y=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    slow.wait_for_answer();
    let server = served.server;
    let stop = served.runtime.spawn(async move { server.stop().await });
    let report = served.runtime.block_on(stop);
    // It may have been cut before the stop, and is in no report then.
    assert_eq!(report.finished, 0);
}

#[test]
fn a_server_that_is_dropped_stops() {
    let served = plain();
    let address = served.server.local_addr();
    let mut client = served.client();
    assert_eq!(client.get("/Xy").status, 200);
    drop(served.server);
    assert!(client.is_closed());
    until("nothing listens", || TcpStream::connect(address).is_err());
}

#[test]
fn a_server_that_listens_no_more_serves_its_connections() {
    let served = plain();
    let address = served.server.local_addr();
    let mut client = served.client();
    assert_eq!(client.get("/Xy").status, 200);
    served.server.stop_listening();
    until("nothing listens", || TcpStream::connect(address).is_err());
    assert_eq!(client.get("/Xy").status, 200);
}

#[test]
fn a_shutdown_of_the_runtime_ends_the_server() {
    let served = plain();
    let mut client = served.client();
    assert_eq!(client.get("/Xy").status, 200);
    let report = greenroom::run(served.runtime.shutdown());
    assert_eq!(report.left_behind, 0);
    assert!(client.is_closed());
}

const GET: &str = "GET /Xy HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Waits until no connection is left, of a server with one actor beside its own.
fn until_all_have_ended(served: &Served) {
    let actors = || served.runtime.stats().actors.len();
    until("the connections have ended", || actors() <= 2);
}

#[test]
fn the_last_answer_of_a_connection_comes_although_more_was_sent() {
    let served = served(|builder, _| {
        builder.limits(Limits {
            requests_a_connection: 1,
            ..patient()
        })
    });
    let mut client = served.client();
    // The answer fits into the buffers, and the other requests are not read with the first one.
    let large = GET.replace("/Xy", "/Xy?x=1000&y=100");
    client.send(large + &GET.repeat(1000));
    until("it has begun", || served.messages() == 1);
    until_all_have_ended(&served);
    assert_eq!(client.response().body.len(), 100 * (4 * 1000 + 2) + 1);
    assert!(client.is_closed());
}

async fn keeps_all(mut cx: Context<Reply<String>>, keeps: Sender<Reply<String>>) {
    while let Some(reply) = cx.recv().await {
        keeps.send(reply).unwrap();
    }
}

#[test]
fn the_answer_at_a_stop_comes_although_more_was_sent() {
    let (keeps, kept) = channel();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let late = spawn!(keeps_all(_, keeps), on = &runtime).address();
    let served = served(|builder, _| builder.on("Late", &late, |_: Xy, reply| reply));
    let (mut idle, mut client) = (served.client(), served.client());
    assert_eq!(idle.get("/Xy").status, 200);
    client.send(GET.replace("Xy", "Late") + &GET.repeat(1000));
    let reply: Reply<String> = kept.recv().unwrap();
    let server = served.server;
    let stopped = served.runtime.spawn(async move { server.stop().await });
    assert!(idle.is_closed(), "it is the last one that is stopped");
    reply.send("x".repeat(400_000));
    assert_eq!(served.runtime.block_on(stopped).finished, 2);
    assert_eq!(client.response().body.len(), 400_002);
    // The stop may have found a turn of the connection in which it has answered more.
    while client.response_to(false).is_some() {}
}
