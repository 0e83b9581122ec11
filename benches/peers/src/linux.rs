//! What Linux reports about this process: its memory and its processor time.

use std::ffi::{c_int, c_long};
use std::fs;
use std::time::Duration;

/// Returns the number in a line `name: number ..` of a file under `/proc`; 0 if there is none.
pub fn field(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns the resident memory in bytes.
pub fn resident() -> f64 {
    bytes("VmRSS")
}

/// Returns the peak resident memory so far, in bytes.
pub fn peak() -> f64 {
    bytes("VmHWM")
}

fn bytes(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = field(&status, name);
    assert_ne!(kilobytes, 0, "/proc/self/status has no {name}");
    kilobytes as f64 * 1024.0
}

/// Returns the number of threads of this process.
pub fn threads() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "Threads")
}

/// Returns the processor time so far of all threads that live now.
pub fn processor_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let schedule = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        schedule.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Returns the processor time of this process so far, including threads that have ended. Unlike
/// [`processor_time`] it is exact for a thread that is running, whose `schedstat` lags by a tick.
pub fn process_clock() -> Duration {
    /// `struct timespec` of 64-bit Linux.
    #[repr(C)]
    struct Time {
        seconds: c_long,
        nanoseconds: c_long,
    }
    const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    }
    let mut time = Time {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the C function has this signature, writes to `time` and keeps no pointer.
    let failed = unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every Linux has this clock");
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}

/// Makes malloc return every unused page to the system.
pub fn trim() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: glibc's function has this signature, takes its own locks and may be called any time.
    unsafe { malloc_trim(0) };
}

/// Makes malloc keep all memory that is freed, in one arena for all threads.
pub fn keep_memory() {
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_MAX: c_int = -4;
    const M_ARENA_MAX: c_int = -8;
    unsafe extern "C" {
        fn mallopt(option: c_int, value: c_int) -> c_int;
    }
    for (option, value) in [
        (M_TRIM_THRESHOLD, c_int::MAX),
        (M_MMAP_MAX, 0),
        (M_ARENA_MAX, 1),
    ] {
        // SAFETY: glibc's function has this signature, and may be called any time.
        let is_set = unsafe { mallopt(option, value) };
        assert_eq!(is_set, 1, "every glibc has these options");
    }
}

#[cfg(test)]
mod tests {
    use std::hint;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "VmRSS:\t  12 kB\nVmRSSx:\t 13 kB\nempty:\n";
        assert_eq!(field(status, "VmRSS"), 12);
        assert_eq!(field(status, "Vm"), 0);
        assert_eq!(field(status, "empty"), 0);
    }

    #[test]
    fn written_memory_is_resident_and_spinning_takes_processor_time() {
        const SIZE: usize = 64 << 20;
        let (memory, time, begin) = (resident(), processor_time(), Instant::now());
        let clock = process_clock();
        let written = hint::black_box(vec![1_u8; SIZE]);
        assert!(resident() - memory > SIZE as f64 / 2.0);
        assert!(peak() > SIZE as f64 / 2.0);
        drop(written);
        while processor_time() == time {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "no time is counted"
            );
        }
        assert!(process_clock() > clock);
    }
}
