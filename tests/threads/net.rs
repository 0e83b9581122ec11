//! Sockets on greenroom: an echo server of async-net, and hyper's HTTP/1 on it, with their clients.
//!
//! greenroom has no I/O reactor: async-io's thread waits for the sockets and wakes the tasks, or,
//! with a driver, the workers wait for them.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_net::{TcpListener, TcpStream};
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use greenroom::{Pinned, Reply, Runtime, spawn};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};

use crate::driver::AsyncIo;
use crate::support::{WATCH, drive, within};

const CLIENTS: usize = 8;
const ROUNDS: usize = 20;

/// Returns two runtimes with this many workers: one parks its workers, one lets them wait in the
/// reactor.
fn runtimes(workers: usize) -> [Runtime; 2] {
    let builder = || Runtime::builder().workers(workers);
    [builder(), builder().driver(AsyncIo)].map(|builder| builder.build().unwrap())
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn echo_server(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        greenroom::spawn(async move {
            let mut writer = stream.clone();
            futures::io::copy(stream, &mut writer).await.unwrap();
        })
        .detach();
    }
}

/// Sends and receives repeatedly. Returns how many bytes came back.
async fn echo_client(address: SocketAddr, client: usize) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut heard = 0;
    for round in 0..ROUNDS {
        let said = vec![(client + round) as u8; 1 + 1000 * round];
        stream.write_all(&said).await.unwrap();
        let mut back = vec![0; said.len()];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(said, back);
        heard += back.len();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(
        stream.read(&mut [0]).await.unwrap(),
        0,
        "the server closes its side after the client"
    );
    heard
}

#[test]
fn an_echo_server_answers_its_clients() {
    for runtime in [1, 2].into_iter().flat_map(runtimes) {
        within(WATCH, move || {
            runtime.block_on(async {
                let (listener, address) = listener().await;
                let server = greenroom::spawn(echo_server(listener));
                let clients: Vec<_> = (0..CLIENTS)
                    .map(|client| greenroom::spawn(echo_client(address, client)))
                    .collect();
                for client in clients {
                    assert_eq!(
                        client.await,
                        (0..ROUNDS).map(|round| 1 + 1000 * round).sum()
                    );
                }
                assert!(server.cancel().await.is_none());
                // No socket listens any more.
                assert!(TcpStream::connect(address).await.is_err());
            });
            assert_eq!(drive(runtime.shutdown()).left_behind, 0);
        });
    }
}

#[test]
fn an_echo_server_and_its_clients_may_live_on_a_pinned_thread() {
    for runtime in runtimes(1) {
        within(WATCH, move || {
            let pinned: Pinned = runtime.spawn_pinned("net").unwrap();
            let (listener, address) = drive(listener());
            let server = pinned.spawn(move || echo_server(listener));
            let client = pinned.spawn(move || echo_client(address, 1));
            drive(client);
            drive(echo_client(address, 2));
            drop(server);
        });
    }
}

/// A stream of the `futures` crate as a stream of hyper.
struct Io<S>(S);

impl<S: AsyncRead + Unpin> hyper::rt::Read for Io<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // Through a local buffer, since hyper's buffer is not initialised.
        let mut bytes = [0; 4096];
        let room = bytes.len().min(buffer.remaining());
        let read = ready!(Pin::new(&mut self.0).poll_read(cx, &mut bytes[..room]))?;
        buffer.put_slice(&bytes[..read]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for Io<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}

/// A request's body length; the reply is the sum of all lengths so far.
type Count = (usize, Reply<usize>);

async fn count(mut cx: greenroom::Context<Count>) -> usize {
    let mut sum = 0;
    while let Some((bytes, reply)) = cx.recv().await {
        sum += bytes;
        reply.send(sum);
    }
    sum
}

async fn answer(
    request: Request<Incoming>,
    counter: greenroom::Address<Count>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() != "/count" {
        let mut response = Response::new(Full::new(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let sum = counter.ask(|reply| (body.len(), reply)).await.unwrap();
    Ok(Response::new(Full::new(Bytes::from(sum.to_string()))))
}

async fn http_server(listener: TcpListener, counter: greenroom::Address<Count>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let counter = counter.clone();
        let service = service_fn(move |request| answer(request, counter.clone()));
        greenroom::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            connection
                .serve_connection(Io(stream), service)
                .await
                .unwrap();
        })
        .detach();
    }
}

/// Posts bodies over one connection. Returns the last sum that it received.
async fn http_client(address: SocketAddr) -> usize {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(Io(stream))
        .await
        .unwrap();
    let driver = greenroom::spawn(connection);
    let mut told = 0;
    for round in 0..ROUNDS {
        let body = Full::new(Bytes::from(vec![b'x'; 1000 * round]));
        let request = Request::post("/count").header("host", "localhost");
        let response = sender
            .send_request(request.body(body).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let sum = std::str::from_utf8(&text).unwrap().parse().unwrap();
        assert!(sum >= told, "sums never decrease");
        told = sum;
    }
    let request = Request::get("/else").header("host", "localhost");
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    drop((sender, response));
    driver.await.unwrap();
    told
}

#[test]
fn a_hyper_server_that_asks_an_actor_answers_hyper_clients() {
    const SUM: usize = 1000 * (ROUNDS - 1) * ROUNDS / 2;
    for runtime in [1, 2].into_iter().flat_map(runtimes) {
        within(WATCH, move || {
            runtime.block_on(async {
                let counter = spawn!(count(_));
                let (listener, address) = listener().await;
                let server = greenroom::spawn(http_server(listener, counter.address()));
                let clients: Vec<_> = (0..CLIENTS)
                    .map(|_| greenroom::spawn(http_client(address)))
                    .collect();
                let mut most = 0;
                for client in clients {
                    most = most.max(client.await);
                }
                assert_eq!(
                    most,
                    CLIENTS * SUM,
                    "the last reply has the sum of all bodies"
                );
                assert!(server.cancel().await.is_none());
                counter.stop();
                assert_eq!(counter.join().await.unwrap(), CLIENTS * SUM);
            });
            assert_eq!(drive(runtime.shutdown()).left_behind, 0);
        });
    }
}
