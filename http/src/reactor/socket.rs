//! A TCP connection, which asks the system for nothing that is not there.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::task::{Context, Poll, ready};

use mio::Interest;
use mio::net::TcpStream;

use super::names::resolve;
use super::registered::Registered;

/// A read that has not filled its room has emptied the socket, and the system tells what comes
/// later. Elsewhere only a read that would block has done so.
const IS_TOLD: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// A connection. One task at a time reads, and one writes.
#[derive(Debug)]
pub(crate) struct Socket(Registered<TcpStream>);

impl Socket {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        Registered::new(stream, interest).map(Socket)
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
        let (stream, write) = (&socket.0.inner, &socket.0.source.write);
        loop {
            poll_fn(|cx| write.poll_ready(cx)).await;
            write.take();
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
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
        let direction = &self.0.source.read;
        loop {
            ready!(direction.poll_ready(cx));
            direction.take();
            let read = (&self.0.inner).read(bytes);
            match &read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // The end can be read again at once.
                Ok(read) if IS_TOLD && 0 < *read && *read < bytes.len() => {
                    direction.give_back_end();
                }
                _ => direction.give_back(),
            }
            return Poll::Ready(read);
        }
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
        let direction = &self.0.source.write;
        loop {
            ready!(direction.poll_ready(cx));
            if let Some(written) = unless_blocked(write(&self.0.inner)) {
                return Poll::Ready(written);
            }
            // Few writes come so far. The second try sees an event since the first one.
            direction.take();
            if let Some(written) = unless_blocked(write(&self.0.inner)) {
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

    /// Tells the other side that nothing more is written.
    pub(crate) fn end_writing(&self) -> io::Result<()> {
        self.0.inner.shutdown(Shutdown::Write)
    }

    /// Sends small answers at once, and not only when the one before was acknowledged.
    pub(crate) fn set_nodelay(&self) -> io::Result<()> {
        self.0.inner.set_nodelay(true)
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.inner.local_addr()
    }
}

fn unless_blocked(tried: io::Result<usize>) -> Option<io::Result<usize>> {
    let is_blocked = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    match tried.as_ref().is_err_and(is_blocked) {
        true => None,
        false => Some(tried),
    }
}
