//! The hunt for a bug: runs a program with one seed after the other until a run fails.
//!
//! A program is a function from its version to a future. Some bugs panic with a text that begins
//! with "zoo:"; such panics print nothing.

use std::future::Future;
use std::sync::Once;

use greenroom::policy::Simulated;
use greenroom::sim::{Failure, Run, RunProblem};

/// A bug must be found within this many seeds.
pub const SEEDS: u64 = 1000;
/// The same for a race within a turn.
const SEEDS_WITHIN_A_TURN: u64 = 200;
/// A hunt from another start may take this many seeds.
const SEEDS_MOST: u64 = 10 * SEEDS;
/// The fixed program must survive this many seeds: ten times as many in release mode, where a run
/// takes a tenth of the time.
const MENDED_SEEDS: u64 = if cfg!(debug_assertions) {
    SEEDS
} else {
    10 * SEEDS
};
/// The number of other starts of a hunt; each is `APART` from the last one.
const STARTS: u64 = if cfg!(debug_assertions) { 5 } else { 20 };
const APART: u64 = 0x9e37_79b9_7f4a_7c15;
/// A bug counts as hidden if fewer than this many of 100 seeds reveal it.
const SHOWN_MOST: usize = 50;

/// The version of a program.
#[derive(Clone, Copy, PartialEq)]
pub enum Version {
    /// With its bug.
    Buggy,
    Mended,
}

/// A program, as a function of its version.
pub type Program<F> = fn(Version) -> F;

pub fn run<F: Future>(
    program: Program<F>,
    version: Version,
    seed: u64,
) -> Result<Run<F::Output>, Failure> {
    keep_bugs_quiet();
    Simulated::new(seed).try_run(program(version))
}

/// Returns the first failure from the seed `start` on, and the number of seeds that were tried.
fn hunt<F: Future>(program: Program<F>, start: u64, most: u64) -> Option<(Failure, u64)> {
    (0..most).find_map(|tried| {
        let failure = run(program, Version::Buggy, start.wrapping_add(tried)).err()?;
        Some((failure, tried + 1))
    })
}

/// Defines the tests of a program; the last argument recognises the problem that its bug causes.
macro_rules! hunts {
    ($program:ident, $is_the_bug:expr) => {
        #[test]
        fn bug_is_found_within_a_thousand_seeds_and_repeats_exactly() {
            crate::hunt::from_zero($program, $is_the_bug);
        }

        #[test]
        fn bug_is_found_within_a_thousand_seeds_from_every_start() {
            crate::hunt::from_elsewhere($program, $is_the_bug);
        }

        #[test]
        fn most_seeds_do_not_reveal_the_bug() {
            crate::hunt::seldom($program);
        }

        #[test]
        fn fixed_program_survives_all_seeds() {
            crate::hunt::mended($program);
        }
    };
}
pub(crate) use hunts;

/// Defines the tests of a program whose bug is a race within one turn.
macro_rules! hunts_within_a_turn {
    ($program:ident, $is_the_bug:expr) => {
        crate::hunt::hunts!($program, $is_the_bug);

        #[test]
        fn whole_turns_do_not_reveal_the_bug() {
            crate::hunt::not_with_whole_turns($program);
        }

        #[test]
        fn bug_is_found_within_two_hundred_seeds_from_most_starts() {
            crate::hunt::soon($program);
        }
    };
}
pub(crate) use hunts_within_a_turn;

pub fn from_zero<F: Future>(program: Program<F>, is_the_bug: fn(&RunProblem) -> bool) {
    let Some((failure, _)) = hunt(program, 0, SEEDS) else {
        panic!("no seed below {SEEDS} finds it")
    };
    assert!(is_the_bug(failure.problem()), "{failure}");
    let Err(again) = run(program, Version::Buggy, failure.seed()) else {
        panic!("the second time it did not fail: {failure}")
    };
    assert_eq!(again.problem(), failure.problem());
    assert_eq!(again.trace(), failure.trace());
    assert_eq!(again.fingerprint(), failure.fingerprint());
    assert_eq!(again.to_string(), failure.to_string());
}

pub fn from_elsewhere<F: Future>(program: Program<F>, is_the_bug: fn(&RunProblem) -> bool) {
    let most = took(program, is_the_bug).pop();
    assert!(
        most <= Some(SEEDS),
        "from one start it takes {most:?} seeds"
    );
}

pub fn soon<F: Future>(program: Program<F>) {
    let took = took(program, |_| true);
    // The upper median.
    let median = took[took.len() / 2];
    assert!(
        median <= SEEDS_WITHIN_A_TURN,
        "in the median it takes {median} seeds"
    );
}

pub fn not_with_whole_turns<F: Future>(program: Program<F>) {
    keep_bugs_quiet();
    for seed in 0..SEEDS {
        let run = Simulated::new(seed).whole_turns();
        if let Err(failure) = run.try_run(program(Version::Buggy)) {
            panic!("{failure}");
        }
    }
}

/// Returns the numbers of seeds until the bug is found from each start, in ascending order.
fn took<F: Future>(program: Program<F>, is_the_bug: fn(&RunProblem) -> bool) -> Vec<u64> {
    let mut took: Vec<u64> = (1..=STARTS)
        .map(|start| {
            // After ten times the limit, the exact number does not matter.
            let found = hunt(program, start.wrapping_mul(APART), SEEDS_MOST);
            found.map_or(u64::MAX, |(failure, tried)| {
                assert!(is_the_bug(failure.problem()), "{failure}");
                tried
            })
        })
        .collect();
    took.sort_unstable();
    println!("seeds tried from each start: {took:?}");
    took
}

pub fn seldom<F: Future>(program: Program<F>) {
    let failed = |&seed: &u64| run(program, Version::Buggy, seed).is_err();
    let shown = (0..100).filter(failed).count();
    assert!(shown < SHOWN_MOST, "{shown} of 100 seeds reveal the bug");
}

pub fn mended<F: Future>(program: Program<F>) {
    for seed in 0..MENDED_SEEDS {
        if let Err(failure) = run(program, Version::Mended, seed) {
            panic!("{failure}");
        }
    }
}

fn keep_bugs_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let payload = panic.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let text = text.unwrap_or("");
            if !text.starts_with("zoo:") {
                loud(panic);
            }
        }));
    });
}
