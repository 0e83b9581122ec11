//! The peers that take part.

#[cfg(feature = "greenroom")]
use greenroom::{Hosted, Pinned};
#[cfg(feature = "greenroom")]
use rusqlite::Connection;

use crate::actors;
use crate::cases::Case;
#[cfg(feature = "greenroom")]
use crate::executors::greenroom::Greenroom;
use crate::executors::{self, async_executor::AsyncExecutor, smolscale::Smolscale, tokio::Tokio};
use crate::figures::Figure;
use crate::{blocking, sets, sqlite, tasks, timers};

/// A way to write the programs.
#[derive(Debug)]
pub struct Peer {
    /// Its column in the table.
    pub name: &'static str,
    /// Runs a case in this process; returns `None` if the peer has no program for it.
    pub run: fn(Case) -> Option<Vec<Figure>>,
}

/// The peer that is compared with the others.
pub const OURS: &str = "greenroom";

/// All peers that were built in, in the order of the table.
pub const PEERS: &[Peer] = &[
    #[cfg(feature = "greenroom")]
    Peer {
        name: OURS,
        run: |case| {
            let ran = actors::greenroom::run(case).or_else(|| tasks::run::<Greenroom>(case));
            let ran = ran.or_else(|| blocking::run::<Greenroom>(case));
            let ran = ran.or_else(|| timers::run::<Greenroom>(case));
            let ran = ran.or_else(|| sets::run::<Greenroom>(case));
            ran.or_else(|| sqlite::run::<(Hosted<Connection>, Pinned)>(case))
        },
    },
    Peer {
        name: "tokio",
        run: |case| {
            let ran = actors::tokio::run(case).or_else(|| tasks::run::<Tokio>(case));
            let ran = ran.or_else(|| blocking::run::<Tokio>(case));
            let ran = ran.or_else(|| timers::run::<Tokio>(case));
            ran.or_else(|| sets::run::<Tokio>(case))
        },
    },
    Peer {
        name: "smol",
        run: |case| {
            let ran = actors::smol::run(case).or_else(|| tasks::run::<AsyncExecutor>(case));
            let ran = ran.or_else(|| blocking::run::<AsyncExecutor>(case));
            ran.or_else(|| timers::run::<AsyncExecutor>(case))
        },
    },
    Peer {
        name: "actix",
        run: actors::actix::run,
    },
    Peer {
        name: "ractor",
        run: actors::ractor::run,
    },
    Peer {
        name: "kameo",
        run: actors::kameo::run,
    },
    Peer {
        name: "xtra",
        run: actors::xtra::run,
    },
    Peer {
        name: "acto",
        run: actors::acto::run,
    },
    Peer {
        name: "smolscale",
        run: tasks::run::<Smolscale>,
    },
    Peer {
        name: "nexosim",
        run: executors::nexosim::run,
    },
    Peer {
        name: "rayon",
        run: executors::rayon::run,
    },
    Peer {
        name: "tokio-mpsc",
        run: actors::tokio::loopers::run,
    },
    Peer {
        name: "tokio-rusqlite",
        run: sqlite::run::<tokio_rusqlite::Connection>,
    },
    Peer {
        name: "async-sqlite",
        run: sqlite::run::<async_sqlite::Client>,
    },
];

/// Returns the peer with this name.
pub fn named(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name)
}
