//! How a bug is hunted: one seed after the other, until a run fails.
//!
//! A program is a function of its version whose future is the whole of it. Panics whose text begins
//! with "zoo:" are what some of the bugs come to, and print nothing.

use std::future::Future;
use std::sync::Once;

use greenroom::policy::Simulated;
use greenroom::sim::{Failure, Problem, Run};

/// Within so many seeds a bug is to be found.
pub const SEEDS: u64 = 1000;
/// The same of one that is a race within a turn.
const SEEDS_WITHIN_A_TURN: u64 = 200;
/// A hunt from anywhere may take so many.
const SEEDS_MOST: u64 = 10 * SEEDS;
/// So many seeds its mended twin is to survive: ten times as many where a run takes a tenth of the time.
const MENDED_SEEDS: u64 = if cfg!(debug_assertions) {
    SEEDS
} else {
    10 * SEEDS
};
/// From so many other seeds a hunt begins, each time so far from the last.
const STARTS: u64 = if cfg!(debug_assertions) { 5 } else { 20 };
const APART: u64 = 0x9e37_79b9_7f4a_7c15;
/// A bug that fewer orders than this show, of a hundred, is one that hides.
const SHOWN_MOST: usize = 50;

/// Of a program.
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

/// The failure of the first seed from there on that has one, and how many seeds that took.
fn hunt<F: Future>(program: Program<F>, start: u64, most: u64) -> Option<(Failure, u64)> {
    (0..most).find_map(|tried| {
        let failure = run(program, Version::Buggy, start.wrapping_add(tried)).err()?;
        Some((failure, tried + 1))
    })
}

/// Makes the tests of a program; the last argument says what its bug comes to.
macro_rules! hunts {
    ($program:ident, $is_the_bug:expr) => {
        #[test]
        fn the_bug_is_found_within_a_thousand_seeds_and_fails_alike_each_time() {
            crate::hunt::from_zero($program, $is_the_bug);
        }

        #[test]
        fn it_is_found_as_soon_from_every_other_start() {
            crate::hunt::from_elsewhere($program, $is_the_bug);
        }

        #[test]
        fn most_orders_do_not_show_it() {
            crate::hunt::seldom($program);
        }

        #[test]
        fn the_mended_program_survives_all_seeds() {
            crate::hunt::mended($program);
        }
    };
}
pub(crate) use hunts;

/// The same of a program whose bug is a race within one turn.
macro_rules! hunts_within_a_turn {
    ($program:ident, $is_the_bug:expr) => {
        crate::hunt::hunts!($program, $is_the_bug);

        #[test]
        fn whole_turns_do_not_show_it() {
            crate::hunt::not_with_whole_turns($program);
        }

        #[test]
        fn it_is_found_within_two_hundred_seeds_from_most_starts() {
            crate::hunt::soon($program);
        }
    };
}
pub(crate) use hunts_within_a_turn;

pub fn from_zero<F: Future>(program: Program<F>, is_the_bug: fn(&Problem) -> bool) {
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

pub fn from_elsewhere<F: Future>(program: Program<F>, is_the_bug: fn(&Problem) -> bool) {
    let most = took(program, is_the_bug).pop();
    assert!(
        most <= Some(SEEDS),
        "from one start it takes {most:?} seeds"
    );
}

pub fn soon<F: Future>(program: Program<F>) {
    let took = took(program, |_| true);
    // The upper one of the two in the middle.
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

/// How many seeds it takes until the bug is found from each start, in ascending order.
fn took<F: Future>(program: Program<F>, is_the_bug: fn(&Problem) -> bool) -> Vec<u64> {
    let mut took: Vec<u64> = (1..=STARTS)
        .map(|start| {
            // As soon as ten times as many are in vain it is of no matter how many more are.
            let found = hunt(program, start.wrapping_mul(APART), SEEDS_MOST);
            found.map_or(u64::MAX, |(failure, tried)| {
                assert!(is_the_bug(failure.problem()), "{failure}");
                tried
            })
        })
        .collect();
    took.sort_unstable();
    println!("seeds that it took from each start: {took:?}");
    took
}

pub fn seldom<F: Future>(program: Program<F>) {
    let failed = |&seed: &u64| run(program, Version::Buggy, seed).is_err();
    let shown = (0..100).filter(failed).count();
    assert!(shown < SHOWN_MOST, "{shown} of 100 seeds show it");
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
