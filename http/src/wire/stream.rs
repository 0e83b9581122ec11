//! A socket as hyper has it: what hyper reads was checked, and each wait for the client has an end.
//!
//! A head that is refused is replaced by one that hyper accepts, and nothing is read after it. The
//! service knows the refusal by the number of the request, so its answer goes out in its turn.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use greenroom::time::{Sleep, sleep};
use hyper::rt::ReadBufCursor;

use super::framing::Framing;
use super::head::Refused;
use crate::reactor::Socket;

/// The head that stands for one that was refused.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nHost: refused\r\n\r\n";

/// For how long a connection may make no progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// From the first byte of a head, or from the begin of the connection, to its end.
    pub(crate) head: Duration,
    /// Between two requests.
    pub(crate) idle: Duration,
    /// While the client takes no byte of an answer.
    pub(crate) write: Duration,
}

/// What the two sides of hyper know of a connection. One task polls both.
pub(crate) struct Shared(Mutex<Known>);

struct Known {
    times: Times,
    /// A request is being answered, so that no other one need come.
    is_busy: bool,
    /// The number of the request that was refused, and why.
    refused: Option<(u64, Refused)>,
    /// The server has ended the connection, whatever the client still sends.
    has_ended: bool,
    /// The limit for which the connection was closed without an answer.
    limit: Option<&'static str>,
    /// What the client must send next, unless a request is being answered.
    awaited: Option<Awaited>,
    /// The time in which it must come.
    time: Option<(Awaited, Sleep)>,
    /// It has not come in time.
    is_late: bool,
}

/// What a client must send within some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// The first head, from the begin of the connection on.
    First,
    /// The first byte of another head.
    Head,
    /// The rest of a head.
    Rest,
}

impl Shared {
    /// Creates what is known of a connection that begins now.
    pub(crate) fn new(times: Times) -> Self {
        Shared(Mutex::new(Known {
            times,
            is_busy: false,
            refused: None,
            has_ended: false,
            limit: None,
            awaited: Some(Awaited::First),
            time: Some((Awaited::First, sleep(times.head))),
            is_late: false,
        }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.known().is_busy = is_busy;
    }

    /// Returns why the request of this number was refused. The first one has number 1.
    pub(crate) fn refused(&self, request: u64) -> Option<Refused> {
        let refused = self.known().refused.clone();
        let refused = refused.filter(|(number, _)| *number == request);
        refused.map(|(_, why)| why)
    }

    /// Returns the status of a refusal.
    pub(crate) fn last_refused(&self) -> Option<u16> {
        self.known().refused.as_ref().map(|(_, why)| why.status)
    }

    /// Notes that the server ends the connection before the client does.
    pub(crate) fn end(&self) {
        self.known().has_ended = true;
    }

    /// Returns the limit for which the connection was closed without an answer.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.known().limit
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.known().has_ended
    }

    /// Returns whether the client has just become late, so that hyper must read again. Must be
    /// called after each poll of hyper, which does not read while it knows that nothing has come.
    pub(crate) fn poll_late(&self, cx: &mut Context<'_>) -> bool {
        let known = &mut *self.known();
        let Some(awaited) = known.awaited.filter(|_| !known.is_busy) else {
            known.time = None;
            return false;
        };
        let time = match awaited {
            Awaited::First | Awaited::Rest => known.times.head,
            Awaited::Head => known.times.idle,
        };
        let running = known.time.take().filter(|(of, _)| *of == awaited);
        let (_, running) = known
            .time
            .insert(running.unwrap_or_else(|| (awaited, sleep(time))));
        if known.is_late || Pin::new(running).poll(cx).is_pending() {
            return false;
        }
        known.is_late = true;
        true
    }
}

pub(crate) struct Wire {
    socket: Arc<Socket>,
    framing: Framing,
    write_time: Duration,
    shared: Arc<Shared>,
    /// Bytes that have come, of which the first `passed` may go to hyper.
    buffer: Vec<u8>,
    passed: usize,
    /// The number of heads that have passed.
    heads: u64,
    /// Nothing more is read.
    is_refused: bool,
    has_ended: bool,
    writing: Option<Sleep>,
}

impl Wire {
    /// Takes over a connection that has just begun.
    pub(crate) fn new(socket: Arc<Socket>, framing: Framing, shared: Arc<Shared>) -> Self {
        let write_time = shared.known().times.write;
        Wire {
            socket,
            framing,
            write_time,
            shared,
            buffer: Vec::new(),
            passed: 0,
            heads: 0,
            is_refused: false,
            has_ended: false,
            writing: None,
        }
    }

