//! Tests of which phase precedes which attempt.

use super::Polling;
use super::PollingPhase::{self, Aggressive, Moderate, Relaxed};

fn phases(polling: Polling, attempts: std::ops::Range<u32>) -> Vec<PollingPhase> {
    attempts.map(|attempt| polling.phase(attempt)).collect()
}

fn steals(phases: &[PollingPhase]) -> usize {
    let steals = |phase: &&PollingPhase| {
        let (Aggressive { steals } | Moderate { steals } | Relaxed { steals }) = phase;
        *steals
    };
    phases.iter().filter(steals).count()
}

#[test]
fn aggressive_phase_steals_in_every_tenth_of_100_attempts() {
    let phases = phases(Polling::default(), 1..101);
    assert!(
        phases
            .iter()
            .all(|phase| matches!(phase, Aggressive { .. }))
    );
    assert_eq!(steals(&phases), 10);
    assert_eq!(phases[9], Aggressive { steals: true });
}

#[test]
fn moderate_phase_steals_in_every_fifth_of_500_attempts() {
    let phases = phases(Polling::default(), 101..601);
    assert!(phases.iter().all(|phase| matches!(phase, Moderate { .. })));
    assert_eq!(steals(&phases), 100);
    assert_eq!(phases[4], Moderate { steals: true });
}

#[test]
fn relaxed_phase_never_ends_and_steals_in_every_attempt() {
    let polling = Polling::default();
    for attempts in [601..2000, u32::MAX - 10..u32::MAX] {
        let phases = phases(polling, attempts);
        assert!(
            phases
                .iter()
                .all(|phase| *phase == Relaxed { steals: true })
        );
    }
}

#[test]
fn custom_attempts_and_steal_intervals_take_effect() {
    let polling = Polling {
        aggressive_attempts: 4,
        aggressive_steal_interval: 2,
        moderate_attempts: 3,
        moderate_steal_interval: 1,
        relaxed_steal_interval: 3,
        ..Polling::default()
    };
    let (aggressive, moderate, relaxed) = (
        |steals| Aggressive { steals },
        |steals| Moderate { steals },
        |steals| Relaxed { steals },
    );
    let expected = [
        [false, true, false, true].map(aggressive).into_iter(),
        [true; 4].map(moderate).into_iter(),
        [false, false, true, false].map(relaxed).into_iter(),
    ];
    let expected: Vec<_> = expected.into_iter().flatten().collect();
    let (before, after) = expected.split_at(7);
    assert_eq!(phases(polling, 1..8), before);
    assert_eq!(phases(polling, 8..12), after[1..]);
    let none = Polling {
        aggressive_attempts: 0,
        moderate_attempts: 0,
        ..Polling::default()
    };
    assert_eq!(none.phase(1), Relaxed { steals: true });
}
