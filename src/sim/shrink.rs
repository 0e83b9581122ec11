//! Shrinks a failing run: searches the fewest context switches with which it still fails in the
//! same way.
//!
//! Each try follows a prefix of the failing run's script, or the script with steps of one task
//! moved together. After the end of the script, the task of the last step continues. A try that
//! fails in the same way with fewer switches becomes the new best. The same seed and program shrink
//! to the same run.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

use super::engine::{Run, RunProblem, TurnScript};
use super::failure::Failure;
use super::simulated::Simulated;
use crate::contain::OnDrop;

/// The maximum number of tries: half a second for most programs.
const TRIES: usize = 500;
/// The maximum number of steps of all tries: a few seconds for a program with long runs.
const STEPS: u64 = 2_000_000;

struct Shrink<F> {
    run: F,
    options: Simulated,
    tries: usize,
    steps: u64,
    best: Failure,
}

/// Returns the shortest failure that was found; it notes the length of the original one.
pub(super) fn shrink<F>(failure: Failure, options: &Simulated, mut run: F) -> Failure
where
    F: FnMut(Simulated) -> Result<Run<()>, Failure>,
{
    // The text of the panics is known already.
    let _quiet = quiet();
    let again = run(options.with_seed(failure.seed()));
    if !matches!(&again, Err(again) if again.fingerprint() == failure.fingerprint()) {
        return failure.not_again();
    }
    let length = failure.length();
    let mut shrink = Shrink {
        run,
        options: options.with_seed(failure.seed()),
        tries: TRIES,
        steps: STEPS.saturating_sub(length.steps),
        best: failure,
    };
    shrink.shorten_prefix();
    while shrink.join_blocks() {}
    shrink.best.shortened_from(length)
}

std::thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Returns a guard: while it lives, panics on this thread print nothing.
fn quiet() -> OnDrop<impl FnMut()> {
    static HOOK: Once = Once::new();
    // A thread that is panicking may not set a hook; then the panics print, which does no harm.
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let outer = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !QUIET.get() {
                    outer(info);
                }
            }));
        });
    }
    QUIET.set(true);
    OnDrop(|| QUIET.set(false))
}

impl<F> Shrink<F>
where
    F: FnMut(Simulated) -> Result<Run<()>, Failure>,
{
    /// Runs this script; returns whether its failure is the best one now.
    fn improves(&mut self, script: TurnScript) -> bool {
        // A try that is much longer than the best run is not a shorter one, so it is cut.
        let most = self.best.length().steps.saturating_mul(2) + 100;
        let most = most.min(self.options.plan.steps);
        if self.tries == 0 || self.steps < most {
            return false;
        }
        self.tries -= 1;
        let options = self.options.with_seed(self.best.seed()).steps(most);
        let tried = (self.run)(options.with_script(script));
        self.steps -= match &tried {
            Ok(run) => run.steps,
            Err(failure) => failure.length().steps,
        }
        .min(most);
        match tried {
            Err(failure)
                if is_alike(failure.problem(), self.best.problem())
                    && failure.length() < self.best.length() =>
            {
                self.best.shorten(failure);
                true
            }
            _ => false,
        }
    }

    /// Searches the shortest failing prefix by halving the number of steps that it leaves out.
    fn shorten_prefix(&mut self) {
        let whole = self.best.script().clone();
        let mut len = whole.steps.len();
        let mut step = len;
        while step > 0 {
            if step <= len && self.improves(whole.prefix(len - step)) {
                len -= step;
            }
            step /= 2;
        }
    }

    /// Moves steps of one task together wherever that shortens the run; returns whether it ever
    /// did.
    fn join_blocks(&mut self) -> bool {
        let mut has_improved = false;
        let mut from_end = 0;
        loop {
            // From the last block to the first. A block that joins the one of the same task before it
            // changes the script, so the blocks are counted again.
            let script = self.best.script().clone();
            let blocks = script.blocks();
            let Some(at) = blocks.len().checked_sub(from_end + 1) else {
                return has_improved;
            };
            let (begin, end) = blocks[at];
            let key = script.steps[begin];
            let before = blocks[..at].iter().rev();
            let joined = before
                .clone()
                .find(|(begin, _)| script.steps[*begin] == key)
                .is_some_and(|&(first, last)| {
                    self.improves(script.moved((begin, end), last))
                        || self.improves(script.moved((last, begin), first))
                });
            has_improved |= joined;
            if !joined {
                from_end += 1;
            }
        }
    }
}

/// Returns whether two problems are the same except for numbers in their texts.
fn is_alike(one: &RunProblem, other: &RunProblem) -> bool {
    let words = |problem: &RunProblem| {
        let text = problem.to_string();
        text.chars()
            .filter(|c| !c.is_ascii_digit())
            .collect::<String>()
    };
    std::mem::discriminant(one) == std::mem::discriminant(other) && words(one) == words(other)
}
