//! Servers whose answer is a table of random numbers that another task fills.

use axum::extract::{Json, Query, State};
use axum::serve::ListenerExt;
use greenroom::spool::Spool;
use greenroom::{Context, Reply, spawn};
use greenroom_http::Server;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use crate::Outcome;
use crate::servers::{WORKERS, limits, runtime, tokio_runtime, until_closed};

/// The size of a table.
#[derive(Deserialize)]
struct Xy {
    x: usize,
    y: usize,
}

type Table = Vec<Vec<f64>>;

impl Xy {
    fn fill(&self) -> Table {
        let row = || (0..self.x).map(|_| fastrand::f64()).collect();
        (0..self.y).map(|_| row()).collect()
    }
}

async fn worker(mut cx: Context<(Xy, Reply<Table>)>) {
    while let Some((size, reply)) = cx.recv().await {
        reply.send(size.fill());
    }
}

pub fn greenroom() -> Outcome<()> {
    let runtime = runtime(true)?;
    let (server, _spool) = runtime.block_on(async {
        let spool = Spool::builder(|_| spawn!(worker(_)));
        let spool = spool.workers(WORKERS).spawn()?;
        let server = Server::bind("127.0.0.1:0").limits(limits());
        let server = server.on("Xy", &spool.address(), |size: Xy, reply| (size, reply));
        Outcome::Ok((server.listen().await?, spool))
    })?;
    until_closed(server.local_addr().port())
}

type Questions = mpsc::Sender<(Xy, oneshot::Sender<Table>)>;

async fn ask(State(task): State<Questions>, Query(size): Query<Xy>) -> Json<Table> {
    let (reply, answer) = oneshot::channel();
    let _ = task.send((size, reply)).await;
    Json(answer.await.unwrap_or_default())
}

pub fn axum() -> Outcome<()> {
    let runtime = tokio_runtime()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let port = listener.local_addr()?.port();
    let (task, mut questions) = mpsc::channel::<(Xy, oneshot::Sender<Table>)>(256);
    runtime.spawn(async move {
        while let Some((size, reply)) = questions.recv().await {
            let _ = reply.send(size.fill());
        }
    });
    let routes = axum::Router::new().route("/Xy", axum::routing::get(ask));
    let routes = routes.with_state(task);
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    runtime.spawn(async move { axum::serve(listener, routes).await });
    until_closed(port)
}
