//! The table of the results: medians, ratios beside the peer, and their bars.

use crate::idle::Idle;
use crate::load::Load;
use crate::rounds::Pair;
use crate::servers::Kind;

/// A figure of a load, of which more is better once it is turned.
struct Figure {
    name: &'static str,
    of: fn(&Load) -> f64,
    bar: Bar,
}

#[derive(Clone, Copy)]
enum Bar {
    /// The peer's figure or more, within the spread of the peer.
    NotLess,
    NotMore,
    /// So many times the peer's figure.
    AtMost(f64),
    AtLeast(f64),
}

const FIGURES: [Figure; 3] = [
    Figure {
        name: "requests a second",
        of: |load| load.rate,
        bar: Bar::NotLess,
    },
    Figure {
        name: "processor time a request, µs",
        of: |load| load.processor,
        bar: Bar::NotMore,
    },
    Figure {
        name: "p99, µs",
        of: |load| load.p99,
        bar: Bar::AtMost(1.1),
    },
];

/// The least part of the requests of hyper that a page answers. Nothing is checked there.
const PAGE: f64 = 0.85;
/// The most resident bytes of an idle connection.
const MEMORY: f64 = 13.0 * 1024.0;

/// Prints the medians of each pair, and the median of the ratios of all rounds. A bar of 1 is met
/// within the spread of the peer: the ratio of the greater to the lesser of its figures in a round.
pub fn print_loads(pairs: &[Pair]) {
    println!(
        "| figure | server | median | peer | median | ratio | spread of the peer | bar | met |"
    );
    println!("|---|---|---:|---|---:|---:|---:|---:|---|");
    for figure in &FIGURES {
        for pair in pairs {
            let of = |loads: &[Load]| loads.iter().map(figure.of).collect::<Vec<f64>>();
            let [own, peer, again] = [&pair.own_loads, &pair.peer_loads, &pair.peer_again];
            let (own, peer, again) = (of(own), of(peer), of(again));
            let peers = || peer.iter().zip(&again);
            let ratios = own
                .iter()
                .zip(peers())
                .map(|(own, (a, b))| 2.0 * own / (a + b));
            let ratio = median(ratios.collect());
            let spreads = peers().map(|(a, b)| a.max(*b) / a.min(*b));
            let spread = median(spreads.collect());
            let peer = [peer, again].concat();
            let (bar, is_met) = judged(pair.own, figure.bar, ratio, spread);
            let [own, peer] = [own, peer].map(|figures| number(median(figures)));
            println!(
                "| {} | {} | {own} | {} | {peer} | {ratio:.2} | {spread:.2} | {bar} | {is_met} |",
                figure.name,
                pair.own.name(),
                pair.peer.name(),
            );
        }
    }
}

/// Prints what connections cost that are idle.
pub fn print_idles(idles: &[(Kind, Idle)]) {
    println!();
    println!("| of 1000 idle connections | server | figure | bar |");
    println!("|---|---|---:|---:|");
    for (kind, idle) in idles {
        let name = kind.name();
        println!(
            "| resident bytes each | {name} | {} | ≤ {MEMORY} |",
            idle.resident
        );
        println!("| live bytes each | {name} | {} | |", idle.live);
        println!(
            "| context switches in 5 s | {name} | {} | 0 |",
            idle.switches
        );
    }
}

fn judged(kind: Kind, bar: Bar, ratio: f64, spread: f64) -> (String, &'static str) {
    let bar = match (kind, bar) {
        (Kind::Page, Bar::NotLess) => Bar::AtLeast(PAGE),
        // What checks nothing needs less time.
        (Kind::Page, _) => return (String::new(), ""),
        (_, bar) => bar,
    };
    let (text, is_met) = match bar {
        Bar::NotLess => ("≥ 1".to_owned(), ratio * spread >= 1.0),
        Bar::NotMore => ("≤ 1".to_owned(), ratio <= spread),
        Bar::AtMost(most) => (format!("≤ {most}"), ratio <= most),
        Bar::AtLeast(least) => (format!("≥ {least}"), ratio >= least),
    };
    (text, if is_met { "yes" } else { "no" })
}

fn number(figure: f64) -> String {
    match figure < 1000.0 {
        true => format!("{figure:.2}"),
        false => format!("{figure:.0}"),
    }
}

pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
