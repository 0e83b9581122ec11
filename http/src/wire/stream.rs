//! A socket as hyper has it: what hyper reads was checked, and each wait for the client has an end.
//!
//! A head that is refused is replaced by one that hyper accepts, and nothing is read after it. The
//! service knows the refusal by the number of the request, so its answer goes out in its turn.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use greenroom::time::{Sleep, sleep};
use hyper::rt::ReadBufCursor;

use super::framing::Framing;
use super::head::HttpRefusal;
use super::state::{AwaitedPart, ConnectionState};
use crate::limits::{Limits, SLOW_START};
use crate::reactor::Socket;

/// The head that stands for one that was refused, and that of a request whose answer has no body.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nHost: refused\r\n\r\n";
const STAND_IN_HEAD: &[u8] = b"HEAD / HTTP/1.1\r\nHost: refused\r\n\r\n";

/// Bytes that are read at once.
const ROOM: usize = 8 * 1024;

thread_local! {
    /// Where bytes are read to before they are checked. A connection that waits needs no room.
    static READ: RefCell<[u8; ROOM]> = const { RefCell::new([0; ROOM]) };
}

/// A socket whose bytes are checked on their way to hyper.
pub(crate) struct CheckedSocket<'a> {
    socket: &'a Socket,
    framing: Framing<'a>,
    shared: &'a ConnectionState<'a>,
    /// Bytes that have come, of which the first `passed` may go to hyper.
    buffer: Vec<u8>,
    passed: usize,
    /// Nothing more is read.
    is_refused: bool,
    has_ended: bool,
    /// Boxed, since few connections ever wait for a write.
    writing: Option<Box<SlowWrite>>,
}

/// An answer that the client does not take as fast as it comes.
struct SlowWrite {
    since: Instant,
    /// The bytes that the client has taken since then.
    taken: usize,
    /// When the client is too slow, and the limit that it has hit then. It begins anew with each byte.
    late: Option<(Sleep, &'static str)>,
}

impl SlowWrite {
    fn new() -> Self {
        SlowWrite {
            since: Instant::now(),
            taken: 0,
            late: None,
        }
    }

    /// Returns how long the client has for its next byte, and the limit that decides.
    fn patience(&self, limits: &Limits) -> (Duration, &'static str) {
        let seconds = self.taken as f64 / limits.write_rate as f64;
        let at_rate = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let in_all = SLOW_START.saturating_add(at_rate);
        let left = in_all.saturating_sub(self.since.elapsed());
        match left < limits.write_time {
            true => (left, "write_rate"),
            false => (limits.write_time, "write_time"),
        }
    }
}

impl<'a> CheckedSocket<'a> {
    /// Takes over a connection that has just begun.
    pub(crate) fn new(
        socket: &'a Socket,
        framing: Framing<'a>,
        shared: &'a ConnectionState<'a>,
    ) -> Self {
        CheckedSocket {
            socket,
            framing,
            shared,
            buffer: Vec::new(),
            passed: 0,
            is_refused: false,
            has_ended: false,
            writing: None,
        }
    }

    /// Moves bytes that may pass to hyper. Returns whether there were some.
    fn give(&mut self, cursor: &mut ReadBufCursor<'_>) -> bool {
        let given = self.passed.min(cursor.remaining());
        if given == 0 {
            return false;
        }
        cursor.put_slice(&self.buffer[..given]);
        self.buffer.drain(..given);
        self.passed -= given;
        if self.buffer.is_empty() {
            // An idle connection has no buffer.
            self.buffer = Vec::new();
        }
        true
    }

    /// Returns how many of these bytes may pass to hyper. Other ones may pass after a refusal.
    fn pass(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let was_in_head = self.framing.is_in_head();
        match self.framing.pass(bytes) {
            Ok(passed) => Ok(passed),
            // hyper gets another head instead, and the answer goes out in its turn.
            Err(why) if was_in_head => {
                self.refuse(bytes, why);
                Ok(0)
            }
            // A body has no stand-in: hyper ends the connection.
            Err(why) => {
                let error = io::Error::new(io::ErrorKind::InvalidData, why.why);
                self.shared.note_refused(self.framing.heads(), why);
                (self.is_refused, self.has_ended) = (true, true);
                Err(error)
            }
        }
    }

    /// Lets bytes pass that have come.
    fn pass_buffer(&mut self) -> io::Result<()> {
        let buffer = mem::take(&mut self.buffer);
        let passed = self.pass(&buffer)?;
        if !self.is_refused {
            (self.buffer, self.passed) = (buffer, passed);
        }
        Ok(())
    }

