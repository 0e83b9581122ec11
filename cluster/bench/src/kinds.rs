//! The systems that are measured, by their names.

use std::io::{BufRead, Write};

use crate::{Outcome, green, kameo_peer, ping, ractor_peer};

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
}

impl Kind {
    pub const ALL: [Kind; 5] = [
        Kind::Greenroom,
        Kind::GreenroomTls,
        Kind::Kameo,
        Kind::Ractor,
        Kind::Ping,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Greenroom => "greenroom",
            Kind::GreenroomTls => "greenroom-tls",
            Kind::Kameo => "kameo",
            Kind::Ractor => "ractor",
            Kind::Ping => "ping",
        }
    }

    pub fn of(name: &str) -> Outcome<Kind> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("there is no kind {name:?}").into())
    }

    pub fn is_own(self) -> bool {
        matches!(self, Kind::Greenroom | Kind::GreenroomTls)
    }
}

pub fn serve(kind: Kind) -> Outcome<()> {
    match kind {
        Kind::Greenroom => green::serve(false),
        Kind::GreenroomTls => green::serve(true),
        Kind::Kameo => kameo_peer::serve(),
        Kind::Ractor => ractor_peer::serve(),
        Kind::Ping => ping::serve(),
    }
}

pub fn client(kind: Kind, figure: &str, address: &str, size: u64) -> Outcome<()> {
    match kind {
        Kind::Greenroom => green::client(false, figure, address, size),
        Kind::GreenroomTls => green::client(true, figure, address, size),
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
