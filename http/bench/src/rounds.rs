//! The comparison: rounds in which the servers alternate.

use std::process::Command;

use crate::idle::{self, Idle};
use crate::load::Load;
use crate::process::Serving;
use crate::servers::Kind;
use crate::{Outcome, table};

/// The loads of a server, one for each round.
pub type Loads = Vec<(Kind, Vec<Load>)>;

/// Measures all servers in so many rounds, and prints a table.
pub fn run(rounds: usize, requests: u64) -> Outcome<()> {
    let mut loads: Loads = Kind::ALL.map(|kind| (kind, Vec::new())).into();
    for round in 0..rounds {
        for place in 0..loads.len() {
            // No server comes always after the same one.
            let at = (place * (1 + round % 4) + round) % Kind::ALL.len();
            let (kind, of_kind) = &mut loads[at];
            let load = load(*kind, requests)?;
            eprintln!("round {} {}: {load:?}", round + 1, kind.name());
            of_kind.push(load);
        }
    }
    let mut idles: Vec<(Kind, Idle)> = Vec::new();
    for kind in [Kind::Greenroom, Kind::Undriven, Kind::Tokio] {
        idles.push((kind, idle::measure(kind)?));
    }
    table::print(&loads, &idles);
    Ok(())
}

/// Measures a fresh server by a load in another process.
fn load(kind: Kind, requests: u64) -> Outcome<Load> {
    let server = Serving::start(kind)?;
    let mut command = Command::new(std::env::current_exe()?);
    let (pid, port) = (server.pid().to_string(), server.port.to_string());
    let command = command.args(["load", &pid, &port, kind.path(), &requests.to_string()]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let figures = text.split_whitespace().map(str::parse::<f64>);
    let figures = figures.collect::<Result<Vec<f64>, _>>()?;
    let [rate, p99, processor] = figures[..] else {
        return Err("the load has shown something else".into());
    };
    Ok(Load {
        rate,
        p99,
        processor,
    })
}
