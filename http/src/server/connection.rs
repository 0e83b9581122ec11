//! The actor of a connection.
//!
//! When it is stopped, it answers the request that is open and closes the connection.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_lite::Stream;
use futures_lite::future::poll_once;
use greenroom::time::timeout;
use greenroom::{Address, Context};
use hyper::server::conn::http1;

use super::service::Requests;
use super::site::Site;
use crate::error::with_causes;
use crate::event::CloseReason;
use crate::reactor::Socket;
use crate::wire::{Clock, Framing, Shared, Wire};

/// How long, and for how many reads, what still comes is read after the last answer, so that the
/// client sees it before a reset.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 64;

pub(super) async fn serve(
    mut cx: Context<Infallible>,
    socket: Socket,
    site: Arc<Site>,
) -> CloseReason {
    // Without an address the context would be closed.
    let _open: Address<Infallible> = cx.address();
    let shared = Shared::new(site.limits.times());
    let local = socket.local_addr().ok();
    let requests = Requests::new(&site, &shared, local);
    // Without it, an answer may wait for the acknowledgement of the one before.
    let _ = socket.set_nodelay();
    let framing = Framing::new(site.limits.of_head());
    let wire = Wire::new(&socket, framing, &shared);
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    if site.limits.headers > 100 {
        builder.max_headers(site.limits.headers);
    }
    let (mut is_stopped, mut clock) = (false, Clock::new(&shared));
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
