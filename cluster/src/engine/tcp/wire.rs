//! The wire of a link over a socket: a buffer that is written, and frames that are read.
//!
//! Senders add to the buffer; the writer takes all of it at once, so frames are batched while the
//! socket is busy. A frame that is alone is written by its sender, if nothing waits and the socket is
//! free: it never blocks, and the lock of the buffer keeps the order. Reader and writer are tasks of
//! the thread of the engine.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use event_listener::Event;
use futures_lite::future::{or, yield_now};
use futures_lite::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::socket::{LinkSocket, SharedSocket};
use crate::engine::LinkEngine;
use crate::link::frame::{LENGTH, first};
use crate::link::{Link, LinkWire, lock};

/// The bytes that may wait to be written, with answers, and the largest frames that may, if they are
/// more. Both are the same with the default frame of 1 MiB. Then the link is cut; senders wait long
/// before.
const MOST_BACKLOG: usize = 64 << 20;
const MOST_FRAMES: usize = 64;

/// The room of a read.
const ROOM: usize = 64 << 10;

/// The wire of a link, which its senders and the tasks of the connection share.
struct TcpWire {
    backlog: Mutex<Backlog>,
    most_backlog: usize,
    /// Notified when the wire is cut.
    cut: Event,
}

/// What waits to be written.
#[derive(Default)]
struct Backlog {
    bytes: Vec<u8>,
    /// The bytes that the writer has taken and not written.
    taken: usize,
    writer: Option<Waker>,
    /// Whether the socket has taken bytes that are not out.
    is_unflushed: bool,
    /// The socket, until the wire is cut.
    socket: Option<SharedSocket>,
    is_cut: bool,
}

/// The side of the wire that has the socket.
pub(super) struct Connection {
    socket: SharedSocket,
    wire: Arc<TcpWire>,
    largest_frame: usize,
}

pub(super) fn new(socket: LinkSocket, largest_frame: usize) -> (Arc<dyn LinkWire>, Connection) {
    let socket = SharedSocket::new(socket);
    // There is no waker yet, so no sender writes a frame itself before the writer was polled.
    let backlog = Backlog {
        socket: Some(socket.clone()),
        ..Backlog::default()
    };
    let wire = Arc::new(TcpWire {
        backlog: Mutex::new(backlog),
        most_backlog: MOST_BACKLOG.max(MOST_FRAMES.saturating_mul(largest_frame)),
        cut: Event::new(),
    });
    let connection = Connection {
        socket,
        wire: wire.clone(),
        largest_frame,
    };
    (wire, connection)
}

impl LinkWire for TcpWire {
    fn push(&self, frame: &[u8], is_alone: bool) {
        let mut out = lock(&self.backlog);
        if out.is_cut {
            return;
        }
        if out.bytes.len() > self.most_backlog {
            // The peer takes nothing, and asks for more.
            drop(out);
            return self.cut();
        }
        // The writer waits for bytes: it has none of its own, and this frame is the next one.
        let is_idle = out.bytes.is_empty() && out.writer.is_some();
        let written = match is_alone && is_idle {
            true => out.write_now(frame),
            false => Ok(0),
        };
        let Ok(written) = written else {
            drop(out);
            return self.cut();
        };
        if written == frame.len() && !out.is_unflushed {
            return;
        }
        out.bytes.extend_from_slice(&frame[written..]);
        let writer = out.writer.take();
        drop(out);
        writer.into_iter().for_each(Waker::wake);
    }

    fn backlog(&self) -> usize {
        let out = lock(&self.backlog);
        out.bytes.len() + out.taken
    }

    fn cut(&self) {
        let mut out = lock(&self.backlog);
        out.is_cut = true;
        let bytes = std::mem::take(&mut out.bytes);
        if !bytes.is_empty() && out.taken == 0 {
            // Perhaps the goodbye of a node. If the link is dead, that does not matter any more.
            let _ = out.write_now(&bytes);
        }
        let dropped = (bytes, out.socket.take());
        drop(out);
        drop(dropped);
        self.cut.notify(usize::MAX);
    }
}

