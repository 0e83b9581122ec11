//! Sockets that accept connections: of TCP, and on Unix those in the file system.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use mio::Interest;
use mio::event::Source;

use super::socket::{RegisteredSocket, Socket};
#[cfg(unix)]
use super::socket_file::SocketFile;

/// The address of what has none of IP, since it is on this machine.
pub(super) const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A listener that a program gives to a [server](crate::Server::from_listener): a
/// [`TcpListener`], or on Unix a [`UnixListener`](std::os::unix::net::UnixListener).
#[derive(Debug)]
pub struct GivenListener(GivenKind);

#[derive(Debug)]
enum GivenKind {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
}

impl From<TcpListener> for GivenListener {
    fn from(listener: TcpListener) -> Self {
        GivenListener(GivenKind::Tcp(listener))
    }
}

#[cfg(unix)]
impl From<std::os::unix::net::UnixListener> for GivenListener {
    fn from(listener: std::os::unix::net::UnixListener) -> Self {
        GivenListener(GivenKind::Unix(listener))
    }
}

impl GivenListener {
    /// Returns the address at which it listens. A socket of Unix is on this machine.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            GivenKind::Tcp(listener) => listener.local_addr(),
            #[cfg(unix)]
            GivenKind::Unix(_) => Ok(HERE),
        }
    }

    /// Returns how it is called in texts.
    pub(crate) fn name(&self) -> String {
        match &self.0 {
            GivenKind::Tcp(listener) => {
                let local = listener.local_addr();
                local.map_or_else(|_| "a listener".to_owned(), |it| it.to_string())
            }
            #[cfg(unix)]
            GivenKind::Unix(listener) => {
                let local = listener.local_addr().ok();
                let path = local.as_ref().and_then(|it| it.as_pathname());
                path.map_or("a listener".into(), |it| it.display().to_string())
            }
        }
    }
}

/// A socket that accepts connections.
#[derive(Debug)]
pub(crate) struct Acceptor {
    kind: AcceptorKind,
    name: String,
    /// Removed with the listener.
    #[cfg(unix)]
    _file: Option<SocketFile>,
}

#[derive(Debug)]
enum AcceptorKind {
    Tcp(RegisteredSocket<mio::net::TcpListener>),
    #[cfg(unix)]
    Unix(RegisteredSocket<mio::net::UnixListener>),
}

impl Acceptor {
    /// Listens at the first of these addresses that is free.
    pub(crate) fn bind(addresses: &[SocketAddr]) -> io::Result<Self> {
        Acceptor::of(TcpListener::bind(addresses)?.into())
    }

    /// Takes over a listener.
    pub(crate) fn of(listener: GivenListener) -> io::Result<Self> {
        let name = listener.name();
        let kind = match listener.0 {
            GivenKind::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let listener = mio::net::TcpListener::from_std(listener);
                RegisteredSocket::new(listener, Interest::READABLE).map(AcceptorKind::Tcp)
            }
            #[cfg(unix)]
            GivenKind::Unix(listener) => {
                listener.set_nonblocking(true)?;
                let listener = mio::net::UnixListener::from_std(listener);
                RegisteredSocket::new(listener, Interest::READABLE).map(AcceptorKind::Unix)
            }
        };
        Ok(Acceptor {
            kind: kind?,
            name,
            #[cfg(unix)]
            _file: None,
        })
    }

    /// Listens at a path, which only the user of this process reaches. It is removed with the
    /// acceptor. The call may block.
    #[cfg(unix)]
    pub(crate) fn bind_path(path: &std::path::Path) -> io::Result<Self> {
        let (listener, file) = SocketFile::listen(path)?;
        let _file = Some(file);
        Acceptor::of(listener.into()).map(|own| Acceptor { _file, ..own })
    }

    /// Waits for a connection.
    ///
    /// # Cancel safety
    /// If the future is dropped, no connection is lost.
    pub(crate) async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        match &self.kind {
            AcceptorKind::Tcp(listener) => {
                let (stream, peer) = accept(listener, mio::net::TcpListener::accept).await?;
                Ok((Socket::new(stream)?, peer))
            }
            #[cfg(unix)]
            AcceptorKind::Unix(listener) => {
                let (stream, _) = accept(listener, mio::net::UnixListener::accept).await?;
                Ok((Socket::of_unix(stream)?, HERE))
            }
        }
    }

    /// Returns the address at which it listens. A socket of Unix is on this machine.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.kind {
            AcceptorKind::Tcp(listener) => listener.inner.local_addr(),
            #[cfg(unix)]
            AcceptorKind::Unix(_) => Ok(HERE),
        }
    }

    /// Returns its address or path, for texts.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

async fn accept<S: Source, T>(
    listener: &RegisteredSocket<S>,
    accept: impl Fn(&S) -> io::Result<T>,
) -> io::Result<T> {
    let direction = &listener.readiness.read;
    loop {
        poll_fn(|cx| direction.poll_ready(cx)).await;
        direction.take();
        let accepted = accept(&listener.inner);
        if let Err(error) = &accepted
            && error.kind() == io::ErrorKind::WouldBlock
        {
            continue;
        }
        // More may have come, and what has failed may succeed later.
        direction.give_back();
        return accepted;
    }
}
