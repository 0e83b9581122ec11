//! The servers. Each prints its port and serves until its standard input closes.

use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::time::Duration;

use greenroom::{Context, Reply, Runtime, spawn};
use greenroom_http::{Limits, Server};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;

use crate::{Outcome, memory, texture};

/// The threads of each server that work.
pub const WORKERS: usize = 2;

/// Which server is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Greenroom,
    /// The same without the driver, so that the thread of the watch waits for the sockets.
    Undriven,
    Tokio,
    TextureGreenroom,
    TextureAxum,
}

impl Kind {
    pub const ALL: [Kind; 5] = [
        Kind::Greenroom,
        Kind::Undriven,
        Kind::Tokio,
        Kind::TextureGreenroom,
        Kind::TextureAxum,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Greenroom => "greenroom",
            Kind::Undriven => "undriven",
            Kind::Tokio => "tokio",
            Kind::TextureGreenroom => "texture-greenroom",
            Kind::TextureAxum => "texture-axum",
        }
    }

    pub fn of(name: &str) -> Outcome<Kind> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("there is no server {name:?}").into())
    }

    /// Returns the path that the server answers.
    pub fn path(self) -> &'static str {
        match self {
            Kind::TextureGreenroom | Kind::TextureAxum => "/Xy?x=8&y=8",
            _ => "/Hello",
        }
    }

    /// Returns the server beside which this one is measured.
    pub fn peer(self) -> Kind {
        match self {
            Kind::TextureGreenroom | Kind::TextureAxum => Kind::TextureAxum,
            _ => Kind::Tokio,
        }
    }
}

pub fn serve(kind: Kind) -> Outcome<()> {
    match kind {
        Kind::Greenroom => greenroom(true),
        Kind::Undriven => greenroom(false),
        Kind::Tokio => tokio(),
        Kind::TextureGreenroom => texture::greenroom(),
        Kind::TextureAxum => texture::axum(),
    }
}

/// Prints the port, and the live memory for each line that comes, until no more can come.
pub fn until_closed(port: u16) -> Outcome<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{port}")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        writeln!(out, "{}", memory::live())?;
        out.flush()?;
    }
    Ok(())
}

/// Returns limits that no measurement reaches.
pub fn limits() -> Limits {
    Limits {
        connections: 10_000,
        requests_a_connection: u64::MAX,
        idle_time: Duration::from_secs(600),
        ..Limits::default()
    }
}

#[derive(Deserialize)]
struct Hello {}

async fn greeter(mut cx: Context<(Hello, Reply<&'static str>)>) {
    while let Some((Hello {}, reply)) = cx.recv().await {
        reply.send("hello");
    }
}

/// Returns a runtime of greenroom.
pub fn runtime(is_driven: bool) -> Outcome<Runtime> {
    let builder = Runtime::builder().workers(WORKERS);
    Ok(match is_driven {
        true => builder.driver(greenroom_http::driver()).build()?,
        false => builder.build()?,
    })
}

fn greenroom(is_driven: bool) -> Outcome<()> {
    let runtime = runtime(is_driven)?;
    let server = runtime.block_on(async {
        let greeter = spawn!(greeter(_));
        let address = greeter.address();
        greeter.detach();
        let server = Server::bind("127.0.0.1:0").limits(limits());
        let server = server.on("Hello", &address, |hello: Hello, reply| (hello, reply));
        server.listen().await
    })?;
    until_closed(server.local_addr().port())
}

/// Returns a runtime of tokio.
pub fn tokio_runtime() -> Outcome<::tokio::runtime::Runtime> {
    let mut builder = ::tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(WORKERS).enable_io().build()?)
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = Bytes::from_static(b"\"hello\"");
    let mut response = Response::new(Full::new(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}

fn tokio() -> Outcome<()> {
    let runtime = tokio_runtime()?;
    let listener = runtime.block_on(::tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let port = listener.local_addr()?.port();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            ::tokio::spawn(async move {
                let service = hyper::service::service_fn(hello);
                let builder = hyper::server::conn::http1::Builder::new();
                // A client that is gone is no error.
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    until_closed(port)
}
