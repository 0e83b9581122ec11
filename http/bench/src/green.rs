//! The servers of greenroom-http.

use std::time::Duration;

use greenroom::spool::Spool;
use greenroom::{Address, Context, Reply, Runtime, spawn};
use greenroom_http::{HttpResponse, Limits, Server, ServerBuilder};
use serde::Deserialize;

use crate::Outcome;
use crate::servers::{ACTORS, HELLO, Table, WORKERS, Xy, hello, until_closed};

#[derive(Deserialize)]
struct Hello {}

type Greeting = (Hello, Reply<&'static str>);

async fn greeter(mut cx: Context<Greeting>) {
    while let Some((Hello {}, reply)) = cx.recv().await {
        reply.send(HELLO);
    }
}

fn spawn_greeter() -> Address<Greeting> {
    let greeter = spawn!(greeter(_));
    let address = greeter.address();
    greeter.detach();
    address
}

async fn worker(mut cx: Context<(Xy, Reply<Table>)>) {
    while let Some((size, reply)) = cx.recv().await {
        reply.send(size.fill());
    }
}

pub fn page() -> Outcome<()> {
    serve(|server| {
        let page = HttpResponse::new(200, format!("\"{HELLO}\""));
        Ok((
            server.index(page.header("content-type", "application/json")),
            (),
        ))
    })
}

pub fn actor() -> Outcome<()> {
    serve(|server| {
        let server = server.on("Hello", &spawn_greeter(), |hello: Hello, reply| {
            (hello, reply)
        });
        Ok((server, ()))
    })
}

pub fn actors() -> Outcome<()> {
    serve(|mut server| {
        for number in 0..ACTORS {
            let (name, address) = (hello(number), spawn_greeter());
            server = server.on(&name, &address, |hello: Hello, reply| (hello, reply));
        }
        Ok((server, ()))
    })
}

pub fn spool() -> Outcome<()> {
    serve(|server| {
        let spool = Spool::builder(|_| spawn!(worker(_)));
        let spool = spool.workers(WORKERS).spawn()?;
        let server = server.on("Xy", &spool.address(), |size: Xy, reply| (size, reply));
        Ok((server, spool))
    })
}

/// Serves what `add` adds to a server, and keeps what `add` returns beside it.
fn serve<T>(add: impl FnOnce(ServerBuilder) -> Outcome<(ServerBuilder, T)>) -> Outcome<()> {
    let runtime = Runtime::builder().workers(WORKERS);
    let runtime = runtime.driver(greenroom_http::driver()).build()?;
    let (server, _kept) = runtime.block_on(async {
        let (server, kept) = add(Server::bind("127.0.0.1:0").limits(limits()))?;
        Outcome::Ok((server.listen().await?, kept))
    })?;
    until_closed(server.local_addr().port())
}

/// Returns limits that end no connection that is measured, and refuse no request of 1000 connections.
fn limits() -> Limits {
    Limits {
        connections: 10_000,
        in_flight: 10_000,
        requests_a_connection: u64::MAX,
        idle_time: Duration::from_secs(600),
        ..Limits::default()
    }
}
