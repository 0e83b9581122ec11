//! The number of messages that a turn handles, and polls without a context.

use super::*;

/// Returns the number of messages that a turn handles until it is spent, and whether that is noted.
fn handled(batch: u32, more: u32, is_alone: bool) -> (u32, bool) {
    let of = NonNull::dangling();
    // SAFETY: (RUN-3) nothing uses the reader.
    let run = unsafe { CurrentTurn::of_actor(of, of, (batch, more), None) };
    // SAFETY: (RUN-1) the turn belongs to no task or actor.
    let entered = unsafe { run.enter() };
    let mut handled = 0;
    while !is_spent(|| is_alone) {
        spend();
        handled += 1;
    }
    drop(entered);
    assert_eq!(run.handled(), handled);
    (handled, run.notes() & SPENT != 0)
}

#[test]
fn a_turn_is_spent_after_a_batch() {
    assert_eq!(handled(5, 0, true), (5, true));
    assert_eq!(handled(5, 0, false), (5, true));
}

#[test]
fn a_turn_is_extended_once_and_only_if_nothing_else_waits() {
    assert_eq!(handled(5, 10, true), (15, true));
    assert_eq!(handled(5, 10, false), (5, true));
}

#[test]
fn a_poll_without_a_context_lasts_until_its_guard_is_dropped_also_around_another() {
    let outer = poll_without_context(7);
    drop(poll_without_context(8));
    assert!(is_without_context());
    assert!(
        !is_own_without_context(7),
        "no turn of that actor is in progress"
    );
    drop(outer);
    assert!(!is_without_context());
}
