//! Model 9, of the lock below the reply slot: it excludes, and each section sees the previous one's
//! writes.

use std::sync::Arc;

use ::loom::thread::spawn;

use super::SpinLock;

/// Checks that three threads can count in one cell, which only the lock protects.
#[test]
fn model_09_the_lock_is_held_by_one_thread_at_a_time() {
    ::loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let others = [(); 2].map(|()| {
            let lock = lock.clone();
            spawn(move || lock.with(|count| *count += 1))
        });
        lock.with(|count| *count += 1);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(lock.with(|count| *count), 3, "each counted");
    });
}
