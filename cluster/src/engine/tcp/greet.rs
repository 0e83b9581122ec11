//! The greeting of two nodes on a new connection, and then their link.
//!
//! The node that accepts sends first: magic, version, hello. The node that dials answers the same,
//! unless it has a link to that node already. Then the first node answers whether the other is welcome. No
//! message passes before.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::future::or;
use futures_lite::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use serde::Deserialize;

use super::Tcp;
use super::socket::LinkSocket;
use super::tls::stands_for;
use super::wire;
use crate::link::frame::{ClusterMember, Hello, LENGTH, VERSION, framed};
use crate::link::{Link, LinkOwner};

/// What a node sends first on each connection, before the version.
pub(super) const MAGIC: [u8; 8] = *b"greenrm\n";

/// How long a greeting may take, with the certificates: less than a lookup waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// The bytes of a hello. It has a name and some addresses.
const LONGEST_HELLO: usize = 16 << 10;

/// What has become of a dial.
pub(super) enum Dialled {
    /// There is a link already to the node of this name.
    Known(String),
    /// The link was up, and is down again.
    Ended,
}

impl Tcp {
    /// Greets a node that has dialled this one. Returns the link, which is up.
    pub(super) async fn accepted(
        self: &Arc<Self>,
        socket: Async<TcpStream>,
    ) -> Result<(Arc<Link>, wire::Connection), String> {
        in_time(async {
            let mut socket = self.secured(socket, false).await?;
            self.send_hello(&mut socket).await?;
            let hello = self.receive_hello(&mut socket).await?;
            // The dialler receives it as it is: it is welcome, or this is why not.
            let up: Result<(), String> = self.check_link(&hello, false);
            // Until the link is up, this node sends no hello to that one elsewhere.
            let _greeted = self.dials.greet(&hello.member);
            write(&mut socket, &framed(&up)).await?;
            up?;
            self.begin(hello, socket, false)
        })
        .await
    }

    /// Greets a node that was dialled, and serves the link until it is down. Calls `is_up` when it
    /// is up.
    pub(super) async fn dialled(
        self: &Arc<Self>,
        socket: Async<TcpStream>,
        is_up: impl Fn(),
    ) -> Result<Dialled, String> {
        let greeted = async {
            let mut socket = self.secured(socket, true).await?;
            let hello = self.receive_hello(&mut socket).await?;
            let name = hello.member.name.clone();
            let state = self.state().ok_or("the node is closed")?;
            let old = state.link_to(&name);
            let own = state.hello.member.incarnation;
            if hello.member.incarnation == own
                || old.is_some_and(|old| old.peer.member.incarnation == hello.member.incarnation)
            {
                return Ok(Err(name));
            }
            // Another address of the same node may be dialled at the same time.
            let Some(_greeted) = self.dials.greet(&hello.member) else {
                return Ok(Err(name));
            };
            // The other node receives nothing about a link that is not to be.
            self.check_link(&hello, true)?;
            self.send_hello(&mut socket).await?;
            // What the other node has found of this one.
            receive::<Result<(), String>>(&mut socket).await??;
            self.check_link(&hello, true)?;
            Ok(Ok(self.begin(hello, socket, true)?))
        };
        match in_time(greeted).await? {
            Err(known) => Ok(Dialled::Known(known)),
            Ok((link, connection)) => {
                is_up();
                self.serve(link, connection).await;
                Ok(Dialled::Ended)
            }
        }
    }

    async fn secured(
        &self,
        socket: Async<TcpStream>,
        is_dialled: bool,
    ) -> Result<LinkSocket, String> {
        let _ = socket.get_ref().set_nodelay(true);
        let Some(tls) = &self.tls else {
            return Ok(LinkSocket::Plain(socket));
        };
        let secured = match is_dialled {
            true => tls.connect(socket).await,
            false => tls.accept(socket).await,
        };
        let secured = secured.map_err(|error| format!("no secure connection: {error}"))?;
        Ok(LinkSocket::Secured(Box::new(secured)))
    }

    async fn send_hello(&self, socket: &mut LinkSocket) -> Result<(), String> {
        let state = self.state().filter(|state| !state.peers().is_closed);
        let state = state.ok_or("the node is closed")?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(framed(&state.hello));
        write(socket, &bytes).await
    }

