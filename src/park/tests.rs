//! Tests of when a thread may check before it sleeps. The checks themselves decide how long they
//! take.

use super::*;

/// Creates a parker whose last wait was short.
fn eager() -> Parker {
    let parker = Parker::new();
    parker.was_short.store(true, Ordering::Relaxed);
    parker
}

#[test]
fn successful_check_keeps_the_parker_eager() {
    let parker = eager();
    assert!(parker.is_eager());
    assert!(parker.look(None, || true));
    assert!(parker.is_eager());
}

#[test]
fn losing_the_core_for_a_slice_disables_checks_for_256_waits() {
    let parker = eager();
    let looked = parker.look(None, || {
        let begun = Instant::now();
        while begun.elapsed() <= Parker::SLICE {}
        false
    });
    assert!(!looked);
    for wait in 0..Parker::WARY {
        // However short the waits are.
        parker.was_short.store(true, Ordering::Relaxed);
        assert!(!parker.is_eager(), "wait {wait}");
    }
    assert!(parker.is_eager());
}
