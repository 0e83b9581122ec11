//! The peers, on tokio. Their answers have the same fields as those of greenroom-http.

use std::convert::Infallible;

use axum::Router;
use axum::extract::{Json, Query, State};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::ListenerExt;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, SERVER, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use crate::Outcome;
use crate::servers::{ACTORS, HELLO, Table, WORKERS, Xy, hello, until_closed};

/// The fields that greenroom-http writes.
const FIELDS: [(HeaderName, HeaderValue); 2] = [
    (SERVER, HeaderValue::from_static("greenroom")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

fn runtime() -> Outcome<Runtime> {
    let mut builder = Builder::new_multi_thread();
    Ok(builder.worker_threads(WORKERS).enable_io().build()?)
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = Bytes::from_static(b"\"hello\"");
    let mut response = Response::new(Full::new(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response.headers_mut().extend(FIELDS);
    Ok(response)
}

pub fn hyper() -> Outcome<()> {
    let runtime = runtime()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let port = listener.local_addr()?.port();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                let service = service_fn(answer);
                let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // A client that is gone is no error.
                let _ = serving.await;
            });
        }
    });
    until_closed(port)
}

/// The way to a task: questions with the way back for their answer.
type Questions<Q, R> = mpsc::Sender<(Q, oneshot::Sender<R>)>;

/// Spawns a task that answers with greetings.
fn spawn_greeter(runtime: &Runtime) -> Questions<(), &'static str> {
    let (address, mut questions) = mpsc::channel::<((), oneshot::Sender<_>)>(256);
    runtime.spawn(async move {
        while let Some(((), reply)) = questions.recv().await {
            let _ = reply.send(HELLO);
        }
    });
    address
}

async fn greet(State(task): State<Questions<(), &'static str>>) -> impl IntoResponse {
    let (reply, answer) = oneshot::channel();
    let _ = task.send(((), reply)).await;
    json(answer.await.unwrap_or_default())
}

fn json<T: Serialize>(answer: T) -> impl IntoResponse {
    (FIELDS, Json(answer))
}

pub fn task() -> Outcome<()> {
    let runtime = runtime()?;
    let greeter = spawn_greeter(&runtime);
    serve(
        &runtime,
        Router::new()
            .route("/Hello", get(greet))
            .with_state(greeter),
    )
}

pub fn tasks() -> Outcome<()> {
    let runtime = runtime()?;
    let mut routes = Router::new();
    for number in 0..ACTORS {
        let route = get(greet).with_state(spawn_greeter(&runtime));
        routes = routes.route(&format!("/{}", hello(number)), route);
    }
    serve(&runtime, routes)
}

/// The way to several tasks, of which the first free one answers.
type Pool = async_channel::Sender<(Xy, oneshot::Sender<Table>)>;

async fn fill(State(pool): State<Pool>, Query(size): Query<Xy>) -> impl IntoResponse {
    let (reply, answer) = oneshot::channel();
    let _ = pool.send((size, reply)).await;
    json(answer.await.unwrap_or_default())
}

pub fn pool() -> Outcome<()> {
    let runtime = runtime()?;
    let (pool, questions) = async_channel::bounded::<(Xy, oneshot::Sender<Table>)>(256);
    for _ in 0..WORKERS {
        let questions = questions.clone();
        runtime.spawn(async move {
            while let Ok((size, reply)) = questions.recv().await {
                let _ = reply.send(size.fill());
            }
        });
    }
    serve(
        &runtime,
        Router::new().route("/Xy", get(fill)).with_state(pool),
    )
}

fn serve(runtime: &Runtime, routes: Router) -> Outcome<()> {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let port = listener.local_addr()?.port();
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    runtime.spawn(async move { axum::serve(listener, routes).await });
    until_closed(port)
}
