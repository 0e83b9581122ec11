//! The actor of a connection, and its requests as hyper hands them over.
//!
//! When it is stopped, it answers the request that is open and closes the connection.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
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
use hyper::header::EXPECT;
use hyper::server::conn::http1;

use super::answer_body::ServedResponse;
use super::answering::Answering;
use super::body;
use super::callers::Door;
use super::site::{RequestProgress, Site};
use crate::error::with_causes;
use crate::event::CloseReason;
use crate::reactor::Socket;
use crate::values::answer::Answers;
use crate::wire::{CheckedSocket, ConnectionClock, ConnectionState, Framing, HostRule, IdleSince};

/// How long, and for how many reads, what still comes is read after the last answer. So the client sees
/// that before a reset.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 64;

/// The site of a connection, which is counted as open as long as this exists.
pub(super) struct CountedSite(Arc<Site>);

impl CountedSite {
    pub(super) fn new(site: &Arc<Site>) -> Self {
        site.counts.opened();
        CountedSite(site.clone())
    }
}

impl Drop for CountedSite {
    fn drop(&mut self) {
        self.0.counts.closed();
    }
}

/// Serves a connection until it ends, and returns why it has ended.
pub(super) async fn serve(
    mut cx: Context<Infallible>,
    socket: Socket,
    site: CountedSite,
    idle: Arc<IdleSince>,
    peer: IpAddr,
) -> CloseReason {
    let site = &*site.0;
    // Without an address the context would be closed.
    let _open: Address<Infallible> = cx.address();
    let proxies = site.proxies.has(peer).then_some(&site.proxies);
    let door = Door::new(socket.local_addr().ok(), proxies);
    let is_local = door.is_loopback() && proxies.is_none();
    let shared = ConnectionState::new(&site.limits, &site.unsent, idle, is_local);
    let requests = RequestService {
        site,
        shared: &shared,
        door,
        count: Cell::new(0),
    };
    let host = match site.form == Answers::LayerCake && requests.door.is_loopback() {
        true => HostRule::Optional,
        false => HostRule::Required,
    };
    // Without it, an answer may wait for the acknowledgement of the one before.
    let _ = socket.set_nodelay();
    let framing = Framing::new(&site.limits, host);
    let wire = CheckedSocket::new(&socket, framing, &shared);
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    // Clients of layer_cake look for the names of fields as they are.
    builder.title_case_headers(site.form == Answers::LayerCake);
    // A client that has closed its sending side gets its answers.
    builder.half_close(true);
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
                shared.stop_streams();
            }
            loop {
                if let Poll::Ready(ended) = connection.as_mut().poll(task) {
                    return Poll::Ready(Some(ended));
                }
                if shared.is_answering() && socket.poll_reset(task).is_ready() {
                    return Poll::Ready(None);
                }
                if !clock.poll_late(task) {
                    return Poll::Pending;
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
        (None, _) => CloseReason::Failed("the client has reset the connection".to_owned()),
        (Some(Err(error)), _) => CloseReason::Failed(with_causes(&error)),
        (Some(Ok(())), _) if is_stopped => CloseReason::Stopped,
        (Some(Ok(())), _) => CloseReason::Done,
    }
}

/// Reads and drops what still comes.
pub(super) async fn drain(socket: &Socket) {
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
    door: Door<'a>,
    /// The requests so far.
    count: Cell<u64>,
}

impl<'a> hyper::service::Service<Request<Incoming>> for RequestService<'a> {
    type Response = ServedResponse;
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
        let call = self.site.callers.judge(answering.head(), &self.door);
        if let Ok(caller) = &call {
            answering.set_origin(caller.origin.clone());
        }
        // A client that keeps its body until it may send it learns at once that it need not.
        if !body.is_end_stream() && answering.head().headers.contains_key(EXPECT) {
            let refused = match &call {
                Ok(caller) => {
                    let is_large = body.size_hint().lower() > self.site.limits.body as u64;
                    let refused = match self.site.target(answering.head(), caller) {
                        // The size is refused first, also where the body comes at once.
                        Ok(_) if is_large => None,
                        Ok(target) => self.site.media_refusal(&target, answering.head()),
                        Err(refused) => Some(refused),
                    };
                    refused.map(RequestProgress::from)
                }
                Err(refusal) => Some(self.site.refuse_call(answering.head(), *refusal)),
            };
            if let Some(refused) = refused {
                answering.answer_early(refused);
                return answering;
            }
        }
        // Otherwise the body is read in any case, since the next request comes behind it.
        if body.is_end_stream() {
            answering.begin(call, Bytes::new());
        } else {
            let body = Box::pin(body::read(body, &self.site.limits));
            answering.set(RequestProgress::Reads { call, body });
        }
        answering
    }
}
