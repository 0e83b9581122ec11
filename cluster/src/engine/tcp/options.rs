//! The options of a node at sockets.
//!
//! All addresses are checked before one is bound.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use super::address::{bare, bind};
use super::{Tcp, Tls};
use crate::engine::{OpenNode, Renew, no_certificate};
use crate::error::OpenError;
use crate::limits::Limits;
use crate::link::frame::Hello;
use crate::node::NodeState;

/// The addresses of a node, and the bytes of each: so a hello and a frame have room for all.
const MOST_ADDRESSES: usize = 8;
const LONGEST_ADDRESS: usize = 255;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SocketOptions {
    pub(crate) listen: Vec<String>,
    pub(crate) advertise: Vec<String>,
    pub(crate) seeds: Vec<String>,
    /// The files of certificate, key and authority.
    pub(crate) identity: Option<[PathBuf; 3]>,
    pub(crate) is_insecure: bool,
}

impl SocketOptions {
    /// Returns why the addresses do not fit into a hello, if that is so.
    pub(crate) fn check(&self) -> Result<(), String> {
        let addresses: Vec<_> = self.listen.iter().chain(&self.advertise).collect();
        if addresses.len() > MOST_ADDRESSES {
            let count = addresses.len();
            return Err(format!("{count} addresses are more than {MOST_ADDRESSES}"));
        }
        let mut addresses = addresses.into_iter();
        match addresses.find(|address| address.len() > LONGEST_ADDRESS) {
            Some(long) => Err(format!("{long:?} is longer than {LONGEST_ADDRESS} bytes")),
            None => Ok(()),
        }
    }

    /// Opens a node, which blocks while it reads files and looks names up.
    pub(crate) fn open(self, mut hello: Hello, limits: Limits) -> Result<OpenNode, OpenError> {
        let tls = match &self.identity {
            None => None,
            Some(files) => {
                let tls = Tls::read(files.clone(), &hello.member.name);
                Some(Arc::new(tls.map_err(OpenError::Identity)?))
            }
        };
        let is_tls = tls.is_some();
        let all_bare = |given: &[String]| {
            let all = given.iter().map(|address| bare(address, is_tls));
            all.collect::<Result<Vec<_>, _>>()
                .map_err(OpenError::Option)
        };
        let (seeds, advertise) = (all_bare(&self.seeds)?, all_bare(&self.advertise)?);
        let listen = all_bare(&self.listen)?;
        let may_be_exposed = is_tls || self.is_insecure;
        // All texts are valid before the first listener is bound. A failure drops those before it.
        let bound = (self.listen.iter().zip(&listen))
            .map(|(given, bare)| bind(given, bare, may_be_exposed));
        let (listeners, dialled): (Vec<_>, Vec<_>) =
            bound.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let listens = listeners
            .iter()
            .filter_map(|listener: &TcpListener| listener.local_addr().ok());
        let addresses = listens.map(|at| at.to_string()).collect();
        hello.member.addresses = match advertise.is_empty() {
            true => dialled.into_iter().flatten().collect(),
            false => advertise,
        };
        let renew = match tls.clone() {
            Some(tls) => Box::new(move || tls.renew()) as Renew,
            None => no_certificate(),
        };
        let engine = Tcp::new(tls, seeds);
        let state = NodeState::new(hello, limits, Arc::new(engine.clone()));
        engine.start(&state, listeners)?;
        Ok(OpenNode {
            state,
            addresses,
            renew,
        })
    }
}
