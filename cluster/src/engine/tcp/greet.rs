//! The greeting of two nodes on a new connection, and then their link.
//!
//! The node that accepts speaks first: magic, version, hello. The node that dials answers the same,
//! unless it has a link to that node already. Then the first node says whether the other is welcome. No
//! message passes before.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::future::or;
use futures_lite::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use serde::{Deserialize, Serialize};

use super::socket::Socket;
use super::tls::stands_for;
use super::wire;
use super::{Greeting, Tcp};
use crate::link::frame::{ClusterMember, Hello, LENGTH, MAGIC, VERSION, framed};
use crate::link::{Link, Owner};

/// How long a greeting may take, with the certificates: less than a lookup waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// The bytes of a hello. It has a name and some addresses.
const LONGEST_HELLO: usize = 16 << 10;

/// What a node says to one that has dialled it.
#[derive(Serialize, Deserialize)]
enum Verdict {
    Welcome,
    Refused(String),
}

/// What has become of a dial.
pub(super) enum Dialled {
    /// There is a link already to the node of this name.
    Known(String),
    /// The link was up, and is down again.
    Ended,
}

impl Tcp {
    /// Greets a node that has dialled this one, and serves the link until it is down.
    pub(super) async fn accepted(
        self: &Arc<Self>,
        socket: Async<TcpStream>,
        greeting: Greeting,
    ) -> Result<(), String> {
        let greeted = async {
            let mut socket = self.secured(socket, true).await?;
            self.say_hello(&mut socket).await?;
            let hello = self.hear_hello(&mut socket).await?;
            let up = self.comes_up(&hello, socket.is_dialled);
            // Until the link is up, this node says hello to that one nowhere else.
            let _greeted = self.dials.greet(&hello.member);
            let verdict = match &up {
                Ok(()) => Verdict::Welcome,
                Err(why) => Verdict::Refused(why.clone()),
            };
            write(&mut socket, &framed(&verdict)).await?;
            up?;
            self.begin(hello, socket)
        };
        let (link, connection) = in_time(greeted).await?;
        drop(greeting);
        self.serve(link, connection).await;
        Ok(())
    }

    /// Greets a node that was dialled, and serves the link until it is down. Calls `is_up` when it
    /// is up.
    pub(super) async fn dialled(
        self: &Arc<Self>,
        socket: Async<TcpStream>,
        is_up: impl Fn(),
    ) -> Result<Dialled, String> {
        let greeted = async {
            let mut socket = self.secured(socket, false).await?;
            let hello = self.hear_hello(&mut socket).await?;
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
            // The other node hears nothing of a link that is not to be.
            self.comes_up(&hello, socket.is_dialled)?;
            self.say_hello(&mut socket).await?;
            match hear::<Verdict>(&mut socket).await? {
                Verdict::Refused(why) => return Err(why),
                Verdict::Welcome => {}
            }
            self.comes_up(&hello, socket.is_dialled)?;
            Ok(Ok(self.begin(hello, socket)?))
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

    async fn secured(&self, socket: Async<TcpStream>, accepts: bool) -> Result<Socket, String> {
        let _ = socket.get_ref().set_nodelay(true);
        let is_dialled = !accepts;
        let Some(tls) = &self.tls else {
            return Ok(Socket::plain(socket, is_dialled));
        };
        let secured = match accepts {
            true => tls.accept(socket).await,
            false => tls.connect(socket).await,
        };
        let secured = secured.map_err(|error| format!("no secure connection: {error}"))?;
        Ok(Socket::secured(secured, is_dialled))
    }

    async fn say_hello(&self, socket: &mut Socket) -> Result<(), String> {
        let state = self.state().filter(|state| !state.peers().is_closed);
        let state = state.ok_or("the node is closed")?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(framed(&state.hello));
        write(socket, &bytes).await
    }

    async fn hear_hello(&self, socket: &mut Socket) -> Result<Hello, String> {
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
        let hello: Hello = hear(socket).await?;
        let name = &hello.member.name;
        if socket.peer().is_some_and(|peer| !stands_for(peer, name)) {
            return Err(format!(
                "the certificate of the other node has no DNS name {name:?}"
            ));
        }
        Ok(hello)
    }

    /// Returns whether a link to this peer is to come up, beside one that may exist.
    fn comes_up(&self, hello: &Hello, is_dialled: bool) -> Result<(), String> {
        let state = self.state().ok_or("the node is closed")?;
        state.admits(&hello.member)?;
        let ClusterMember {
            name, incarnation, ..
        } = &hello.member;
        // Both nodes may dial at once. Both then keep what the one with the lower name has dialled.
        let is_lower = state.hello.member.name < *name;
        let is_crossed = is_lower && !is_dialled && self.dials.greets(&hello.member);
        let lower_dialled = |is_dialled| is_dialled == is_lower;
        let old = state.link_to(name);
        let old = old.filter(|old| old.peer.member.incarnation == *incarnation);
        let old_is_right =
            (old.and_then(|old| self.dials.is_young(&old))).is_some_and(lower_dialled);
        let is_late = old_is_right && !lower_dialled(is_dialled);
        match is_crossed || is_late {
            true => Err("the nodes have dialled each other at the same time".into()),
            false => Ok(()),
        }
    }

    fn begin(
        self: &Arc<Self>,
        hello: Hello,
        socket: Socket,
    ) -> Result<(Arc<Link>, wire::Connection), String> {
        let state = self.state().ok_or("the node is closed")?;
        let is_dialled = socket.is_dialled;
        let (wire, connection) = wire::new(socket, state.limits().frame);
        let member = hello.member.clone();
        let link = state.up(hello, wire)?;
        self.dials.came_up(&link, is_dialled);
        self.dial_members(&[member], true);
        Ok((link, connection))
    }

    async fn serve(self: &Arc<Self>, link: Arc<Link>, connection: wire::Connection) {
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
        // An alert of TLS: with version 1.3 the dialler hears it after its own part is done.
        io::ErrorKind::InvalidData => format!("no secure connection: {error}"),
        _ => error.to_string(),
    }
}

/// Reads a value with its length in front.
async fn hear<T: for<'a> Deserialize<'a>>(socket: &mut Socket) -> Result<T, String> {
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
