//! A cache of raw memory blocks, with a part for each thread and a shared part.
//!
//! An allocator takes a lock or a slow path when one thread frees what another one allocated. That
//! is the rule for messages, replies, tasks and actors. So a thread caches the blocks that it
//! frees. It passes its surplus, one magazine at a time, to a depot, from which threads without
//! blocks take.
//!
//! The cache is bounded. Of each size class a thread has at most two magazines, of 16 KiB together,
//! and the depot at most eight, of 64 KiB together. A magazine of the largest class has one block
//! instead. All other blocks go back to the allocator.
//!
//! # Invariants
//! - MEMORY-1: a block is owned by exactly one user, magazine or caller at a time.
//! - MEMORY-2: blocks of a class were allocated with the layout of that class, others with their
//!   own layout.
//! - MEMORY-3: a `MagazineCell` owns the magazine that it points to. No function that is called
//!   while the magazine is borrowed uses the cell.
#![expect(unsafe_code, reason = "raw allocations; see MEMORY-1 to MEMORY-3")]

#[cfg(all(test, greenroom_loom))]
mod loom;
mod poison;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

use crate::contain::OnDrop;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::memory::{alloc, dealloc};
use crate::sync::{MODEL, Mutex, MutexGuard, Process, mutant};

/// The maximum number of bytes in a magazine. It is large enough that the depot's lock is seldom
/// taken: once for seven blocks of the largest class.
const MAGAZINE_BYTES_MAX: usize = if MODEL { 1032 } else { 8 * 1024 };
/// The maximum number of magazines of each class in the depot: one to pass on and one to take, for
/// a few threads. More would only be unused memory.
const DEPOT_MAX: usize = if MODEL { 1 } else { 8 };

/// The alignment of blocks. Values that need more are not cached.
const ALIGN: usize = 16;
/// The step between sizes. With an allocator's overhead of eight bytes, a block takes a multiple of
/// the step.
const STEP: usize = 16;
/// The number of size classes in steps. The largest has blocks of 1032 bytes, as message queues use
/// in a burst.
const STEPS: usize = 65;
/// The number of size classes: those in steps, and one of [`HUGE_BYTES`].
const CLASSES: usize = STEPS + 1;
/// The bytes of a block in a burst of large messages: four of 64 KiB, and a header. An allocator
/// returns memory of this size to the
/// system soon, and each new page of it costs as much as a copy of several KiB.
pub(crate) const HUGE_BYTES: usize = 264 * 1024;

/// Returns whether blocks are cached. A model caches none, so that its allocator finds each lost
/// block. Nor does a build for tools that detect uses after free.
#[inline(always)]
fn keeps() -> bool {
    !MODEL && !cfg!(any(miri, greenroom_uncached)) && poison::keeps()
}

/// Returns the class of the smallest blocks that fit the layout, if there is one.
const fn class_of(layout: Layout) -> Option<usize> {
    let step = layout.size().saturating_sub(STEP / 2).div_ceil(STEP);
    if layout.align() > ALIGN {
        None
    } else if layout.size() == HUGE_BYTES {
        Some(STEPS)
    } else if step < STEPS {
        Some(step)
    } else {
        None
    }
}

const fn bytes_of(class: usize) -> usize {
    if class < STEPS {
        class * STEP + STEP / 2
    } else {
        HUGE_BYTES
    }
}

const fn layout_of(class: usize) -> Layout {
    match Layout::from_size_align(bytes_of(class), ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a class is small"),
    }
}

/// Allocates memory for a value of this layout, whose size is not zero. The caller owns the memory.
#[inline]
pub(crate) fn allocate(layout: Layout) -> NonNull<()> {
    let kept = class_of(layout).filter(|_| keeps()).and_then(take);
    kept.unwrap_or_else(|| from_allocator(layout))
}

/// Frees the memory.
///
/// # Safety
/// It comes from [`allocate`] with this layout, and the caller owns it (MEMORY-1).
#[inline]
pub(crate) unsafe fn free(block: NonNull<()>, layout: Layout) {
    let is_kept = class_of(layout).is_some_and(|class| keeps() && keep(class, block));
    if !is_kept {
        // SAFETY: by the caller's promise.
        unsafe { to_allocator(block, layout) };
    }
}

/// Allocates memory for a value, which the caller has to write.
#[inline]
pub(crate) fn room<T>() -> NonNull<T> {
    const { assert!(size_of::<T>() > 0, "a value of size zero needs no memory") }
    allocate(Layout::new::<T>()).cast()
}

