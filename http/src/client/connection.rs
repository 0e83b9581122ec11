//! The actor of a connection: it carries one exchange after another.
//!
//! A request is sent again only if no byte of it was written.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use futures_lite::future::or;
use greenroom::time::{RetryIntervals, sleep, timeout};
use greenroom::trace::CarriedSpan;
use greenroom::{Context, Refusal, RefusalKind, Reply, Task};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::rt::ReadBufCursor;
use hyper::{Method, Request};

use super::exchange::Exchange;
use crate::error::with_causes;
use crate::reactor::Socket;
use crate::values::answer::Answers;
use crate::wire::{TRACEPARENT, parse_context};

/// How often a request that is under way is looked at: its asker may have given it up.
const LOOK: Duration = Duration::from_millis(250);

/// The server, and how it is called.
pub(super) struct Upstream {
    pub(super) address: String,
    pub(super) retry: RetryIntervals,
    pub(super) form: Answers,
    /// What is before the names of types.
    pub(super) path: String,
    /// The bytes of the largest answer.
    pub(super) largest_answer: usize,
    /// The time that a request may take, from its first byte to the last one of the answer, and
    /// that a try to connect may take.
    pub(super) timeout: Duration,
}

/// An open connection. Its task ends with it.
struct OpenConnection {
    sender: SendRequest<Full<Bytes>>,
    socket: Arc<Socket>,
    _task: Task<()>,
}

/// Carries exchanges. The reply of each says that it is over.
pub(super) async fn serve(
    mut cx: Context<(Box<dyn Exchange>, Reply<()>)>,
    upstream: Arc<Upstream>,
) {
    let mut open = None;
    while let Some((exchange, done)) = cx.recv().await {
        if exchange.is_wanted() {
            upstream.carry(&mut open, exchange).await;
        }
        done.send(());
    }
}

/// What a request came to.
enum RequestOutcome {
    Answer(u16, Bytes),
    /// Nothing of it was sent.
    Unsent,
    Refused(Refusal),
}

impl Upstream {
    /// Carries an exchange over the open connection, or a new one, which stays open after an answer.
    async fn carry(&self, open: &mut Option<OpenConnection>, mut exchange: Box<dyn Exchange>) {
        let body = match exchange.body(self.form) {
            Ok(body) => Bytes::from(body),
            Err(why) => return exchange.refuse(why),
        };
        // A connection that was open may have ended meanwhile. A new one is tried once.
        loop {
            let was_open = open.is_some();
            let own = match open.take() {
                Some(open) => Ok(open),
                None => self.connect().await,
            };
            let mut own = match own {
                Ok(own) => own,
                Err(why) => return exchange.refuse(why),
            };
            let request = match self.request(exchange.path(&self.path), body.clone()) {
                Ok(request) => request,
                Err(why) => return exchange.refuse(Refusal::new("malformed request", why)),
            };
            let sent = own.send(request, self.largest_answer);
            let sent = async { Some(timeout(self.timeout, sent).await) };
            let Some(sent) = or(sent, given_up(&mut *exchange)).await else {
                // The connection is reset, so the server sees that it need not answer. One that is only
                // closed would be answered.
                let _ = own.socket.reset_when_dropped();
                return;
            };
            match sent {
                Ok(RequestOutcome::Answer(status, body)) => {
                    *open = Some(own);
                    return exchange.answer(status, &body, self.form);
                }
                Ok(RequestOutcome::Unsent) if was_open => {}
                Ok(RequestOutcome::Unsent) => {
                    let why = format!("{:?} closed the connection", self.address);
                    return exchange.refuse(Refusal::of(RefusalKind::NotConnected, why));
                }
                Ok(RequestOutcome::Refused(why)) => return exchange.refuse(why),
                Err(_) => {
                    let _ = own.socket.reset_when_dropped();
                    let why = format!("no answer of {:?} came in time", self.address);
                    return exchange.refuse(Refusal::of(RefusalKind::TimedOut, why));
                }
            }
        }
    }

    async fn connect(&self) -> Result<OpenConnection, Refusal> {
        let refused = |why: String| {
            let why = format!("cannot connect to {:?} ({why})", self.address);
            Refusal::of(RefusalKind::NotConnected, why)
        };
        let connect = || async {
            let socket = timeout(self.timeout, Socket::connect(&self.address)).await;
            socket.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        };
        let connects = greenroom::retry(&self.retry, connect);
        let socket = connects.await.map_err(|error| refused(error.to_string()))?;
        let _ = socket.set_nodelay();
        let socket = Arc::new(socket);
        let mut builder = http1::Builder::new();
        let shaken = builder
            .title_case_headers(true)
            .handshake(ClientSocket(socket.clone()))
            .await;
        let (sender, connection) = shaken.map_err(|error| refused(error.to_string()))?;
        let task = greenroom::spawn(async move {
            // The sender sees its errors.
            let _ = connection.await;
        });
        Ok(OpenConnection {
            sender,
            socket,
            _task: task,
        })
    }

    /// Returns a request, or why there is none: its path may be too long.
    fn request(&self, path: String, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let accept = match self.form {
            Answers::Plain => "application/json",
            Answers::Envelope | Answers::LayerCake => {
                "application/vnd.layer_cake+json, application/json"
            }
        };
        let request = Request::builder().method(Method::POST).uri(path);
        let request = request.header(HOST, &self.address).header(ACCEPT, accept);
        let mut request = request.header(CONTENT_TYPE, "application/json");
        // This actor handles the exchange in a span that is tied to that of the asker.
        if let Some(context) = CarriedSpan::current_context().and_then(|text| parse_context(&text))
        {
            request = request.header(TRACEPARENT, context);
        }
        let request = request.body(Full::new(body));
        request.map_err(|error| error.to_string())
    }
}

impl OpenConnection {
    async fn send(&mut self, request: Request<Full<Bytes>>, largest: usize) -> RequestOutcome {
        // What has not left may be sent over another connection; of the rest the server may know.
        if self.sender.ready().await.is_err() {
            return RequestOutcome::Unsent;
        }
        let response = match self.sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => match error.take_message() {
                Some(_) => return RequestOutcome::Unsent,
                None => return lost(error.error()),
            },
        };
        let status = response.status().as_u16();
        match Limited::new(response.into_body(), largest).collect().await {
            Ok(body) => RequestOutcome::Answer(status, body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                let why = format!("the answer has more than {largest} bytes");
                RequestOutcome::Refused(Refusal::new("answer too large", why))
            }
            Err(error) => lost(&*error),
        }
    }
}

/// Waits until an answer is not wanted any more.
async fn given_up<T>(exchange: &mut dyn Exchange) -> Option<T> {
    while exchange.is_wanted() {
        sleep(LOOK).await;
    }
    None
}

/// Returns the refusal of a request that may have arrived.
fn lost(why: &dyn std::error::Error) -> RequestOutcome {
    let why = with_causes(why);
    let why = format!("the connection ended before the answer ({why})");
    RequestOutcome::Refused(Refusal::of(RefusalKind::Unavailable, why))
}

/// The socket of a connection, as hyper has it.
struct ClientSocket(Arc<Socket>);

impl hyper::rt::Read for ClientSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; 4096];
        let room = bytes.len().min(cursor.remaining());
        let read = ready!(self.0.poll_read(cx, &mut bytes[..room]))?;
        cursor.put_slice(&bytes[..read]);
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for ClientSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.end_writing())
    }
}
