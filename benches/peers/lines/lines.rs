//! Counts atomic read-modify-writes, and cache lines that move from thread to thread.
//!
//! This is what a program links that was compiled for ThreadSanitizer, instead of that sanitizer: the
//! compiler calls these functions before each access to memory. `./scaling` compiles this file and
//! such a program.
//!
//! Each thread counts as a processor with a cache that loses nothing. A line moves if a thread reads
//! it that has no copy, since another one has written it, or writes it while another one has a copy.
//! The first access to a line counts as none. Threads yield all the time, so that they meet as they
//! would with a processor each. Code of `std` that is not inlined is not seen.
#![no_std]
#![feature(thread_local)]
#![allow(internal_features, non_snake_case)]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};
use core::sync::atomic::{Ordering, fence};

/// A line has 64 bytes.
const LINE: u32 = 6;
/// The lines of the addresses that Linux gives to programs.
const LINES: usize = 1 << (47 - LINE);
/// About how many accesses a thread makes before it yields, a power of two.
const TURN: u32 = 512;

static ON: AtomicBool = AtomicBool::new(false);
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// For each line a bit for each thread that has a copy, modulo 64.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);

/// The counts of all threads: read-modify-writes with fences, lines moved by reads, and by writes.
static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

struct Own {
    /// The bit of this thread; 0 before its first access.
    bit: u64,
    counts: [u64; 3],
    random: u32,
    left: u32,
}

#[thread_local]
static mut OWN: Own = Own {
    bit: 0,
    counts: [0; 3],
    random: 0,
    left: 0,
};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn sched_yield() -> c_int;
}

/// Counts from now on.
#[unsafe(no_mangle)]
pub extern "C" fn lines_start() {
    const READ_WRITE: c_int = 3;
    const PRIVATE_ANONYMOUS_NORESERVE: c_int = 0x4022;
    // SAFETY: a new mapping, of which only the pages that are written take memory.
    let holders = unsafe {
        let len = LINES * size_of::<u64>();
        mmap(
            ptr::null_mut(),
            len,
            READ_WRITE,
            PRIVATE_ANONYMOUS_NORESERVE,
            -1,
            0,
        )
    };
    if holders.addr() as isize > 0 {
        HOLDERS.store(holders.expose_provenance(), Ordering::SeqCst);
        ON.store(true, Ordering::SeqCst);
    }
}

/// Writes the counts so far. A thread adds its own when it yields.
#[unsafe(no_mangle)]
pub extern "C" fn lines_counts(counts: &mut [u64; 3]) {
    publish(own());
    for (count, of_all) in counts.iter_mut().zip(&COUNTS) {
        *count = of_all.load(Ordering::SeqCst);
    }
}

fn own() -> &'static mut Own {
    // SAFETY: only this thread has it, and no caller keeps it.
    let own = unsafe { &mut *(&raw mut OWN) };
    if own.bit == 0 {
        let number = THREADS.fetch_add(1, Ordering::Relaxed);
        own.bit = 1 << (number % 64);
        own.random = number as u32 * 2 + 1;
    }
    own
}

fn publish(own: &mut Own) {
    for (count, of_all) in own.counts.iter_mut().zip(&COUNTS) {
        of_all.fetch_add(core::mem::take(count), Ordering::Relaxed);
    }
}

fn pass_turn(own: &mut Own) {
    own.random = own
        .random
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223);
    own.left = (own.random >> 8) % (2 * TURN);
    publish(own);
    // SAFETY: it takes nothing.
    unsafe { sched_yield() };
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Rmw,
}

#[inline(always)]
fn access(address: usize, access: Access) {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    let own = own();
    let holders = HOLDERS.load(Ordering::Relaxed);
    let holders = ptr::with_exposed_provenance::<AtomicU64>(holders);
    // SAFETY: an address of a program is below 2^47, so its line is in the mapping.
    let holders = unsafe { &*holders.add((address >> LINE) % LINES) };
    let with_copy = holders.load(Ordering::Relaxed);
    if access == Access::Read {
        if with_copy & own.bit == 0 {
            own.counts[1] += u64::from(with_copy != 0);
            holders.fetch_or(own.bit, Ordering::Relaxed);
        }
    } else {
        own.counts[0] += u64::from(access == Access::Rmw);
        if with_copy != own.bit {
            own.counts[2] += u64::from(with_copy != 0);
            holders.store(own.bit, Ordering::Relaxed);
        }
    }
    match own.left.checked_sub(1) {
        Some(left) => own.left = left,
        None => pass_turn(own),
    }
}

fn range(address: usize, len: usize, kind: Access) {
    let mut at = address & !63;
    while at < address + len {
        access(at, kind);
        at += 64;
    }
}

macro_rules! plain {
    ($($name:ident $kind:ident),* $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(address: usize) {
                access(address, Access::$kind);
            }
        )*
    };
}