/// Drops the value in place and frees its memory.
///
/// # Safety
/// The memory comes from [`room`], and the caller owns it and the value.
pub(crate) unsafe fn discard<T>(value: NonNull<T>) {
    // Also if the drop of the value panics.
    let _free = OnDrop(|| {
        // SAFETY: (MEMORY-1) `room` allocated the memory with this layout; its value was dropped.
        unsafe { free(value.cast(), Layout::new::<T>()) };
    });
    // SAFETY: the caller owns the value, which is dropped once.
    unsafe { value.drop_in_place() };
}

/// Returns the layout that is requested from the allocator for a value of this layout.
fn rounded(layout: Layout) -> Layout {
    class_of(layout).map_or(layout, layout_of)
}

#[cold]
#[inline(never)]
fn from_allocator(layout: Layout) -> NonNull<()> {
    let layout = rounded(layout);
    // SAFETY: the layouts of values and classes have a non-zero size.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Frees a block to the allocator.
///
/// # Safety
/// The block comes from [`allocate`] with this layout (MEMORY-2), and the caller owns it
/// (MEMORY-1).
#[cold]
#[inline(never)]
unsafe fn to_allocator(block: NonNull<()>, layout: Layout) {
    let layout = rounded(layout);
    poison::show(block, layout.size());
    // SAFETY: by the caller's promise.
    unsafe { dealloc(block.as_ptr().cast(), layout) };
}

/// A stack of blocks of one class. It is an array, not a list through the blocks: they may be in
/// the cache of another core, and need not be fetched to be passed on.
struct Magazine {
    len: usize,
    /// The number of blocks of a full magazine; stored, so that a free does not divide.
    full: usize,
    blocks: [NonNull<()>; Magazine::LEN_MAX],
}

impl Magazine {
    /// The maximum number of blocks of any class: the pointers to them take four cache lines.
    const LEN_MAX: usize = 32;

    /// Returns the number of blocks of a class in a full magazine, which is small for large blocks.
    const fn full(class: usize) -> usize {
        match MAGAZINE_BYTES_MAX / bytes_of(class) {
            0 => 1,
            Self::LEN_MAX.. => Self::LEN_MAX,
            count => count,
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<NonNull<()>> {
        self.len = self.len.checked_sub(1)?;
        Some(self.blocks[self.len])
    }

    /// Adds a block. Returns false if the magazine is full.
    #[inline]
    fn push(&mut self, block: NonNull<()>) -> bool {
        let has_room = self.len < self.full;
        if has_room {
            self.blocks[self.len] = block;
            self.len += 1;
        }
        has_room
    }

    /// Frees the blocks to the allocator.
    fn give_back(mut self, class: usize) {
        while let Some(block) = self.pop() {
            // SAFETY: (MEMORY-1, MEMORY-2) a block of this class, owned by the magazine.
            unsafe { to_allocator(block, layout_of(class)) };
        }
    }

    fn new(class: usize) -> Box<Magazine> {
        Box::new(Magazine {
            len: 0,
            full: Self::full(class),
            blocks: [NonNull::dangling(); Self::LEN_MAX],
        })
    }
}

// SAFETY: (MEMORY-1) the owner of the magazine owns its blocks, which no thread reads or writes.
unsafe impl Send for Magazine {}

/// The slot of a magazine of one thread.
struct MagazineCell(Cell<Option<NonNull<Magazine>>>);

impl MagazineCell {
    const fn new() -> Self {
        MagazineCell(Cell::new(None))
    }

    /// Calls `f` with the magazine, if there is one.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Magazine) -> R) -> Option<R> {
        // SAFETY: (MEMORY-3) the cell owns the magazine, which is borrowed for this call.
        self.0.get().map(|mut there| f(unsafe { there.as_mut() }))
    }

    fn replace(&self, magazine: Option<Box<Magazine>>) -> Option<Box<Magazine>> {
        let magazine = magazine.map(|magazine| NonNull::from(Box::leak(magazine)));
        let before = self.0.replace(magazine)?;
        // SAFETY: (MEMORY-3) a box that was leaked here, and that the cell no longer owns.
        Some(unsafe { Box::from_raw(before.as_ptr()) })
    }

    fn take(&self) -> Option<Box<Magazine>> {
        self.replace(None)
    }
}

/// A thread's blocks of one class: a magazine to pop from and push to, and a full or an empty one.
/// With the spare one, a thread that alternates at the end of a magazine does not use the depot
/// each time.
struct Shelf {
    loaded: MagazineCell,
    spare: MagazineCell,
}

impl Shelf {
    #[inline]
    fn take(&self, class: usize) -> Option<NonNull<()>> {
        let block = self.loaded.with(Magazine::pop).flatten();
        block.or_else(|| self.reload(class))
    }

    #[inline]
    fn keep(&self, class: usize, block: NonNull<()>) {
        if self.loaded.with(|loaded| loaded.push(block)) != Some(true) {
            self.unload(class, block);
        }
    }

    /// Takes a block from the spare magazine or from one of the depot's, because the loaded one is
    /// empty.
    #[cold]
    #[inline(never)]
    fn reload(&self, class: usize) -> Option<NonNull<()>> {
        let spare = self.spare.take().filter(|spare| spare.len > 0);
        let mut full = spare.or_else(|| DEPOT[class].take())?;
        let block = full.pop();
        drop(self.spare.replace(self.loaded.replace(Some(full))));
        block
    }

    /// Stores a block in another magazine, because the loaded one is full or missing.
    #[cold]
    #[inline(never)]
    fn unload(&self, class: usize, block: NonNull<()>) {
        let full = self.loaded.take();
        let spare = full.and_then(|full| self.spare.replace(Some(full)));
        let empty = spare.and_then(|spare| {
            if spare.len == 0 {
                return Some(spare);
            }
            DEPOT[class].put(class, spare);
            None
        });
        let mut empty = empty.unwrap_or_else(|| Magazine::new(class));
        empty.push(block);
        drop(self.loaded.replace(Some(empty)));
    }
}

struct Cache([Shelf; CLASSES]);

impl Drop for Cache {
    fn drop(&mut self) {
        for (class, shelf) in self.0.iter().enumerate() {
            let magazines = [shelf.loaded.take(), shelf.spare.take()];
            magazines
                .into_iter()
                .flatten()
                .for_each(|magazine| magazine.give_back(class));
        }
    }
}

crate::sync::thread_local! {
    static CACHE: Cache = const {
        Cache(
            [const { Shelf { loaded: MagazineCell::new(), spare: MagazineCell::new() } }; CLASSES],
        )
    };
}

/// Takes a cached block. Also returns `None` while the thread is being torn down; then the
/// allocator is used.
#[inline]
fn take(class: usize) -> Option<NonNull<()>> {
    let taken = CACHE.try_with(|cache| cache.0[class].take(class));
    let block = taken.ok().flatten()?;
    poison::show(block, bytes_of(class));
    Some(block)
}

#[inline]
fn keep(class: usize, block: NonNull<()>) -> bool {
    poison::hide(block, bytes_of(class));
    CACHE
        .try_with(|cache| cache.0[class].keep(class, block))
        .is_ok()
}

/// Full magazines of one class, for all threads.
#[repr(align(64))]
struct Depot {
    /// The number of magazines, as a hint.
    len: AtomicUsize,
    magazines: Mutex<[Option<Box<Magazine>>; DEPOT_MAX]>,
}

crate::sync::own_static! {
    static DEPOT: [Depot; CLASSES] = [const {
        Depot {
            len: AtomicUsize::new(0),
            magazines: Mutex::new([const { None }; DEPOT_MAX]),
        }
    }; _];
}

impl Depot {
    fn take(&self) -> Option<Box<Magazine>> {
        // Relaxed, as all accesses: the hint saves taking the lock of an empty depot.
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut magazines = self.magazines()?;
        let taken = magazines.iter_mut().rev().find_map(Option::take);
        if mutant("a_hint_is_believed") {
            assert!(taken.is_some(), "another thread took the last magazine");
        }
        let taken = taken?;
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(taken)
    }

    fn put(&self, class: usize, full: Box<Magazine>) {
        if let Some(mut magazines) = self.magazines()
            && let Some(slot) = magazines.iter_mut().find(|slot| slot.is_none())
        {
            *slot = Some(full);
            self.len.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if !mutant("what_has_no_room_is_lost") {
            full.give_back(class);
        }
    }

    /// Locks the magazines. In a child of `fork`, returns `None` if they are locked: perhaps by a
    /// thread of the parent, which would hold the lock forever.
    fn magazines(&self) -> Option<MutexGuard<'_, [Option<Box<Magazine>>; DEPOT_MAX]>> {
        if Process::is_first() {
            Some(self.magazines.lock())
        } else {
            self.magazines.try_lock()
        }
    }
}
