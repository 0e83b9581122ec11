//! The tables of the results: medians with ranges, and the bars.

use crate::kinds::Kind;
use crate::rounds::Measured;

const ROWS: [&str; 16] = [
    "ask p50, µs",
    "64 askers, asks a second",
    "sent messages handled a second",
    "handled of the sent messages, %",
    "peak memory of a flooding sender, MiB",
    "peak memory of its server, MiB",
    "handled of the flood, %",
    "threads beside main and workers",
    "context switches in 5 s, idle server",
    "context switches in 5 s, idle client",
    "loss noticed after kill -9, ms",
    "loss noticed after SIGSTOP, ms",
    "answer after SIGCONT, ms",
    "close beside a stopped server, ms",
    "crates",
    "memory of a node, KiB",
];

enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// Each number, and not only the median.
    AllAtMost(f64),
}
use Limit::{AllAtMost, AtLeast, AtMost};

/// The bars: a row, beside which system, and which number or ratio is good enough.
const BARS: [(&str, Option<Kind>, Limit); 14] = [
    ("ask p50, µs", Some(Kind::Kameo), AtMost(0.8)),
    ("ask p50, µs", Some(Kind::Ractor), AtMost(1.3)),
    ("ask p50, µs", Some(Kind::Ping), AtMost(3.0)),
    ("64 askers, asks a second", Some(Kind::Kameo), AtLeast(5.0)),
    ("64 askers, asks a second", Some(Kind::Ractor), AtLeast(1.1)),
    (
        "sent messages handled a second",
        Some(Kind::Ractor),
        AtLeast(2.5),
    ),
    ("handled of the sent messages, %", None, AtLeast(100.0)),
    ("peak memory of a flooding sender, MiB", None, AtMost(64.0)),
    ("threads beside main and workers", None, AtMost(8.0)),
    ("loss noticed after kill -9, ms", None, AllAtMost(50.0)),
    // 1.5 times the lease of 5 s, and 50 ms until the thread is awake and the client has said so.
    ("loss noticed after SIGSTOP, ms", None, AtMost(7550.0)),
    ("answer after SIGCONT, ms", None, AtMost(5000.0)),
    ("close beside a stopped server, ms", None, AtMost(1000.0)),
    ("crates", None, AtMost(260.0)),
];

/// The bars of nodes at a NATS server, beside bare clients at the same settings, and alone.
const NATS_BARS: [(&str, bool, Limit); 10] = [
    ("ask p50, µs", true, AtMost(1.3)),
    ("64 askers, asks a second", true, AtLeast(1.0)),
    ("sent messages handled a second", true, AtLeast(1.0)),
    ("handled of the sent messages, %", false, AtLeast(100.0)),
    ("peak memory of a flooding sender, MiB", false, AtMost(64.0)),
    ("peak memory of its server, MiB", false, AtMost(64.0)),
    ("handled of the flood, %", false, AtLeast(100.0)),
    ("loss noticed after kill -9, ms", false, AllAtMost(50.0)),
    ("crates", false, AtMost(130.0)),
    ("memory of a node, KiB", false, AtMost(256.0)),
];

/// The bars of nodes at two of three NATS servers, beside nodes at one, and alone: all takes at most
/// 1.5 times as long, so the rates are at least two thirds.
const THREE_BARS: [(&str, &str, bool, Limit); 4] = [
    (
        "ask p50, µs",
        "ask p50 at three servers, µs",
        true,
        AtMost(1.5),
    ),
    (
        "64 askers, asks a second",
        "64 askers at three servers, asks a second",
        true,
        AtLeast(0.67),
    ),
    (
        "sent messages handled a second",
        "messages sent over three servers, handled a second",
        true,
        AtLeast(0.67),
    ),
    (
        "handled of the sent messages, %",
        "handled of those, %",
        false,
        AtLeast(100.0),
    ),
];

/// Returns the number of the row with this name.
pub fn row(name: &str) -> usize {
    ROWS.iter()
        .position(|row| *row == name)
        .unwrap_or(usize::MAX)
}

