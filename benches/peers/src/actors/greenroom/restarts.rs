//! Actors that are restarted, or would be, on greenroom.

use std::panic::panic_any;
use std::time::{Duration, Instant};

use greenroom::supervise::Restarts;
use greenroom::{AskError, Context, Reply, spawn};
use peers::machine::median;

use super::{count, play, player, tally};
use crate::actors::{INTENDED, silence_intended};
use crate::figures::{self, Figure, check, rate};
use crate::sizes;

enum Call {
    Fail(Reply<()>),
    Restarts(Reply<u64>),
}

/// Panics at every call but the last one.
async fn fragile(mut cx: Context<Call>) {
    while let Some(call) = cx.recv().await {
        match call {
            Call::Fail(_reply) => panic_any(INTENDED),
            Call::Restarts(reply) => reply.send(cx.incarnation_number()),
        }
    }
}

/// Runs the case `restarts`.
pub async fn restarts() -> Vec<Figure> {
    silence_intended();
    let restarts = Restarts::on_fault().intensity(u32::MAX, Duration::from_secs(1));
    let actor = spawn!(fragile(_), restart = restarts);
    let begin = Instant::now();
    for _ in 0..sizes::RESTARTS {
        let answer = actor.ask(Call::Fail).await;
        assert!(matches!(answer, Err(AskError::NoReply(_))), "it panics");
    }
    let restarts = actor.ask(Call::Restarts).await.expect("it answers");
    check("restarts", restarts, sizes::RESTARTS);
    vec![rate(figures::RESTARTS, sizes::RESTARTS, begin)]
}

/// The rates of actors that would be restarted, and of plain ones.
#[derive(Default)]
struct Rates {
    restartable: Vec<f64>,
    plain: Vec<f64>,
}

impl Rates {
    /// Returns the median for actors that would be restarted, and its quotient by the other one.
    fn figures(&self, what: &'static str, beside: &'static str) -> [Figure; 2] {
        let median = |rates| median(rates).expect("there are several").middle;
        let (value, plain) = (median(&self.restartable), median(&self.plain));
        [(what, value), (beside, value / plain)].map(|(what, value)| Figure { what, value })
    }
}

/// Runs the case `restartable`: both kinds of actors take turns in one process.
pub async fn restartable() -> Vec<Figure> {
    let (mut trips, mut messages) = (Rates::default(), Rates::default());
    for _ in 0..sizes::LAPS {
        let plain = (spawn!(player(_)), spawn!(player(_)));
        let lap = play(plain, sizes::LAP_ROUND_TRIPS).await;
        trips.plain.push(lap.value);
        let one = spawn!(player(_), restart = Restarts::on_fault());
        let two = spawn!(player(_), restart = Restarts::on_fault());
        let lap = play((one, two), sizes::LAP_ROUND_TRIPS).await;
        trips.restartable.push(lap.value);
    }
    for _ in 0..sizes::LAPS {
        let lap = count(spawn!(tally(_)), sizes::LAP_NUMBERS).await;
        messages.plain.push(lap.value);
        let actor = spawn!(tally(_), restart = Restarts::on_fault());
        let lap = count(actor, sizes::LAP_NUMBERS).await;
        messages.restartable.push(lap.value);
    }
    let trips = trips.figures(figures::ROUND_TRIPS, figures::TRIPS_KEPT);
    let messages = messages.figures(figures::MESSAGES, figures::MESSAGES_KEPT);
    [trips, messages].concat()
}
