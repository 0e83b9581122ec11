//! The servers. Each prints its port and serves until its standard input closes.

use std::io::{BufRead, Write};

use serde::Deserialize;

use crate::{Outcome, green, memory, peers};

/// The threads of each server that work.
pub const WORKERS: usize = 2;
/// The actors, or tasks, of a server that has one for each connection.
pub const ACTORS: usize = 64;
/// What is answered, but for tables.
pub const HELLO: &str = "hello";

/// Which server is measured. Those of greenroom come before their peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page, without an actor.
    Page,
    Hyper,
    /// One actor.
    Actor,
    Task,
    /// An actor for each connection.
    Actors,
    Tasks,
    /// A spool of as many actors as workers, which fill tables.
    Spool,
    Pool,
}

impl Kind {
    pub const ALL: [Kind; 8] = [
        Kind::Page,
        Kind::Hyper,
        Kind::Actor,
        Kind::Task,
        Kind::Actors,
        Kind::Tasks,
        Kind::Spool,
        Kind::Pool,
    ];

    /// Each server of greenroom with its peer.
    pub const PAIRS: [(Kind, Kind); 4] = [
        (Kind::Page, Kind::Hyper),
        (Kind::Actor, Kind::Task),
        (Kind::Actors, Kind::Tasks),
        (Kind::Spool, Kind::Pool),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Page => "page",
            Kind::Hyper => "hyper",
            Kind::Actor => "actor",
            Kind::Task => "task",
            Kind::Actors => "actors",
            Kind::Tasks => "tasks",
            Kind::Spool => "spool",
            Kind::Pool => "pool",
        }
    }

    pub fn of(name: &str) -> Outcome<Kind> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("there is no server {name:?}").into())
    }

    /// Returns the path that a connection asks for.
    pub fn path(self, connection: usize) -> String {
        match self {
            Kind::Page | Kind::Hyper => "/".to_owned(),
            Kind::Actor | Kind::Task => "/Hello".to_owned(),
            Kind::Actors | Kind::Tasks => format!("/{}", hello(connection % ACTORS)),
            Kind::Spool | Kind::Pool => "/Xy?x=8&y=8".to_owned(),
        }
    }
}

/// Returns the name of the requests to one of many actors.
pub fn hello(number: usize) -> String {
    format!("Hello{number}")
}

/// The size of a table.
#[derive(Deserialize)]
pub struct Xy {
    x: usize,
    y: usize,
}

pub type Table = Vec<Vec<f64>>;

impl Xy {
    /// Returns a table of random numbers.
    pub fn fill(&self) -> Table {
        let row = || (0..self.x).map(|_| fastrand::f64()).collect();
        (0..self.y).map(|_| row()).collect()
    }
}

pub fn serve(kind: Kind) -> Outcome<()> {
    match kind {
        Kind::Page => green::page(),
        Kind::Actor => green::actor(),
        Kind::Actors => green::actors(),
        Kind::Spool => green::spool(),
        Kind::Hyper => peers::hyper(),
        Kind::Task => peers::task(),
        Kind::Tasks => peers::tasks(),
        Kind::Pool => peers::pool(),
    }
}

/// Prints the port, and the live memory for each line that comes, until no more can come.
pub fn until_closed(port: u16) -> Outcome<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{port}")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        writeln!(out, "{}", memory::live())?;
        out.flush()?;
    }
    Ok(())
}
