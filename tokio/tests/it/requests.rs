//! reqwest in actors, against a local server of axum.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use greenroom::{Context, Detached, Fault, Reply, spawn};
use reqwest::Client;
use tokio::net::TcpListener;

use crate::support::{Both, with_both};

/// Starts a server that doubles numbers.
fn server(both: &Both) -> SocketAddr {
    let double = get(|Path(number): Path<u64>| async move { (number * 2).to_string() });
    let router = Router::new().route("/double/{number}", double);
    let listener = both
        .tokio
        .block_on(TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let address = listener.local_addr().unwrap();
    both.tokio
        .spawn(async move { axum::serve(listener, router).await });
    address
}

struct Double(u64, Reply<Result<u64, String>>);

async fn double(client: &Client, server: SocketAddr, number: u64) -> reqwest::Result<String> {
    let url = format!("http://{server}/double/{number}");
    let answer = client.get(url).send().await?.error_for_status()?;
    answer.text().await
}

/// Asks the server for each message.
async fn client(mut cx: Context<Double>, server: SocketAddr) {
    let client = Client::builder().no_proxy().build().unwrap();
    while let Some(Double(number, reply)) = cx.recv().await {
        let doubled = double(&client, server, number).await;
        let doubled = doubled.map_err(|error| error.to_string());
        reply.send(doubled.map(|text| text.parse().unwrap()));
    }
}

#[test]
fn reqwest_works_in_actors_in_every_place() {
    with_both(|both| {
        let server = server(both);
        let pinned = both.runtime.spawn_pinned("client").unwrap();
        let clients = [
            spawn!(client(_, server), on = &both.runtime),
            spawn!(client(_, server), on = &pinned),
            both.runtime
                .block_on(async { spawn!(client(_, server), on = Detached) }),
            spawn!(client(_, server), on = both.tokio.handle()),
        ];
        both.runtime.block_on(async {
            for client in clients {
                for number in 0..5 {
                    let doubled = client.ask(|reply| Double(number, reply)).await;
                    assert_eq!(doubled, Ok(Ok(number * 2)));
                }
            }
        });
    });
}

#[test]
fn an_error_of_the_server_is_an_error_in_the_actor() {
    with_both(|both| {
        // Nothing listens on a port that was free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let nowhere = listener.local_addr().unwrap();
        drop(listener);
        let client = spawn!(client(_, nowhere), on = &both.runtime);
        let refused = both.runtime.block_on(client.ask(|reply| Double(1, reply)));
        assert!(refused.unwrap().is_err());
    });
}

#[test]
fn without_around_threads_reqwest_is_the_fault_of_its_actor() {
    with_both(|both| {
        let server = server(both);
        let outside = greenroom::Runtime::builder().workers(1).build().unwrap();
        let client = spawn!(client(_, server), on = &outside);
        let asked = outside.block_on(client.ask(|reply| Double(1, reply)));
        assert!(asked.is_err());
        let Err(Fault::Panicked(panic)) = outside.block_on(client.join()) else {
            panic!("it did not panic")
        };
        let text = panic.text().unwrap();
        assert!(text.contains("no reactor running"), "{text}");
    });
}
