//! `LinkSocket`: a connection, plain or secured, and the halves that its reader and its writer use.
//!
//! No call blocks. The lock of the halves is held for one poll.

use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, TryLockError};
use std::task::{Context, Poll};

use async_io::Async;
use futures_lite::io::{AsyncRead, AsyncWrite};
use futures_rustls::TlsStream;
use futures_rustls::rustls::CommonState;

use crate::link::lock;

/// A connection, plain or secured.
pub(super) enum LinkSocket {
    Plain(Async<TcpStream>),
    Secured(Box<TlsStream<Async<TcpStream>>>),
}

impl LinkSocket {
    /// Returns what TLS knows of the other side.
    pub(super) fn peer(&self) -> Option<&CommonState> {
        match self {
            LinkSocket::Plain(_) => None,
            LinkSocket::Secured(stream) => Some(stream.get_ref().1),
        }
    }
}

impl AsyncRead for LinkSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            LinkSocket::Plain(stream) => Pin::new(stream).poll_read(cx, bytes),
            LinkSocket::Secured(stream) => Pin::new(stream).poll_read(cx, bytes),
        }
    }
}

impl AsyncWrite for LinkSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            LinkSocket::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            LinkSocket::Secured(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            LinkSocket::Plain(stream) => Pin::new(stream).poll_flush(cx),
            LinkSocket::Secured(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            LinkSocket::Plain(stream) => Pin::new(stream).poll_close(cx),
            LinkSocket::Secured(stream) => Pin::new(stream).poll_close(cx),
        }
    }
}

/// A handle of a socket, for one of its users.
#[derive(Clone)]
pub(super) struct SharedSocket(Arc<Mutex<LinkSocket>>);

impl SharedSocket {
    pub(super) fn new(socket: LinkSocket) -> Self {
        SharedSocket(Arc::new(Mutex::new(socket)))
    }

    /// Calls `poll` unless another user polls.
    pub(super) fn try_with<T>(&self, poll: impl FnOnce(Pin<&mut LinkSocket>) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut socket) => Some(poll(Pin::new(&mut socket))),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => None,
        }
    }
}

impl AsyncRead for SharedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *lock(&self.0)).poll_read(cx, bytes)
    }
}

impl AsyncWrite for SharedSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *lock(&self.0)).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.0)).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.0)).poll_close(cx)
    }
}
