//! The comparison: rounds in which the servers alternate.

use crate::idle::{self, Idle};
use crate::load::Load;
use crate::servers::Kind;
use crate::{Outcome, load, table, wrk};

/// The loads of a pair of servers, one for each round.
pub struct Pair {
    pub own: Kind,
    pub peer: Kind,
    pub own_loads: Vec<Load>,
    pub peer_loads: Vec<Load>,
    /// The peer once more, to show by what equal servers differ.
    pub peer_again: Vec<Load>,
}

/// Who sends the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One process with 64 connections.
    Run,
    /// One process with 1000 connections.
    Wide,
    /// Four processes with 16 connections each.
    Processes,
    /// wrk with 64 connections.
    Wrk,
}

impl Shape {
    pub fn of(name: &str) -> Option<Shape> {
        Some(match name {
            "run" => Shape::Run,
            "wide" => Shape::Wide,
            "processes" => Shape::Processes,
            "wrk" => Shape::Wrk,
            _ => return None,
        })
    }

    /// Measures a fresh server once.
    pub fn measure(self, kind: Kind, requests: u64) -> Outcome<Load> {
        match self {
            Shape::Run => load::measure(kind, 1, 64, requests),
            Shape::Wide => load::measure(kind, 1, 1000, requests),
            Shape::Processes => load::measure(kind, 4, 64, requests),
            Shape::Wrk => wrk::measure(kind),
        }
    }
}

/// Measures all servers in so many rounds, and prints a table.
pub fn run(shape: Shape, rounds: usize, requests: u64) -> Outcome<()> {
    let mut pairs = Kind::PAIRS.map(|(own, peer)| Pair {
        own,
        peer,
        own_loads: Vec::new(),
        peer_loads: Vec::new(),
        peer_again: Vec::new(),
    });
    for round in 0..rounds {
        for pair in &mut pairs {
            let (own, peer) = (pair.own, pair.peer);
            let loads = [
                &mut pair.own_loads,
                &mut pair.peer_loads,
                &mut pair.peer_again,
            ];
            let mut turns = [own, peer, peer].into_iter().zip(loads).collect::<Vec<_>>();
            // No server always comes first.
            turns.rotate_left(round % 3);
            for (kind, loads) in turns {
                let load = shape.measure(kind, requests)?;
                eprintln!("round {} {}: {load:?}", round + 1, kind.name());
                loads.push(load);
            }
        }
    }
    table::print_loads(&pairs);
    if shape == Shape::Run {
        let measured = [Kind::Actor, Kind::Hyper].map(|kind| Ok((kind, idle::measure(kind)?)));
        let idles = measured
            .into_iter()
            .collect::<Outcome<Vec<(Kind, Idle)>>>()?;
        table::print_idles(&idles);
    }
    Ok(())
}
