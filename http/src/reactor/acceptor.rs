//! A socket that accepts connections.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};

use mio::Interest;

use super::registered::Registered;
use super::socket::Socket;

#[derive(Debug)]
pub(crate) struct Acceptor(Registered<mio::net::TcpListener>);

impl Acceptor {
    /// Listens at the first of these addresses that is free.
    pub(crate) fn bind(addresses: &[SocketAddr]) -> io::Result<Self> {
        let listener = TcpListener::bind(addresses)?;
        listener.set_nonblocking(true)?;
        let listener = mio::net::TcpListener::from_std(listener);
        Registered::new(listener, Interest::READABLE).map(Acceptor)
    }

    /// Waits for a connection.
    ///
    /// # Cancel safety
    /// If the future is dropped, no connection is lost.
    pub(crate) async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let direction = &self.0.source.read;
        loop {
            poll_fn(|cx| direction.poll_ready(cx)).await;
            direction.take();
            let accepted = self.0.inner.accept();
            if let Err(error) = &accepted
                && error.kind() == io::ErrorKind::WouldBlock
            {
                continue;
            }
            // More may have come, and what has failed may succeed later.
            direction.give_back();
            let (stream, peer) = accepted?;
            return Ok((Socket::new(stream)?, peer));
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.inner.local_addr()
    }
}
