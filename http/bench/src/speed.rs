//! The check that no server of greenroom-http falls behind its peer without being noticed.
//!
//! A figure lags if it is below its least part of the peer's in each of three series of rounds, of
//! which the later ones are longer. Only pairs that lagged so far run again.

use crate::Outcome;
use crate::load::Load;
use crate::rounds::Shape;
use crate::servers::Kind;
use crate::table::median;

/// The requests of one run.
const REQUESTS: u64 = 20_000;
/// The rounds of each series.
const SERIES: [usize; 3] = [5, 9, 15];
/// The least quotient of each pair: of requests a second, and of the peer's processor time by the
/// own. The spread of equal servers is a tenth.
const LEAST: [(f64, f64); Kind::PAIRS.len()] = [(0.7, 0.6), (0.8, 0.8), (0.8, 0.8), (0.8, 0.8)];

/// Compares all pairs, prints what was found, and fails if one lags.
pub fn check() -> Outcome<()> {
    let mut suspects: Vec<usize> = (0..Kind::PAIRS.len()).collect();
    for rounds in SERIES {
        let mut lagging = Vec::new();
        for pair in suspects {
            if lags(pair, rounds)? {
                lagging.push(pair);
            }
        }
        suspects = lagging;
    }
    match suspects[..] {
        [] => Ok(()),
        _ => {
            let names = suspects.iter().map(|pair| Kind::PAIRS[*pair].0.name());
            let names: Vec<_> = names.collect();
            Err(format!("behind its peer in each series: {}", names.join(", ")).into())
        }
    }
}

/// Measures a pair in turns; prints its quotients, and returns whether it lags.
fn lags(pair: usize, rounds: usize) -> Outcome<bool> {
    let (own, peer) = Kind::PAIRS[pair];
    let (mut owns, mut peers) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut turns = [(own, &mut owns), (peer, &mut peers)];
        turns.rotate_left(round % 2);
        for (kind, loads) in turns {
            loads.push(Shape::Run.measure(kind, REQUESTS)?);
        }
    }
    // All quotients: the figures of a run have two peaks, by whether the workers share a core.
    let quotients = |of: fn(&Load, &Load) -> f64| {
        let all = owns
            .iter()
            .flat_map(|own| peers.iter().map(move |peer| of(own, peer)));
        median(all.collect())
    };
    let rate = quotients(|own, peer| own.rate / peer.rate);
    let time = quotients(|own, peer| peer.processor / own.processor);
    let (least_rate, least_time) = LEAST[pair];
    println!(
        "{} beside {}: requests {rate:.2} (at least {least_rate}), \
         time {time:.2} (at least {least_time})",
        own.name(),
        peer.name()
    );
    Ok(rate < least_rate || time < least_time)
}
