//! The actor of a connection, and its requests as hyper hands them over.
//!
//! When it is stopped, it answers the request that is open and closes the connection.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_lite::Stream;
use futures_lite::future::poll_once;
use greenroom::time::timeout;
use greenroom::{Address, Context};
use hyper::Request;
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;

use super::answering::Answering;
use super::body;
use super::site::{RequestProgress, Site};
use super::status::FullResponse;
use crate::error::with_causes;
use crate::event::CloseReason;
use crate::reactor::Socket;
use crate::wire::{CheckedSocket, ConnectionClock, ConnectionState, Framing};

/// How long, and for how many reads, what still comes is read after the last answer, so that the
/// client sees it before a reset.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 64;

/// Serves a connection until it ends, and returns why it has ended.
pub(super) async fn serve(
    mut cx: Context<Infallible>,
    socket: Socket,
    site: Arc<Site>,
) -> CloseReason {
    // Without an address the context would be closed.
    let _open: Address<Infallible> = cx.address();
    let shared = ConnectionState::new(&site.limits);
    let local = socket.local_addr().ok();
    let requests = RequestService::new(&site, &shared, local);
    // Without it, an answer may wait for the acknowledgement of the one before.
    let _ = socket.set_nodelay();
    let framing = Framing::new(&site.limits);
    let wire = CheckedSocket::new(&socket, framing, &shared);
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    if site.limits.headers > 100 {
        builder.max_headers(site.limits.headers);
    }
    let (mut is_stopped, mut clock) = (false, ConnectionClock::new(&shared));
    let ended = {
        let mut connection = pin!(builder.serve_connection(wire, requests));
        poll_fn(|task| {
            if !is_stopped && let Poll::Ready(None) = Pin::new(&mut cx).poll_next(task) {
                is_stopped = true;
                connection.as_mut().graceful_shutdown();
            }
            loop {
                let polled = connection.as_mut().poll(task);
                if polled.is_ready() || !clock.poll_late(task) {
                    return polled;
                }
            }
        })
        .await
    };
    if let Some(limit) = shared.limit() {
        site.counts.limit(limit);
    }
    if shared.has_ended() {
        let _ = timeout(LINGER, drain(&socket)).await;
    } else if is_stopped {
        // A stop waits for no client, but what has come would reset the connection, too.
        let _ = poll_once(drain(&socket)).await;
    }
    match (ended, shared.last_refused()) {
        (_, Some(status)) => CloseReason::Refused(status),
        (Err(error), _) => CloseReason::Failed(with_causes(&error)),
        (Ok(()), _) if is_stopped => CloseReason::Stopped,
        (Ok(()), _) => CloseReason::Done,
    }
}

/// Reads and drops what still comes.
async fn drain(socket: &Socket) {
    let mut bytes = [0; 1024];
    for _ in 0..LINGER_READS {
        let read = poll_fn(|cx| socket.poll_read(cx, &mut bytes)).await;
        if !matches!(read, Ok(1..)) {
            break;
        }
    }
}

/// The requests of one connection.
struct RequestService<'a> {
    site: &'a Site,
    shared: &'a ConnectionState<'a>,
    local: Option<SocketAddr>,
    /// The requests so far.
    count: Cell<u64>,
    /// The value of `Host` that was allowed last. Most connections have no other one.
    host: RefCell<Option<Box<[u8]>>>,
}

impl<'a> RequestService<'a> {
    /// Creates the requests of a connection to this address of the server.
    fn new(site: &'a Site, shared: &'a ConnectionState<'a>, local: Option<SocketAddr>) -> Self {
        RequestService {
            site,
            shared,
            local,
            count: Cell::new(0),
            host: RefCell::default(),
        }
    }
}

impl<'a> hyper::service::Service<Request<Incoming>> for RequestService<'a> {
    type Response = FullResponse;
    type Error = Infallible;
    type Future = Answering<'a>;

    fn call(&self, request: Request<Incoming>) -> Answering<'a> {
        let number = self.count.get() + 1;
        self.count.set(number);
        let (head, body) = request.into_parts();
        let refused = self.shared.begin(number);
        let mut answering = Answering::new(self.site, self.shared, head, number);
        if let Some(refused) = refused {
            answering.refuse(refused);
            return answering;
        }
        let hosts = &self.site.hosts;
        let refusal = hosts.refusal(answering.head(), self.local, &self.host);
        // The body is read in any case, since the next request comes behind it.
        if body.is_end_stream() {
            answering.begin(refusal, Bytes::new());
        } else {
            let body = Box::pin(body::read(body, &self.site.limits));
            answering.set(RequestProgress::Reads { refusal, body });
        }
        answering
    }
}