impl Backlog {
    /// Writes as much as the socket takes now. The writer is to have no bytes of its own.
    fn write_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(socket) = &self.socket else {
            return Ok(0);
        };
        // The writer waits for bytes, and not for the socket: it needs no waker there.
        let mut context = Context::from_waker(Waker::noop());
        let polled: Option<io::Result<_>> = socket.try_with(|mut socket| {
            let mut written = 0;
            while written < bytes.len() {
                match (socket.as_mut()).poll_write(&mut context, &bytes[written..])? {
                    Poll::Ready(more) if more > 0 => written += more,
                    _ => break,
                }
            }
            let flushed = socket.poll_flush(&mut context)?;
            Ok((written, flushed.is_pending()))
        });
        let (written, is_unflushed) = polled.unwrap_or(Ok((0, false)))?;
        self.is_unflushed |= is_unflushed;
        Ok(written)
    }
}

impl TcpWire {
    async fn until_cut(&self) {
        loop {
            let listener = self.cut.listen();
            if lock(&self.backlog).is_cut {
                return;
            }
            listener.await;
        }
    }
}

impl Connection {
    /// Writes what is pushed and reads frames, until the link is cut or the socket ends. Returns
    /// whether a frame was malformed.
    pub(super) async fn serve(self, link: &Arc<Link>, engine: &dyn LinkEngine) -> bool {
        let (from, to) = (self.socket.clone(), self.socket);
        // A task of its own, so that a wake-up of the one does not poll the other.
        let (wire, for_writer) = (self.wire.clone(), link.clone());
        engine.spawn(Box::pin(async move {
            let written = write(to, &wire.backlog, &for_writer);
            or(async { drop(written.await) }, wire.until_cut()).await;
            wire.cut();
        }));
        let read = read(from, self.largest_frame, link);
        let is_cut = async {
            self.wire.until_cut().await;
            false
        };
        let malformed = or(read, is_cut).await;
        self.wire.cut();
        malformed
    }
}

async fn write(
    mut to: impl AsyncWrite + Unpin,
    out: &Mutex<Backlog>,
    link: &Link,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        poll_fn(|cx| {
            let mut out = lock(out);
            out.taken = 0;
            if out.bytes.is_empty() && !std::mem::take(&mut out.is_unflushed) {
                out.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            std::mem::swap(&mut out.bytes, &mut bytes);
            out.taken = bytes.len();
            Poll::Ready(())
        })
        .await;
        to.write_all(&bytes).await?;
        to.flush().await?;
        bytes.clear();
        // The memory of a burst is given back.
        bytes.shrink_to(ROOM);
        lock(out).taken = 0;
        link.drained();
    }
}

/// Reads frames until the end. Returns whether one was malformed. A peer that sends all the time
/// leaves the thread to the other tasks after each room of bytes.
async fn read(mut from: impl AsyncRead + Unpin, largest: usize, link: &Arc<Link>) -> bool {
    let mut buffer = vec![0; ROOM];
    let (mut filled, mut in_turn) = (0, 0);
    loop {
        if in_turn >= ROOM {
            in_turn = 0;
            yield_now().await;
        }
        match from.read(&mut buffer[filled..]).await {
            Ok(0) | Err(_) => return false,
            Ok(bytes) => {
                filled += bytes;
                in_turn += bytes;
            }
        }
        // A large frame may take longer than the lease.
        link.note_received();
        let mut used = 0;
        loop {
            match first(&buffer[used..filled], largest) {
                Ok(Some(frame)) => {
                    let is_first = used == 0;
                    used += LENGTH + frame.len();
                    link.set_alone(is_first && used == filled);
                    if link.frame(frame).is_err() {
                        return true;
                    }
                }
                Ok(None) => break,
                Err(_) => return true,
            }
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
        match filled == buffer.len() {
            // The frame is larger, and its length was checked: twice the room, up to that.
            true => buffer.resize((2 * filled).min(largest + LENGTH).max(filled + 1), 0),
            false if filled < ROOM && buffer.len() > ROOM => {
                buffer.truncate(ROOM);
                buffer.shrink_to_fit();
            }
            false => {}
        }
    }
}
