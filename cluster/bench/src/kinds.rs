//! The systems that are measured, by their names.

use std::io::{BufRead, Write};

use crate::green::Engine;
use crate::{Outcome, green, kameo_peer, nats_peer, ping, ractor_peer};

/// The threads of each runtime that work.
pub const WORKERS: usize = 2;

/// Which system is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Links without certificates.
    Greenroom,
    GreenroomTls,
    Kameo,
    Ractor,
    /// A blocking socket, without actors.
    Ping,
    /// Nodes at a NATS server.
    GreenroomNats,
    GreenroomNatsTls,
    /// Nodes at two of three NATS servers.
    GreenroomNatsThree,
    /// Clients of NATS without actors.
    AsyncNats,
    AsyncNatsTls,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Greenroom,
        Kind::GreenroomTls,
        Kind::Kameo,
        Kind::Ractor,
        Kind::Ping,
        Kind::GreenroomNats,
        Kind::GreenroomNatsTls,
        Kind::GreenroomNatsThree,
        Kind::AsyncNats,
        Kind::AsyncNatsTls,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Greenroom => "greenroom",
            Kind::GreenroomTls => "greenroom-tls",
            Kind::Kameo => "kameo",
            Kind::Ractor => "ractor",
            Kind::Ping => "ping",
            Kind::GreenroomNats => "greenroom-nats",
            Kind::GreenroomNatsTls => "greenroom-nats-tls",
            Kind::GreenroomNatsThree => "greenroom-nats-three",
            Kind::AsyncNats => "async-nats",
            Kind::AsyncNatsTls => "async-nats-tls",
        }
    }

    pub fn of(name: &str) -> Outcome<Kind> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("there is no kind {name:?}").into())
    }

    pub fn is_own(self) -> bool {
        use Kind::{Greenroom, GreenroomNats, GreenroomNatsThree, GreenroomNatsTls, GreenroomTls};
        matches!(
            self,
            Greenroom | GreenroomTls | GreenroomNats | GreenroomNatsTls | GreenroomNatsThree
        )
    }

    /// Returns whether this figure is measured for it.
    pub fn has(self, figure: &str) -> bool {
        match figure {
            "ask" => true,
            "many" | "send" => self != Kind::Ping,
            _ if self == Kind::GreenroomNatsThree => false,
            // An address of the others does not tell of its end.
            "killed" => self.is_own() || self == Kind::Ractor,
            // A client of NATS is not stopped for long: its server ends it.
            "stopped" => matches!(self, Kind::Greenroom | Kind::GreenroomTls),
            _ => self != Kind::Ping,
        }
    }

    /// Returns whether it needs a NATS server.
    pub fn is_nats(self) -> bool {
        use Kind::{AsyncNats, AsyncNatsTls, GreenroomNats, GreenroomNatsThree, GreenroomNatsTls};
        matches!(
            self,
            AsyncNats | AsyncNatsTls | GreenroomNats | GreenroomNatsTls | GreenroomNatsThree
        )
    }

    pub fn is_tls(self) -> bool {
        use Kind::{AsyncNatsTls, GreenroomNatsTls, GreenroomTls};
        matches!(self, GreenroomTls | GreenroomNatsTls | AsyncNatsTls)
    }
}

pub fn serve(kind: Kind, nats: &str) -> Outcome<()> {
    match kind {
        Kind::Greenroom | Kind::GreenroomTls => green::serve(kind, Engine::Sockets),
        Kind::GreenroomNats | Kind::GreenroomNatsTls | Kind::GreenroomNatsThree => {
            green::serve(kind, Engine::Nats(nats))
        }
        Kind::AsyncNats | Kind::AsyncNatsTls => nats_peer::serve(nats, kind.is_tls()),
        Kind::Kameo => kameo_peer::serve(),
        Kind::Ractor => ractor_peer::serve(),
        Kind::Ping => ping::serve(),
    }
}

pub fn client(kind: Kind, figure: &str, address: &str, size: u64) -> Outcome<()> {
    match kind {
        Kind::Greenroom | Kind::GreenroomTls => {
            green::client(kind, Engine::Sockets, figure, address, size)
        }
        Kind::GreenroomNats | Kind::GreenroomNatsTls | Kind::GreenroomNatsThree => {
            green::client(kind, Engine::Nats(address), figure, address, size)
        }
        Kind::AsyncNats | Kind::AsyncNatsTls => {
            nats_peer::client(kind.is_tls(), figure, address, size)
        }
        Kind::Kameo => kameo_peer::client(figure, address, size),
        Kind::Ractor => ractor_peer::client(figure, address, size),
        Kind::Ping => ping::client(address, size),
    }
}

/// Prints the address of a server, and waits until the standard input closes.
pub fn until_closed(address: &str) -> Outcome<()> {
    say(address)?;
    std::io::stdin()
        .lock()
        .lines()
        .try_for_each(|line| line.map(drop))?;
    Ok(())
}

/// Prints a line for the process that has started this one.
pub fn say(line: &str) -> Outcome<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Returns a runtime for the peers.
pub fn tokio_runtime() -> Outcome<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(WORKERS).enable_all().build()?)
}
