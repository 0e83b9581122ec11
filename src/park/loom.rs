//! `model_33`: a token is not missed, however its thread is about to sleep.

use std::sync::Arc;

use ::loom::thread::spawn;

use super::Parker;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Checks that a thread that parks until two other threads have left a token sees what both did
/// before.
#[test]
fn model_33_a_token_is_not_missed_by_a_thread_that_parks() {
    ::loom::model(|| {
        let parker = Arc::new(Parker::new());
        let done = Arc::new(AtomicUsize::new(0));
        let others = [(); 2].map(|()| {
            let (parker, done) = (parker.clone(), done.clone());
            spawn(move || {
                done.fetch_add(1, Ordering::Relaxed);
                parker.unpark();
            })
        });
        // Relaxed: a thread that has taken a token sees what was done before the token was left.
        while done.load(Ordering::Relaxed) < 2 {
            assert!(parker.park(None), "woken without a token");
        }
        for other in others {
            other.join().unwrap();
        }
    });
}
