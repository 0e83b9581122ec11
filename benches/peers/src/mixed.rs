//! The client of `mixed_latency`, which asks one question after the other beside busy actors.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::cases::Case;
use crate::figures::{self, Figure, check, detailed};
use crate::load::{Control, Gaps, Load};
use crate::sizes::{ALONE, LONG_ASK, MIXED, SETTLE};

/// The time from just before an ask is sent to its reply.
type Ask = Range<Instant>;

/// Measures the figures of `mixed_latency`, or of its variant with a control: `sleep` pauses the
/// client, `ask` asks the echo actor.
pub async fn mixed<S, A>(
    case: Case,
    load: Load,
    sleep: impl Fn(Duration) -> S,
    ask: impl Fn(u64) -> A,
) -> Vec<Figure>
where
    S: Future,
    A: Future<Output = u64>,
{
    sleep(SETTLE).await;
    if case == Case::MixedControl {
        let control = Control::start();
        let asks = asks(ask).await;
        return controlled(&asks, &control.end(), load.gaps());
    }
    // Alone before and after, because the machine's speed may drift.
    let (_, before) = load.during(sleep(ALONE)).await;
    let (asks, beside) = load.during(asks(ask)).await;
    let (_, after) = load.during(sleep(ALONE)).await;
    let mut figures = detailed(asks.iter().map(length).collect());
    figures.extend([
        figure(figures::BUSY_TURNS, beside),
        figure(figures::KEPT, 2.0 * beside / (before + after)),
    ]);
    figures.extend(unexplained(&asks, |ask| load.gaps().meet(ask)));
    figures
}

async fn asks<A: Future<Output = u64>>(ask: impl Fn(u64) -> A) -> Vec<Ask> {
    let mut asks = Vec::with_capacity(MIXED as usize);
    for n in 0..MIXED {
        let asked = Instant::now();
        check("echo", ask(n).await, n);
        asks.push(asked..Instant::now());
    }
    asks
}

/// Counts the long asks that neither the control nor the busy actors explain by a gap.
fn controlled(asks: &[Ask], control: &Gaps, workers: &Gaps) -> Vec<Figure> {
    let mut figures = unexplained(asks, |ask| control.meet(ask)).to_vec();
    let neither = long(asks).filter(|ask| !control.meet(ask) && !workers.meet(ask));
    figures.push(figure(figures::UNSEEN_BY_BOTH, neither.count() as f64));
    figures
}

/// Returns the number of long asks, the number of those outside all gaps, and the longest ask
/// outside.
fn unexplained(asks: &[Ask], in_gap: impl Fn(&Ask) -> bool) -> [Figure; 3] {
    let unseen = long(asks).filter(|ask| !in_gap(ask)).count();
    let outside = asks.iter().filter(|ask| !in_gap(ask));
    let longest = outside.map(length).max().unwrap_or_default();
    [
        figure(figures::LONG_ASKS, long(asks).count() as f64),
        figure(figures::UNSEEN, unseen as f64),
        figure(figures::LONGEST_UNSEEN, longest.as_secs_f64() * 1e6),
    ]
}

fn long(asks: &[Ask]) -> impl Iterator<Item = &Ask> {
    asks.iter().filter(|ask| length(ask) > LONG_ASK)
}

fn length(ask: &Ask) -> Duration {
    ask.end - ask.start
}

fn figure(what: &'static str, value: f64) -> Figure {
    Figure { what, value }
}
