//! Where a server listens, and whether other machines reach it there.

use std::net::SocketAddr;
#[cfg(unix)]
use std::path::PathBuf;

#[cfg(unix)]
use greenroom::unblock;

use crate::error::ListenProblem;
use crate::reactor::{Acceptor, GivenListener, resolve};

/// Where a server listens.
pub(super) enum ListenPlace {
    Address(String),
    Listener(GivenListener),
    #[cfg(unix)]
    Path(PathBuf),
}

impl ListenPlace {
    /// Returns how the place is called in texts.
    pub(super) fn name(&self) -> String {
        match self {
            ListenPlace::Address(address) => address.clone(),
            ListenPlace::Listener(listener) => listener.name(),
            #[cfg(unix)]
            ListenPlace::Path(path) => path.display().to_string(),
        }
    }

    /// Listens there, if only this machine reaches it or the server is exposed.
    pub(super) async fn listen(self, is_exposed: bool) -> Result<Acceptor, ListenProblem> {
        let is_right = |address: &SocketAddr| {
            let is_local = address.ip().to_canonical().is_loopback();
            is_exposed || is_local
        };
        match self {
            ListenPlace::Address(address) => {
                let addresses = resolve(&address).await?;
                match addresses.iter().all(is_right) {
                    true => Ok(Acceptor::bind(&addresses)?),
                    false => Err(ListenProblem::NotLoopback),
                }
            }
            ListenPlace::Listener(listener) => match is_right(&listener.local_addr()?) {
                true => Ok(Acceptor::of(listener)?),
                false => Err(ListenProblem::NotLoopback),
            },
            #[cfg(unix)]
            ListenPlace::Path(path) => Ok(unblock(move || Acceptor::bind_path(&path)).await?),
        }
    }
}
