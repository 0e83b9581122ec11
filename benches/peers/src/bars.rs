//! The goals that greenroom has to reach, and whether it does.

use crate::cases::Case;
use crate::figures::{
    ACTORS, ALL_SLEPT, ASKS, AWAITED, BESIDE_ASKS, BESIDE_FEW, BESIDE_ONE, CALL, CALL_OF_MANY,
    CALL_OF_ONE, CALL_OF_WINDOW, CYCLE, EXCLUSIVE_BESIDE_ONE, HOPS, JOB, JOB_OF_1, KEPT, LOOKUP,
    LOOKUP_OF_ONE, LOOPED, MEETINGS, MEMBER, MESSAGES, MESSAGES_KEPT, MILLION, OF_BOUND, P50, P99,
    P999, PEAK, REFUSAL, REQUEST, REQUEST_ALONE, RESIDENT, RESTARTS, ROUND_TRIPS, ROUSED,
    SHARED_BESIDE_ONE, SPEED_UP, SWITCHES, TASK, THREADS_AFTER, TREE, TRIPS_KEPT, WORST, YIELD,
};

/// The goal for a figure.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    /// This many times as good as the best of these peers in the same run.
    Times(f64, &'static [&'static str]),
    /// Better than all of these peers in the same run.
    Ahead(&'static [&'static str]),
    /// At most this, whatever the peers reach.
    AtMost(f64),
    /// At least this, whatever the peers reach.
    AtLeast(f64),
    /// All of these.
    All(&'static [Bar]),
}

/// The peers with actors; in cases without actors, the column `smol` is async-executor.
const ACTING: &[&str] = &["tokio", "smol", "actix", "ractor", "kameo", "xtra", "acto"];
/// The executors that are commonly used on their own.
const EXECUTORS: &[&str] = &["tokio", "smol"];
/// All peers that run plain tasks.
const ALL: &[&str] = &["tokio", "smol", "smolscale", "nexosim", "rayon"];
/// The peers that call SQLite.
const WITH_SQLITE: &[&str] = &["tokio-rusqlite", "async-sqlite"];
/// The peers with pools of actors.
const POOLS: &[&str] = &["ractor", "kameo"];
/// The goals for many requests in flight.
const IN_FLIGHT: Bar = Bar::All(&[Bar::Times(1.0, &["tokio"]), Bar::Times(2.0, &["kameo"])]);
/// The goals for loopers. Spawned tasks do not keep the order of a looper, the others do.
const LOOPERS: Bar = Bar::All(&[Bar::Times(1.5, &["tokio"]), Bar::Ahead(&["tokio-mpsc"])]);
/// As good as another peer, within the difference between two runs.
const AS: f64 = 0.95;
/// Within a tenth of another peer.
const NEAR: f64 = 0.9;
/// As good as another peer to 3 %.
const CLOSE: f64 = 0.97;

/// Returns the goal for this figure of this case, if there is one.
pub fn bar(case: Case, figure: &str) -> Option<Bar> {
    let times = |times, peers| Some(Bar::Times(times, peers));
    match (case, figure) {
        (Case::Spawn, ACTORS) => times(4.0, &["tokio"]),
        (Case::Spawn, PEAK) => Some(Bar::AtMost(240.0)),
        (Case::IdleMemory, RESIDENT) => Some(Bar::AtMost(160.0)),
        (Case::PingPong, ROUND_TRIPS) => times(3.0, &["tokio"]),
        (Case::Ask, ASKS) | (Case::Counting | Case::FanIn, MESSAGES) => times(2.0, ACTING),
        (Case::Answers, REQUEST | REQUEST_ALONE) => Some(IN_FLIGHT),
        (Case::Lookup, LOOKUP | LOOKUP_OF_ONE) => times(2.0, &["ractor", "kameo"]),
        (Case::Ring, HOPS) => times(2.5, ACTING),
        (Case::RingTokens, HOPS) => times(1.3, &["tokio"]),
        (Case::Meetings, MEETINGS) => times(1.6, &["tokio"]),
        (Case::Meetings, WORST) => Some(Bar::AtLeast(0.7)),
        (Case::Fib, ACTORS) => times(3.0, ACTING),
        (Case::Bounded, MESSAGES) => times(1.5, ACTING),
        (Case::Restarts, RESTARTS) => times(1.5, &["kameo"]),
        (Case::Restartable, TRIPS_KEPT | MESSAGES_KEPT) => Some(Bar::AtLeast(AS)),
        // ractor's factory and kameo's pool, see README.md.
        (Case::Pool, JOB) => times(4.0, POOLS),
        (Case::Pool, JOB_OF_1) => times(1.6, POOLS),
        (Case::Pool, BESIDE_ASKS) => Some(Bar::AtLeast(0.4)),
        (Case::PoolRefusing, REFUSAL) => times(4.0, POOLS),
        // At most 1.1 times their time.
        (Case::PoolPaced, P99) => times(0.91, POOLS),
        (Case::Looper(_), LOOPED) => Some(LOOPERS),
        (Case::LooperPriorities, BESIDE_ONE | SHARED_BESIDE_ONE | EXCLUSIVE_BESIDE_ONE) => {
            Some(Bar::AtLeast(NEAR))
        }
        (Case::LooperLanes, BESIDE_FEW) => Some(Bar::AtMost(1.5)),
        (Case::LooperWorld, OF_BOUND) => Some(Bar::AtMost(1.0)),
        (Case::PacedLatency, P99) => Some(Bar::AtMost(100.0)),
        (Case::PacedLatency, CYCLE) => Some(Bar::AtMost(1.2)),
        (Case::MixedLatency, P50) => times(AS, &["tokio", "acto"]),
        // At most twice the time of tokio.
        (Case::MixedLatency, P99) => times(0.5, &["tokio"]),
        (Case::MixedLatency, P999) => times(1.0, &["tokio"]),
        (Case::MixedLatency, KEPT) => Some(Bar::AtLeast(0.8)),
        // At p99 a task injected under full load starts within a millisecond.
        (Case::Injected, P99) => Some(Bar::AtMost(1000.0)),
        (Case::Idle | Case::Sqlite, SWITCHES) => Some(Bar::AtMost(0.0)),
        (Case::TaskYield, YIELD) => times(0.67, ALL),
        (Case::TaskSpawn, AWAITED | MILLION)
        | (Case::TaskRecursive, TREE)
        | (Case::TaskBytes, TASK) => Some(Bar::Ahead(EXECUTORS)),
        (Case::TaskSet, TREE) => times(1.5, &["tokio"]),
        (Case::Unblock, CALL) => times(AS, EXECUTORS),
        (Case::UnblockWindows, CALL_OF_WINDOW) => times(5.0, EXECUTORS),
        (Case::UnblockWindows, THREADS_AFTER) => Some(Bar::AtMost(16.0)),
        (Case::UnblockSleeping, ALL_SLEPT) => Some(Bar::Ahead(EXECUTORS)),
        (Case::OutsideWake, P50) | (Case::Steal, SPEED_UP) => times(NEAR, ALL),
        (Case::Unequal, SPEED_UP) => times(CLOSE, ALL),
        (Case::OutsideWake, ROUSED) => Some(Bar::AtMost(1.0)),
        // The time of a call beyond the statement is at most two thirds of theirs.
        (Case::Sqlite, CALL_OF_MANY) => times(1.5, WITH_SQLITE),
        (Case::Sqlite, CALL_OF_ONE) => times(AS, WITH_SQLITE),
        (Case::BurstsOne | Case::BurstsMany | Case::Message1K | Case::Message64K, MESSAGES)
        | (Case::ManyWorkers, HOPS)
        | (Case::Scatter | Case::Gather, MEMBER)
        | (Case::AsksSkewed, ASKS) => times(NEAR, ACTING),
        (Case::Topic, MEMBER) => times(1.0, &["tokio"]),
        _ => None,
    }
}

