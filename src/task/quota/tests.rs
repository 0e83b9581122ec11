//! The quota after turns of various lengths.

use super::*;

/// Returns the quota after `turns` full turns at `nanos` nanoseconds a message.
fn learnt(mut quota: Quota, turns: u32, nanos: u64) -> Quota {
    for _ in 0..turns {
        let took = Duration::from_nanos(nanos * u64::from(quota.messages()));
        quota = match quota.is_timed() {
            true => quota.after_timed(quota.messages(), took),
            false => quota.after_untimed(),
        };
    }
    quota
}

#[test]
fn the_eighth_whole_batch_is_timed() {
    let timed: Vec<u32> = (0..17)
        .filter(|n| learnt(Quota::WHOLE, *n, 10).is_timed())
        .collect();
    assert_eq!(timed, [7, 15]);
}

#[test]
fn cheap_messages_are_handled_in_whole_batches() {
    assert_eq!(learnt(Quota::WHOLE, 1000, 1200).messages(), BATCH);
}

#[test]
fn a_turn_of_cheap_messages_may_be_longer_if_it_is_not_timed() {
    let more: Vec<u32> = (0..17)
        .map(|n| learnt(Quota::WHOLE, n, 300).more())
        .collect();
    assert_eq!(more, [[0; 8].as_slice(), &[MORE; 7], &[0, MORE]].concat());
    let slower = learnt(Quota::WHOLE, 8, 320);
    assert_eq!(slower.more(), 0, "four batches take longer than a turn");
}

#[test]
fn a_batch_shrinks_to_what_fits_into_a_turn() {
    for (nanos, messages) in [(2_000, 16), (5_000, 8), (20_000, 2), (10_000_000, 1)] {
        assert_eq!(
            learnt(Quota::WHOLE, 8, nanos).messages(),
            messages,
            "{nanos} ns a message"
        );
        assert_eq!(
            learnt(Quota::WHOLE, 9, nanos).messages(),
            messages,
            "{nanos} ns a message"
        );
    }
}

#[test]
fn the_batch_recovers_step_by_step_after_a_slow_turn() {
    let lost = learnt(Quota::WHOLE, 7, 10).after_timed(BATCH, Duration::from_secs(1));
    assert_eq!(lost.messages(), 1);
    let after: Vec<u32> = (1..=5).map(|n| learnt(lost, n, 10).messages()).collect();
    assert_eq!(after, [2, 4, 8, 16, 32]);
}