plain! {
    __tsan_read1 Read, __tsan_read2 Read, __tsan_read4 Read, __tsan_read8 Read,
    __tsan_read16 Read, __tsan_unaligned_read2 Read, __tsan_unaligned_read4 Read,
    __tsan_unaligned_read8 Read, __tsan_unaligned_read16 Read,
    __tsan_write1 Write, __tsan_write2 Write, __tsan_write4 Write, __tsan_write8 Write,
    __tsan_write16 Write, __tsan_unaligned_write2 Write, __tsan_unaligned_write4 Write,
    __tsan_unaligned_write8 Write, __tsan_unaligned_write16 Write,
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {}
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_func_entry(_: usize) {}
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_func_exit() {}
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(_: c_int) {}

/// A sequentially consistent fence costs what a read-modify-write does.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_thread_fence(order: c_int) {
    if order == SEQ_CST {
        own().counts[0] += u64::from(ON.load(Ordering::Relaxed));
        fence(Ordering::SeqCst);
    } else {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }
}

/// # Safety
/// As `memcpy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    range(from.addr(), len, Access::Read);
    range(to.addr(), len, Access::Write);
    // SAFETY: as the caller says.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
    to
}

/// # Safety
/// As `memmove`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    range(from.addr(), len, Access::Read);
    range(to.addr(), len, Access::Write);
    // SAFETY: as the caller says.
    unsafe { ptr::copy(from, to, len) };
    to
}

/// # Safety
/// As `memset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memset(to: *mut u8, byte: c_int, len: usize) -> *mut u8 {
    range(to.addr(), len, Access::Write);
    // SAFETY: as the caller says.
    unsafe { ptr::write_bytes(to, byte as u8, len) };
    to
}

const SEQ_CST: c_int = 5;

macro_rules! atomic {
    ($int:ty, $atomic:ty, $load:ident, $store:ident, $cas:ident, $($rmw:ident $method:ident),*) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $load(at: *const $atomic, _: c_int) -> $int {
            access(at.addr(), Access::Read);
            // SAFETY: the program loads it.
            unsafe { &*at }.load(Ordering::SeqCst)
        }

        /// A sequentially consistent store is a read-modify-write on x86.
        #[unsafe(no_mangle)]
        pub extern "C" fn $store(at: *const $atomic, value: $int, order: c_int) {
            let is_locked = order == SEQ_CST;
            access(at.addr(), if is_locked { Access::Rmw } else { Access::Write });
            // SAFETY: the program stores it.
            let at = unsafe { &*at };
            at.store(value, if is_locked { Ordering::SeqCst } else { Ordering::Release });
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $cas(
            at: *const $atomic,
            expected: $int,
            value: $int,
            _: c_int,
            _: c_int,
        ) -> $int {
            access(at.addr(), Access::Rmw);
            // SAFETY: the program exchanges it.
            let at = unsafe { &*at };
            match at.compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(before) | Err(before) => before,
            }
        }

        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $rmw(at: *const $atomic, value: $int, _: c_int) -> $int {
                access(at.addr(), Access::Rmw);
                // SAFETY: the program changes it.
                unsafe { &*at }.$method(value, Ordering::SeqCst)
            }
        )*
    };
}

atomic!(u8, AtomicU8, __tsan_atomic8_load, __tsan_atomic8_store,
    __tsan_atomic8_compare_exchange_val,
    __tsan_atomic8_exchange swap, __tsan_atomic8_fetch_add fetch_add,
    __tsan_atomic8_fetch_sub fetch_sub, __tsan_atomic8_fetch_and fetch_and,
    __tsan_atomic8_fetch_or fetch_or, __tsan_atomic8_fetch_xor fetch_xor,
    __tsan_atomic8_fetch_nand fetch_nand);
atomic!(u16, AtomicU16, __tsan_atomic16_load, __tsan_atomic16_store,
    __tsan_atomic16_compare_exchange_val,
    __tsan_atomic16_exchange swap, __tsan_atomic16_fetch_add fetch_add,
    __tsan_atomic16_fetch_sub fetch_sub, __tsan_atomic16_fetch_and fetch_and,
    __tsan_atomic16_fetch_or fetch_or, __tsan_atomic16_fetch_xor fetch_xor,
    __tsan_atomic16_fetch_nand fetch_nand);
atomic!(u32, AtomicU32, __tsan_atomic32_load, __tsan_atomic32_store,
    __tsan_atomic32_compare_exchange_val,
    __tsan_atomic32_exchange swap, __tsan_atomic32_fetch_add fetch_add,
    __tsan_atomic32_fetch_sub fetch_sub, __tsan_atomic32_fetch_and fetch_and,
    __tsan_atomic32_fetch_or fetch_or, __tsan_atomic32_fetch_xor fetch_xor,
    __tsan_atomic32_fetch_nand fetch_nand);
atomic!(u64, AtomicU64, __tsan_atomic64_load, __tsan_atomic64_store,
    __tsan_atomic64_compare_exchange_val,
    __tsan_atomic64_exchange swap, __tsan_atomic64_fetch_add fetch_add,
    __tsan_atomic64_fetch_sub fetch_sub, __tsan_atomic64_fetch_and fetch_and,
    __tsan_atomic64_fetch_or fetch_or, __tsan_atomic64_fetch_xor fetch_xor,
    __tsan_atomic64_fetch_nand fetch_nand);