    /// Reads what the other node sends first: magic, version, hello.
    async fn receive_hello(&self, socket: &mut LinkSocket) -> Result<Hello, String> {
        let mut start = [0; MAGIC.len() + size_of::<u16>()];
        read(socket, &mut start).await?;
        let (magic, version) = start.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err("the other side is no node of greenroom-cluster".into());
        }
        let theirs = version.try_into().map_or(0, u16::from_le_bytes);
        if theirs != VERSION {
            return Err(format!(
                "the versions differ: ours is {VERSION}, theirs is {theirs}"
            ));
        }
        let hello: Hello = receive(socket).await?;
        let name = &hello.member.name;
        // With TLS the certificate, and not the hello, says who it is.
        if socket.peer().is_some_and(|peer| !stands_for(peer, name)) {
            return Err(format!(
                "the certificate of the other node has no DNS name {name:?}"
            ));
        }
        Ok(hello)
    }

    /// Returns why no link to this peer may come up, beside one that may exist.
    fn check_link(&self, hello: &Hello, is_dialled: bool) -> Result<(), String> {
        let state = self.state().ok_or("the node is closed")?;
        state.check_member(&hello.member)?;
        let ClusterMember {
            name, incarnation, ..
        } = &hello.member;
        // Both nodes may dial at once. Both then keep what the one with the lower name has dialled.
        let is_lower = state.hello.member.name < *name;
        let is_crossed = is_lower && !is_dialled && self.dials.greets(&hello.member);
        let old = state.link_to(name);
        let old = old.filter(|old| old.peer.member.incarnation == *incarnation);
        let old_is_right = old.is_some_and(|old| self.dials.came_up_lately(&old, is_lower));
        let is_late = old_is_right && is_dialled != is_lower;
        match is_crossed || is_late {
            true => Err("the nodes have dialled each other at the same time".into()),
            false => Ok(()),
        }
    }

    fn begin(
        self: &Arc<Self>,
        hello: Hello,
        socket: LinkSocket,
        is_dialled: bool,
    ) -> Result<(Arc<Link>, wire::Connection), String> {
        let state = self.state().ok_or("the node is closed")?;
        let (wire, connection) = wire::new(socket, state.limits().frame);
        let member = hello.member.clone();
        let link = state.up(hello, wire)?;
        state.spread_members();
        self.dials.note_up(&link, is_dialled);
        let by = member.name.clone();
        self.dial_members(&[member], &by);
        Ok((link, connection))
    }

    pub(super) async fn serve(self: &Arc<Self>, link: Arc<Link>, connection: wire::Connection) {
        let malformed = connection.serve(&link, self).await;
        let Some(state) = self.state() else { return };
        if malformed {
            state.counts().malformed.add();
        }
        state.down(&link);
    }
}

/// Ends a greeting that takes too long.
async fn in_time<T>(greeted: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    or(greeted, async {
        Timer::after(PATIENCE).await;
        Err(format!(
            "no greeting within {PATIENCE:?}: perhaps only one of the nodes has a certificate"
        ))
    })
    .await
}

async fn write(socket: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), String> {
    let written = async {
        socket.write_all(bytes).await?;
        socket.flush().await
    };
    written.await.map_err(ended)
}

async fn read(socket: &mut (impl AsyncRead + Unpin), bytes: &mut [u8]) -> Result<(), String> {
    socket.read_exact(bytes).await.map_err(ended)
}

fn ended(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the other side has closed the connection".into(),
        // An alert of TLS: with version 1.3 the dialler receives it after its own part is done.
        io::ErrorKind::InvalidData => format!("no secure connection: {error}"),
        _ => error.to_string(),
    }
}

/// Reads a value with its length in front.
async fn receive<T: for<'a> Deserialize<'a>>(socket: &mut LinkSocket) -> Result<T, String> {
    let mut length = [0; LENGTH];
    read(socket, &mut length).await?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HELLO {
        return Err(format!(
            "a hello has {length} bytes, more than {LONGEST_HELLO}"
        ));
    }
    let mut bytes = vec![0; length];
    read(socket, &mut bytes).await?;
    postcard::from_bytes(&bytes).map_err(|error| format!("a hello is malformed: {error}"))
}