    /// Moves bytes that may pass to hyper. Returns whether there were some.
    fn give(&mut self, cursor: &mut ReadBufCursor<'_>) -> bool {
        let given = self.passed.min(cursor.remaining());
        cursor.put_slice(&self.buffer[..given]);
        self.buffer.drain(..given);
        self.passed -= given;
        if self.buffer.is_empty() {
            // An idle connection has no buffer.
            self.buffer = Vec::new();
        }
        given > 0
    }

    /// Lets bytes pass that have come.
    fn pass(&mut self) -> io::Result<()> {
        let was_in_head = self.framing.is_in_head();
        match self.framing.pass(&self.buffer) {
            Ok(passed) => {
                self.passed = passed;
                self.heads += u64::from(was_in_head && passed > 0);
                Ok(())
            }
            Err(why) if was_in_head => {
                self.refuse(why);
                Ok(())
            }
            Err(why) => {
                let error = io::Error::new(io::ErrorKind::InvalidData, why.why);
                self.shared.known().refused = Some((self.heads, why));
                (self.is_refused, self.has_ended) = (true, true);
                Err(error)
            }
        }
    }

    fn refuse(&mut self, why: Refused) {
        self.heads += 1;
        self.shared.known().refused = Some((self.heads, why));
        self.is_refused = true;
        self.buffer = STAND_IN.to_vec();
        self.passed = STAND_IN.len();
    }

    /// Notes that nothing has come. Returns whether the connection ends, since the client is late
    /// and has sent no part of a request.
    fn is_over(&mut self) -> bool {
        let awaited = match (self.heads, self.buffer.is_empty()) {
            (0, _) => Awaited::First,
            (_, true) => Awaited::Head,
            (_, false) => Awaited::Rest,
        };
        let awaited = Some(awaited).filter(|_| self.framing.is_in_head());
        let mut known = self.shared.known();
        let is_late = std::mem::take(&mut known.is_late) && known.awaited == awaited;
        known.awaited = awaited;
        if is_late && self.buffer.is_empty() {
            known.limit = Some(match awaited {
                Some(Awaited::Head) => "idle_time",
                _ => "head_time",
            });
        }
        drop(known);
        if is_late && !self.buffer.is_empty() {
            self.refuse(Refused {
                status: 408,
                why: "the head took too long",
                limit: Some("head_time"),
            });
        }
        is_late && self.buffer.is_empty()
    }
}

impl Wire {
    /// Reads some bytes into the buffer. Returns how many.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // hyper mostly asks when nothing has come. Then no room is cleared.
        ready!(self.socket.poll_readable(cx));
        let mut bytes = [0; 4096];
        let read = ready!(self.socket.poll_read(cx, &mut bytes))?;
        self.buffer.extend_from_slice(&bytes[..read]);
        Poll::Ready(Ok(read))
    }
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let own = &mut *self;
        loop {
            if own.give(&mut cursor) {
                return Poll::Ready(Ok(()));
            }
            if own.has_ended {
                return Poll::Ready(Ok(()));
            }
            if own.is_refused {
                // hyper closes the connection after the answer.
                return Poll::Pending;
            }
            if !own.buffer.is_empty() {
                own.pass()?;
                if own.passed > 0 {
                    continue;
                }
            }
            match own.poll_fill(cx)? {
                Poll::Ready(0) => own.has_ended = true,
                Poll::Ready(_) => own.shared.known().is_late = false,
                Poll::Pending if own.is_over() => own.has_ended = true,
                Poll::Pending if own.is_refused => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Wire {
    /// Writes, unless the client has taken no byte for too long.
    fn poll_progress(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&Socket, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(&self.socket, cx) {
            self.writing = None;
            return Poll::Ready(written);
        }
        let time = self.write_time;
        let late = self.writing.get_or_insert_with(|| sleep(time));
        ready!(Pin::new(late).poll(cx));
        self.shared.known().limit = Some("write_time");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_progress(cx, |socket, cx| socket.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_progress(cx, |socket, cx| socket.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.end_writing())
    }
}
