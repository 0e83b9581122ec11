//! Model 32: a foreign loop is interrupted for every push that it has not seen.

use std::sync::Arc;

use ::loom::thread::spawn;

use crate::pinned::thread::Call;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Checks a push while the loop, which was called before, takes the call back and looks.
#[test]
fn model_32_foreign_loop_is_interrupted_for_every_unseen_push() {
    ::loom::model(|| {
        let (call, inbox) = (Arc::new(Call::new()), Arc::new(Mutex::new(1)));
        let calls = Arc::new(AtomicUsize::new(0));
        let counts = calls.clone();
        call.set(Some(Arc::new(move || {
            counts.fetch_add(1, Ordering::Relaxed);
        })));
        call.call();
        let (own_call, own_inbox) = (call.clone(), inbox.clone());
        let puts = spawn(move || {
            *own_inbox.lock() += 1;
            own_call.call();
        });
        call.take_back();
        let seen = std::mem::take(&mut *inbox.lock());
        puts.join().unwrap();
        let called = calls.load(Ordering::Relaxed);
        assert!(seen == 2 || called == 2, "neither seen nor called for");
        assert!(called <= 2);
    });
}