impl Bar {
    /// Returns the goal, and whether it is met. `own` is greenroom's median; `beside` returns how
    /// many times as good it is as a peer's, if the peer has one.
    pub fn verdict(self, own: f64, beside: impl Fn(&str) -> Option<f64> + Copy) -> String {
        let least = |peers: &[&str]| {
            let ratios = peers.iter().filter_map(|peer| beside(peer));
            ratios.min_by(f64::total_cmp)
        };
        let said = |met| if met { "met" } else { "MISSED" };
        let whom = |peers: &[&str]| match peers.len() {
            ..=2 => peers.join(", "),
            _ => "the best".to_owned(),
        };
        match self {
            Self::All(bars) => {
                let verdicts = bars.iter().map(|bar| bar.verdict(own, beside));
                verdicts.collect::<Vec<_>>().join("; ")
            }
            Self::AtLeast(least) => format!("≥ {least}: {}", said(own >= least)),
            Self::AtMost(most) => format!("≤ {most}: {}", said(own <= most)),
            Self::Times(times, peers) => {
                let bar = format!("≥ {times} × {}", whom(peers));
                least(peers).map_or_else(
                    || format!("{bar}: not run"),
                    |ratio| format!("{bar}: {ratio:.2}, {}", said(ratio >= times)),
                )
            }
            Self::Ahead(peers) => {
                let bar = format!("> {}", whom(peers));
                least(peers).map_or_else(
                    || format!("{bar}: not run"),
                    |ratio| format!("{bar}: {ratio:.2}, {}", said(ratio > 1.0)),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_of_two_peers_counts_the_better_one() {
        let beside = |peer: &str| Some(if peer == "tokio" { 1.5 } else { 0.9 });
        let verdict = Bar::Ahead(EXECUTORS).verdict(1.0, beside);
        assert_eq!(verdict, "> tokio, smol: 0.90, MISSED");
        let verdict = Bar::Times(1.4, &["tokio"]).verdict(1.0, beside);
        assert_eq!(verdict, "≥ 1.4 × tokio: 1.50, met");
    }

    #[test]
    fn a_bar_without_peers_counts_the_figure_itself() {
        let verdicts = [0.8, 0.7].map(|own| Bar::AtLeast(0.8).verdict(own, |_| None));
        assert_eq!(verdicts, ["≥ 0.8: met", "≥ 0.8: MISSED"]);
        let verdicts = [0.8, 0.9].map(|own| Bar::AtMost(0.8).verdict(own, |_| None));
        assert_eq!(verdicts, ["≤ 0.8: met", "≤ 0.8: MISSED"]);
    }

    #[test]
    fn several_bars_have_a_verdict_each() {
        let beside = |peer: &str| Some(if peer == "tokio" { 0.9 } else { 2.5 });
        let verdict = IN_FLIGHT.verdict(1.0, beside);
        let expected = "≥ 1 × tokio: 0.90, MISSED; ≥ 2 × kameo: 2.50, met";
        assert_eq!(verdict, expected);
    }

    #[test]
    fn a_peer_without_a_figure_is_no_bar() {
        let beside = |peer: &str| (peer == "smol").then_some(2.0);
        let verdict = Bar::Ahead(EXECUTORS).verdict(1.0, beside);
        assert_eq!(verdict, "> tokio, smol: 2.00, met");
        let verdict = Bar::Ahead(&["tokio"]).verdict(1.0, beside);
        assert_eq!(verdict, "> tokio: not run");
    }
}
