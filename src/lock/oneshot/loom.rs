//! Model 38, of a slot with two ends: each sees the other's writes, and the last one to finish
//! frees it.

use ::loom::sync::Arc;
use ::loom::thread::spawn;

use super::OneshotEnd;

/// Checks that two threads can count in one cell, which only the lock protects. Loom detects a leak
/// of its content.
#[test]
fn model_38_each_end_sees_what_the_other_wrote() {
    ::loom::model(|| {
        let (mut ours, mut theirs) = OneshotEnd::pair((0, None));
        let other = spawn(move || {
            theirs.with(|(count, _)| *count += 1);
            theirs.finish(|(count, left)| {
                *count += 1;
                left.get_or_insert_with(|| Arc::new(7));
            });
        });
        ours.with(|(count, _)| *count += 1);
        let was_alone = ours.is_alone();
        let (count, left) = ours.finish(|(count, left)| {
            *count += 1;
            (*count, left.take())
        });
        assert!(!was_alone || left.is_some_and(|seven| *seven == 7));
        assert!((2..=4).contains(&count) && (!was_alone || count == 4));
        other.join().unwrap();
    });
}