/// Prints all numbers, and then the bars. A ratio is the median of the ratios of all rounds.
pub fn print(all: &[Measured]) {
    println!("| figure | {} |", Kind::ALL.map(Kind::name).join(" | "));
    println!("|---|{}", "---:|".repeat(Kind::ALL.len()));
    for (row, name) in ROWS.iter().enumerate() {
        let cells = Kind::ALL.map(|kind| cell(all, row, kind));
        println!("| {name} | {} |", cells.join(" | "));
    }
    print_bars_head(["greenroom", "greenroom-tls"]);
    for (name, beside, limit) in &BARS {
        print_bar(name, beside.map_or("", Kind::name), limit);
        for kind in [Kind::Greenroom, Kind::GreenroomTls] {
            print_met(all, row(name), kind, *beside, limit);
        }
        println!();
    }
    print_bars_head(["greenroom-nats", "greenroom-nats-tls"]);
    for (name, is_beside, limit) in &NATS_BARS {
        print_bar(name, if *is_beside { "async-nats" } else { "" }, limit);
        let pairs = [
            (Kind::GreenroomNats, Kind::AsyncNats),
            (Kind::GreenroomNatsTls, Kind::AsyncNatsTls),
        ];
        for (kind, beside) in pairs {
            print_met(all, row(name), kind, is_beside.then_some(beside), limit);
        }
        println!();
    }
    print_three_bars(all);
}

/// Prints the bars at three servers into the table of those at one.
fn print_three_bars(all: &[Measured]) {
    let (three, one) = (Kind::GreenroomNatsThree, Kind::GreenroomNats);
    for (name, text, is_beside, limit) in &THREE_BARS {
        let beside = is_beside.then_some(one);
        print_bar(text, beside.map_or("", Kind::name), limit);
        print_met(all, row(name), three, beside, limit);
        println!(" | |");
    }
}

fn print_bars_head([one, other]: [&str; 2]) {
    println!("\n| bar | beside | limit | {one} | met | {other} | met |");
    println!("|---|---|---:|---:|---|---:|---|");
}

fn print_bar(name: &str, beside: &str, limit: &Limit) {
    let (sign, number) = match limit {
        AtMost(number) => ("≤", number),
        AtLeast(number) => ("≥", number),
        AllAtMost(number) => ("all ≤", number),
    };
    print!("| {name} | {beside} | {sign} {number} |");
}

/// Prints a number or a ratio, and whether it meets the limit. Nothing was measured without a server.
fn print_met(all: &[Measured], row: usize, kind: Kind, beside: Option<Kind>, limit: &Limit) {
    let own = numbers(all, row, kind);
    let ratios: Vec<f64> = match beside {
        None => own.iter().map(|(_, number)| *number).collect(),
        Some(beside) => {
            let peers = numbers(all, row, beside);
            let pairs = own.iter().zip(&peers).filter(|(own, peer)| own.0 == peer.0);
            pairs.map(|(own, peer)| own.1 / peer.1).collect()
        }
    };
    let range = range(&ratios);
    let is_met = match (ratios.is_empty(), limit) {
        (true, _) => "",
        (_, AtMost(most)) if median(ratios.clone()) <= *most => "yes",
        (_, AllAtMost(most)) if ratios.iter().all(|ratio| ratio <= most) => "yes",
        (_, AtLeast(least)) if median(ratios.clone()) >= *least => "yes",
        _ => "no",
    };
    print!(" {range} | {is_met} |");
}

/// Returns rounds and numbers of a system.
fn numbers(all: &[Measured], row: usize, kind: Kind) -> Vec<(usize, f64)> {
    let of = all.iter().filter(|it| it.row == row && it.kind == kind);
    of.map(|it| (it.round, it.number)).collect()
}

fn cell(all: &[Measured], row: usize, kind: Kind) -> String {
    let numbers: Vec<f64> = numbers(all, row, kind).into_iter().map(|it| it.1).collect();
    range(&numbers)
}

/// Returns the median, with the least and the greatest number if they differ.
fn range(numbers: &[f64]) -> String {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    match numbers.len() {
        0 => String::new(),
        _ if least == most => text(least),
        _ => format!(
            "{} ({} to {})",
            text(median(numbers.to_vec())),
            text(least),
            text(most)
        ),
    }
}

fn text(number: f64) -> String {
    match number {
        number if number.fract() == 0.0 || number >= 1000.0 => format!("{number:.0}"),
        number if number < 10.0 => format!("{number:.2}"),
        number => format!("{number:.1}"),
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
