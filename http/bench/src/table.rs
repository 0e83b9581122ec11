//! The table of the results: medians, ranges, and ratios beside a peer.

use crate::idle::Idle;
use crate::load::Load;
use crate::rounds::Loads;
use crate::servers::Kind;

/// A figure of a load, and which ratio beside the peer is good enough.
struct Figure {
    name: &'static str,
    of: fn(&Load) -> f64,
    bar: Bar,
}

#[derive(Clone, Copy)]
enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

const FIGURES: [Figure; 3] = [
    Figure {
        name: "processor time a request, µs",
        of: |load| load.processor,
        bar: Bar::AtMost(1.2),
    },
    Figure {
        name: "requests a second",
        of: |load| load.rate,
        bar: Bar::AtLeast(0.95),
    },
    Figure {
        name: "p99, µs",
        of: |load| load.p99,
        bar: Bar::AtMost(1.1),
    },
];

/// The most bytes of an idle connection.
const MEMORY: f64 = 20.0 * 1024.0;

/// Prints the table. A ratio is the median of the ratios of all rounds.
pub fn print(loads: &Loads, idles: &[(Kind, Idle)]) {
    println!("| figure | server | median | range | ratio | bar | met |");
    println!("|---|---|---:|---:|---:|---:|---|");
    for figure in &FIGURES {
        for (kind, of_kind) in loads {
            let figures: Vec<f64> = of_kind.iter().map(figure.of).collect();
            let peer = loads.iter().find(|(other, _)| *other == kind.peer());
            let of_peer = peer.into_iter().flat_map(|(_, loads)| loads).map(figure.of);
            let ratios = figures.iter().zip(of_peer).map(|(own, peer)| own / peer);
            let judged = judged(*kind, figure.bar, median(ratios.collect()));
            row(figure.name, *kind, &figures, &judged);
        }
    }
    for (kind, idle) in idles {
        let judged = |is_met| judgement("", "20 KiB", is_met, *kind);
        let live = judged(idle.live <= MEMORY);
        row("live bytes an idle connection", *kind, &[idle.live], &live);
        let resident = judgement("", "", true, Kind::Tokio);
        let name = "resident bytes an idle connection";
        row(name, *kind, &[idle.resident], &resident);
        let switches = judgement("", "0", idle.switches == 0, *kind);
        let name = "context switches in 5 s, idle";
        row(name, *kind, &[idle.switches as f64], &switches);
    }
}

fn row(name: &str, kind: Kind, figures: &[f64], judged: &str) {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(0.0, f64::max);
    let digits = if most < 1000.0 && most.fract() != 0.0 {
        1
    } else {
        0
    };
    let range = match figures.len() {
        1 => String::new(),
        _ => format!("{least:.digits$} to {most:.digits$}"),
    };
    let median = median(figures.to_vec());
    let kind = kind.name();
    println!("| {name} | {kind} | {median:.digits$} | {range} | {judged} |");
}

fn judged(kind: Kind, bar: Bar, ratio: f64) -> String {
    let (text, is_met) = match bar {
        Bar::AtMost(most) => (format!("≤ {most}"), ratio <= most),
        Bar::AtLeast(least) => (format!("≥ {least}"), ratio >= least),
    };
    judgement(&format!("{ratio:.2}"), &text, is_met, kind)
}

/// Returns the last three cells of a row. Peers have no bar, nor has a server without the driver.
fn judgement(ratio: &str, bar: &str, is_met: bool, kind: Kind) -> String {
    if kind == kind.peer() || kind == Kind::Undriven {
        return format!("{ratio} |  | ");
    }
    let is_met = if is_met { "yes" } else { "no" };
    format!("{ratio} | {bar} | {is_met}")
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
