//! The processor time of a thread, as the system counts it.
//!
//! # Invariants
//! - PROCESSOR-1: the memory for the answer of the system lives during the call.
#![expect(unsafe_code, reason = "a call of the system; see PROCESSOR-1")]

use std::time::Duration;

/// Returns for how long this thread has run on a processor, or `None` if the system does not tell.
///
/// It is a system call of 0.3 to 1 µs, so a turn is measured in debug builds alone.
pub(crate) fn processor_time() -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: (PROCESSOR-1) `time` is on the stack of this function.
    let outcome = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    (outcome == 0).then(|| Duration::new(seconds, nanos))
}
