//! Model 54, of an end that threads share: one of them takes it, and others look meanwhile.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use ::loom::thread::spawn;

use super::super::OneshotEnd;
use super::TakeableEnd;
use crate::sync::follow_waits;

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
