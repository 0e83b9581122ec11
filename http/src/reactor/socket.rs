//! Sockets that are connections.
//!
//! A socket asks the system for nothing that is not there.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use greenroom::unblock;
use mio::event;
use mio::net::TcpStream;
use mio::{Interest, Token};
use socket2::SockRef;

use super::acceptor::HERE;
use super::core::Reactor;
use super::sources::Readiness;

/// A read that has not filled its room has emptied the socket, and the system reports what comes
/// later. Elsewhere only a read that would block has done so.
const REPORTS_MORE: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// A socket that is registered for as long as it lives.
#[derive(Debug)]
pub(super) struct RegisteredSocket<S: event::Source> {
    pub(super) inner: S,
    pub(super) readiness: Arc<Readiness>,
    number: usize,
    reactor: &'static Reactor,
}

impl<S: event::Source> RegisteredSocket<S> {
    pub(super) fn new(mut inner: S, interest: Interest) -> io::Result<Self> {
        let reactor = Reactor::get()?;
        let readiness = Arc::new(Readiness::default());
        // In the table first: a change is reported once, perhaps before `register` returns.
        let number = reactor.sockets().add(readiness.clone());
        if let Err(error) = reactor
            .registry
            .register(&mut inner, Token(number), interest)
        {
            let removed = reactor.sockets().remove(number);
            drop(removed);
            return Err(error);
        }
        Ok(RegisteredSocket {
            inner,
            readiness,
            number,
            reactor,
        })
    }
}

impl<S: event::Source> Drop for RegisteredSocket<S> {
    fn drop(&mut self) {
        // It is closed next, so nothing depends on this.
        let _ = self.reactor.registry.deregister(&mut self.inner);
        let removed = self.reactor.sockets().remove(self.number);
        drop(removed);
    }
}

/// A connection. One task at a time reads, and one writes.
#[derive(Debug)]
pub(crate) struct Socket {
    /// One of Unix is used as one of TCP: the calls for bytes and ends are the same.
    inner: RegisteredSocket<TcpStream>,
    is_unix: bool,
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let inner = RegisteredSocket::new(stream, interest)?;
        let is_unix = false;
        Ok(Socket { inner, is_unix })
    }

    #[cfg(unix)]
    pub(super) fn of_unix(stream: mio::net::UnixStream) -> io::Result<Self> {
        let stream = TcpStream::from(std::os::fd::OwnedFd::from(stream));
        let is_unix = true;
        Socket::new(stream).map(|own| Socket { is_unix, ..own })
    }

    /// Connects to the first address of a name with a port that answers.
    ///
    /// # Cancel safety
    /// If the future is dropped, there is no connection.
    pub(crate) async fn connect(name: &str) -> io::Result<Self> {
        let mut failed = None;
        for address in resolve(name).await? {
            match Socket::connect_to(address).await {
                Ok(socket) => return Ok(socket),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    async fn connect_to(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(TcpStream::connect(address)?)?;
        let (stream, write) = (&socket.inner.inner, &socket.inner.readiness.write);
        loop {
            poll_fn(|cx| write.poll_ready(cx)).await;
            write.take();
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
            // A connection that is still being made is ready for nothing.
            match stream.peer_addr() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                Err(error) => return Err(error),
            }
        }
        write.give_back();
        Ok(socket)
    }

    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let direction = &self.inner.readiness.read;
        loop {
            ready!(direction.poll_ready(cx));
            direction.take();
            let read = (&self.inner.inner).read(bytes);
            match &read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // The end can be read again at once.
                Ok(read) if REPORTS_MORE && 0 < *read && *read < bytes.len() => {
                    direction.give_back_end();
                }
                _ => direction.give_back(),
            }
            return Poll::Ready(read);
        }
    }

    /// Waits until the other side has reset the connection, in place of a read. A close alone is the end of
    /// what it sends, and no reset.
    pub(crate) fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.readiness.read.poll_reset(cx)
    }

    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_try_write(cx, |mut stream| stream.write(bytes))
    }

    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_try_write(cx, |mut stream| stream.write_vectored(parts))
    }

    fn poll_try_write(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let direction = &self.inner.readiness.write;
        loop {
            ready!(direction.poll_ready(cx));
            if let Some(written) = unless_blocked(write(&self.inner.inner)) {
                return Poll::Ready(written);
            }
            // Few writes come so far. The second try sees an event since the first one.
            direction.take();
            if let Some(written) = unless_blocked(write(&self.inner.inner)) {
                direction.give_back();
                return Poll::Ready(written);
            }
        }
    }

    /// Writes all bytes.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match poll_fn(|cx| self.poll_write(cx, bytes)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Ends the writing: the other side reads the end after what was written.
    pub(crate) fn end_writing(&self) -> io::Result<()> {
        self.inner.inner.shutdown(Shutdown::Write)
    }

    /// Sends small answers at once, and not only when the one before was acknowledged.
    pub(crate) fn set_nodelay(&self) -> io::Result<()> {
        self.inner.inner.set_nodelay(true)
    }

    /// Makes the drop of the socket a reset, so that the other side sees the end at once.
    pub(crate) fn reset_when_dropped(&self) -> io::Result<()> {
        SockRef::from(&self.inner.inner).set_linger(Some(Duration::ZERO))
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self.is_unix {
            true => Ok(HERE),
            false => self.inner.inner.local_addr(),
        }
    }
}

fn unless_blocked(tried: io::Result<usize>) -> Option<io::Result<usize>> {
    let is_blocked = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    match tried.as_ref().is_err_and(is_blocked) {
        true => None,
        false => Some(tried),
    }
}

/// Returns the addresses of a name with a port, of which there is at least one. It may take long.
pub(crate) async fn resolve(name: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let name = name.to_owned();
    let found = unblock(move || name.to_socket_addrs().map(Vec::from_iter)).await?;
    match found.is_empty() {
        true => Err(io::Error::other("the name has no address")),
        false => Ok(found),
    }
}
