//! The processor time of a thread, as the system counts it.
#![expect(unsafe_code, reason = "a call of the system")]

use std::time::Duration;

/// Returns for how long this thread has run on a processor, or `None` where greenroom does not ask
/// the system.
///
/// It is a system call of 0.3 to 1 µs, so a turn is measured in debug builds alone.
pub(crate) fn processor_time() -> Option<Duration> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a `timespec` that lives during the call.
        let outcome = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let nanos = u32::try_from(time.tv_nsec).ok()?;
        (outcome == 0).then(|| Duration::new(seconds, nanos))
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    None
}
