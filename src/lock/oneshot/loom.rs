//! Model 38, of a slot with two ends: each sees the other's writes, and the last one to finish
//! frees it. Model 54, of an end that threads share: one of them takes it, and others look meanwhile.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use ::loom::thread::spawn;

use super::{OneshotEnd, TakeableEnd};
use crate::sync::follow_waits;

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
                left.get_or_insert_with(|| ::loom::sync::Arc::new(7));
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

/// Returns an end that can be shared, and the other end.
fn shared(value: usize) -> (Arc<TakeableEnd<usize>>, OneshotEnd<usize>) {
    let (ours, theirs) = OneshotEnd::pair(value);
    (Arc::new(TakeableEnd::new(ours)), theirs)
}

/// Checks that of two threads that take an end, one gets it.
#[test]
fn model_54_an_end_is_taken_by_one_thread() {
    ::loom::model(|| {
        let (end, theirs) = shared(0);
        let other = spawn({
            let end = end.clone();
            move || end.take()
        });
        let ours = end.take();
        let others = other.join().unwrap();
        // Not dropped before the check, so that a mutation does not free the slot twice.
        let taken = [ours, others].map(ManuallyDrop::new);
        let were_taken = taken.each_ref().map(|end| end.is_some());
        assert!(were_taken[0] != were_taken[1], "one thread takes the end");
        assert!(end.take().is_none());
        drop((taken.map(ManuallyDrop::into_inner), theirs));
    });
}

/// Checks that a thread that looks excludes the taker, who may finish the end at once, and the
/// other end.
#[test]
fn model_54_a_look_ends_before_the_end_is_used() {
    ::loom::model(|| {
        follow_waits();
        let (end, theirs) = shared(0);
        let taker = spawn({
            let end = end.clone();
            move || {
                let ours = end.take();
                ours.map(|ours| ours.finish(|count| *count += 1)).is_some()
            }
        });
        let looked = end.look(|count| *count += 1);
        let before = theirs.finish(|count| *count);
        let taken = taker.join().unwrap();
        assert!(taken && end.look(|_| ()).is_none());
        assert!(before >= usize::from(looked.is_some()));
    });
}
