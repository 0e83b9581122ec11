//! The socket of a connection, which asks the system for nothing that is not there.

use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};

use crate::wire::Readable;

/// A socket that waits after a read that has emptied it.
///
/// hyper reads twice for each request when nothing more has come. The reactor tells later bytes
/// and the end, so neither read needs a call of the system.
pub(super) struct Socket {
    inner: Arc<Async<TcpStream>>,
    /// The last read has left nothing.
    is_empty: bool,
}

impl Socket {
    pub(super) fn new(stream: async_net::TcpStream) -> Self {
        Socket {
            inner: stream.into(),
            is_empty: false,
        }
    }
}

impl Readable for Socket {
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_empty {
            ready!(self.inner.poll_readable(cx))?;
            self.is_empty = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_readable(cx))?;
            match self.inner.get_ref().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_empty = true,
                Err(error) => return Poll::Ready(Err(error)),
                Ok(read) => {
                    // The end can be read again at once.
                    self.is_empty = 0 < read && read < bytes.len();
                    return Poll::Ready(Ok(read));
                }
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.inner).poll_write_vectored(cx, parts)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.inner.get_ref().shutdown(Shutdown::Write))
    }
}
