//! Model 33: a token is not missed, however its thread is about to sleep.

use std::sync::Arc;

use ::loom::thread::spawn;

use super::Parker;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Two others leave a token each; the thread parks until it has seen what both did before.
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
        // Relaxed: what was done before a token is seen by whoever has taken it.
        while done.load(Ordering::Relaxed) < 2 {
            assert!(parker.park(None), "woken without a token");
        }
        for other in others {
            other.join().unwrap();
        }
    });
}