    /// Takes over bytes that have come, of which hyper gets at once those that may pass. Returns
    /// whether there were some.
    fn take_in(&mut self, bytes: &[u8], cursor: &mut ReadBufCursor<'_>) -> io::Result<bool> {
        let mut rest = bytes;
        if self.buffer.is_empty() {
            let passed = self.pass(bytes)?;
            if self.is_refused {
                return Ok(false);
            }
            let given = passed.min(cursor.remaining());
            cursor.put_slice(&bytes[..given]);
            self.passed = passed - given;
            rest = &bytes[given..];
        }
        self.buffer.extend_from_slice(rest);
        Ok(rest.len() < bytes.len())
    }

    /// Refuses the head that begins with these bytes.
    fn refuse(&mut self, head: &[u8], why: HttpRefusal) {
        self.shared.note_refused(self.framing.heads() + 1, why);
        self.is_refused = true;
        let stand_in = match head.starts_with(b"HEAD ") {
            true => STAND_IN_HEAD,
            false => STAND_IN,
        };
        self.buffer = stand_in.to_vec();
        self.passed = stand_in.len();
    }

    /// Notes that nothing has come. Returns whether the connection ends, since the client is late
    /// and has sent no part of a request.
    fn is_over(&mut self) -> bool {
        let awaited = match (self.framing.heads(), self.buffer.is_empty()) {
            _ if !self.framing.is_in_head() => AwaitedPart::BODY,
            (0, _) => AwaitedPart::FIRST,
            (_, true) => AwaitedPart::HEAD,
            (_, false) => AwaitedPart::REST,
        };
        let is_late = self.shared.note_awaited(awaited, self.buffer.is_empty());
        // A part of a head has come, so the client gets an answer.
        if is_late && !self.buffer.is_empty() {
            let head = mem::take(&mut self.buffer);
            let why = HttpRefusal {
                status: 408,
                why: "the head took too long",
                limit: Some("head_time"),
            };
            self.refuse(&head, why);
        }
        is_late && self.buffer.is_empty()
    }
}

impl CheckedSocket<'_> {
    /// Reads some bytes, or notes the end. Returns whether hyper has got bytes.
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        cursor: &mut ReadBufCursor<'_>,
    ) -> Poll<io::Result<bool>> {
        READ.with_borrow_mut(|room| {
            let read = ready!(self.socket.poll_read(cx, room))?;
            if read == 0 {
                self.has_ended = true;
                return Poll::Ready(Ok(false));
            }
            self.shared.note_some();
            Poll::Ready(self.take_in(&room[..read], cursor))
        })
    }
}

impl hyper::rt::Read for CheckedSocket<'_> {
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
                own.pass_buffer()?;
                if own.passed > 0 {
                    continue;
                }
            }
            match own.poll_take(cx, &mut cursor)? {
                Poll::Ready(true) => return Poll::Ready(Ok(())),
                Poll::Ready(false) => {}
                Poll::Pending if own.is_over() => own.has_ended = true,
                Poll::Pending if own.is_refused => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl CheckedSocket<'_> {
    /// Writes so many bytes or fewer, unless the client has taken no byte for too long, or too few.
    fn poll_progress(
        &mut self,
        cx: &mut Context<'_>,
        bytes: usize,
        write: impl FnOnce(&Socket, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(self.socket, cx) {
            let taken = *written.as_ref().unwrap_or(&0);
            self.shared.note_sent(taken);
            if let Some(slow) = &mut self.writing {
                self.shared.note_taken();
                // A client that has taken much at first is not to be slow for long.
                if slow.since.elapsed() >= SLOW_START {
                    (slow.since, slow.taken) = (Instant::now(), 0);
                }
                (slow.taken, slow.late) = (slow.taken + taken, None);
                // The client keeps up if the system takes all of it.
                if taken == bytes {
                    self.writing = None;
                }
            }
            return Poll::Ready(written);
        }
        // Nothing is awaited of the client meanwhile, but to take the answer within its time.
        self.shared.note_full();
        let slow = self
            .writing
            .get_or_insert_with(|| Box::new(SlowWrite::new()));
        let (time, limit) = slow.patience(self.shared.limits());
        let (late, limit) = slow.late.get_or_insert_with(|| (sleep(time), limit));
        ready!(Pin::new(late).poll(cx));
        self.shared.note_limit(limit);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl hyper::rt::Write for CheckedSocket<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_progress(cx, bytes.len(), |socket, cx| socket.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        self.poll_progress(cx, bytes, |socket, cx| {
            socket.poll_write_vectored(cx, parts)
        })
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
