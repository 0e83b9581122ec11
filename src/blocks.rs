//! Blocks of raw memory, reused through a small cache of each thread.
//!
//! An allocator has one lock, or takes a detour, when one thread frees what another one allocated; for
//! messages, answers, tasks and actors that is the rule. So a thread keeps what it frees for what it needs next, and what it
//! has too much of goes, a magazine at a time, to a depot from which threads that lack it take.
//!
//! What is kept is bounded: of each size two magazines in each thread, 16 KiB at most, and eight in the depot,
//! 64 KiB at most. The rest goes back to the allocator.
//!
//! # Invariants
//! - MEMORY-1: a block is owned by exactly one user, magazine or caller at a time.
//! - MEMORY-2: blocks of a class were allocated with the layout of that class, others with their own.
//! - MEMORY-3: a `MagazineCell` owns the magazine it points to; nothing that is called while that is borrowed uses
//!   the cell.
#![expect(unsafe_code, reason = "raw allocations; see MEMORY-1 to MEMORY-3")]

#[cfg(all(test, greenroom_loom))]
mod loom;
mod poison;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::memory::{alloc, dealloc};
use crate::sync::{MODEL, Mutex, MutexGuard, Process, mutant};

/// How many bytes of blocks a magazine may have: enough that the depot's lock is taken seldom, once for
/// seven blocks of the largest class.
const MAGAZINE_BYTES_MAX: usize = if MODEL { 1032 } else { 8 * 1024 };
/// How many magazines of each class the depot may hold: one that is given and one that is taken for each of
/// a few threads. More would only be memory that nobody uses.
const DEPOT_MAX: usize = if MODEL { 1 } else { 8 };

/// Blocks are aligned to this; what needs more is not cached.
const ALIGN: usize = 16;
/// Sizes go up in these steps. With eight bytes of an allocator's own a block is a multiple of it.
const STEP: usize = 16;
/// How many sizes there are: the largest has blocks of 1032 bytes, as messages in a burst have.
const CLASSES: usize = 65;

/// A model keeps nothing: its allocator misses each block that is lost. Nor does a build whose tools look
/// for what is used after it was freed.
const KEEPS: bool = !MODEL && !cfg!(any(miri, greenroom_uncached));

/// The class of the smallest blocks that hold such a value, if there is one.
const fn class_of(layout: Layout) -> Option<usize> {
    let class = layout.size().saturating_sub(STEP / 2).div_ceil(STEP);
    if class < CLASSES && layout.align() <= ALIGN {
        Some(class)
    } else {
        None
    }
}

const fn bytes_of(class: usize) -> usize {
    class * STEP + STEP / 2
}

const fn layout_of(class: usize) -> Layout {
    match Layout::from_size_align(bytes_of(class), ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a class is small"),
    }
}

/// Memory for a value of this layout, which has a size; whoever gets it owns it.
#[inline]
pub(crate) fn allocate(layout: Layout) -> NonNull<()> {
    let kept = class_of(layout).filter(|_| KEEPS).and_then(take);
    kept.unwrap_or_else(|| from_allocator(layout))
}

/// Gives the memory up.
///
/// # Safety
/// It is of [`allocate`] with this layout, and the caller owns it (MEMORY-1).
#[inline]
pub(crate) unsafe fn free(block: NonNull<()>, layout: Layout) {
    let is_kept = class_of(layout).is_some_and(|class| KEEPS && keep(class, block));
    if !is_kept {
        // SAFETY: by the caller's promise.
        unsafe { to_allocator(block, layout) };
    }
}

/// Memory for a value, which is still to be written.
#[inline]
pub(crate) fn room<T>() -> NonNull<T> {
    const { assert!(size_of::<T>() > 0, "what has no size needs no memory") }
    allocate(Layout::new::<T>()).cast()
}

/// Takes the value out and gives its memory up.
///
/// # Safety
/// It lies in memory of [`room`], and the caller owns it.
pub(crate) unsafe fn take_out<T>(value: NonNull<T>) -> T {
    // SAFETY: a value that is the caller's alone; it is not used in its old place again.
    let taken = unsafe { value.read() };
    // SAFETY: (MEMORY-1) `room` allocated it with this layout.
    unsafe { free(value.cast(), Layout::new::<T>()) };
    taken
}

/// Drops the value where it is, and gives its memory up.
///
/// # Safety
/// It lies in memory of [`room`], and the caller owns it.
pub(crate) unsafe fn discard<T>(value: NonNull<T>) {
    /// Frees the memory also if the drop of the value panics.
    struct Memory<T>(NonNull<T>);
    impl<T> Drop for Memory<T> {
        fn drop(&mut self) {
            // SAFETY: (MEMORY-1) `room` allocated it with this layout, and its value is gone.
            unsafe { free(self.0.cast(), Layout::new::<T>()) };
        }
    }
    let memory = Memory(value);
    // SAFETY: a value that is the caller's alone, dropped once.
    unsafe { memory.0.drop_in_place() };
}

/// What is asked of the allocator for a value of this layout.
fn rounded(layout: Layout) -> Layout {
    class_of(layout).map_or(layout, layout_of)
}

#[cold]
#[inline(never)]
fn from_allocator(layout: Layout) -> NonNull<()> {
    let layout = rounded(layout);
    // SAFETY: the layouts of values and classes have a size.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// # Safety
/// The block is of [`allocate`] with this layout (MEMORY-2), and is the caller's (MEMORY-1).
#[cold]
#[inline(never)]
unsafe fn to_allocator(block: NonNull<()>, layout: Layout) {
    let layout = rounded(layout);
    poison::show(block, layout.size());
    // SAFETY: by the caller's promise.
    unsafe { dealloc(block.as_ptr().cast(), layout) };
}

/// A stack of blocks of one class. An array, not a list through the blocks: those may lie in the
/// cache of another core, and need not be fetched to be handed on.
struct Magazine {
    len: usize,
    /// With so many it is full; kept here, so that a free does not divide.
    full: usize,
    blocks: [NonNull<()>; Magazine::LEN_MAX],
}

impl Magazine {
    /// How many blocks of any class: the pointers to them take four cache lines.
    const LEN_MAX: usize = 32;

    /// How many blocks of a class make a full one: few of the large ones.
    const fn full(class: usize) -> usize {
        let count = MAGAZINE_BYTES_MAX / bytes_of(class);
        if count < Self::LEN_MAX {
            count
        } else {
            Self::LEN_MAX
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<NonNull<()>> {
        self.len = self.len.checked_sub(1)?;
        Some(self.blocks[self.len])
    }

    /// False if it is full.
    #[inline]
    fn push(&mut self, block: NonNull<()>) -> bool {
        let has_room = self.len < self.full;
        if has_room {
            self.blocks[self.len] = block;
            self.len += 1;
        }
        has_room
    }

    /// Gives its blocks to the allocator.
    fn give_back(mut self, class: usize) {
        while let Some(block) = self.pop() {
            // SAFETY: (MEMORY-1, MEMORY-2) a block of this class, which was the magazine's.
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

// SAFETY: (MEMORY-1) whoever has the magazine owns its blocks, which nobody reads or writes.
unsafe impl Send for Magazine {}

/// Where one thread has a magazine.
struct MagazineCell(Cell<Option<NonNull<Magazine>>>);

impl MagazineCell {
    const fn new() -> Self {
        MagazineCell(Cell::new(None))
    }

    /// With the magazine that is there, if one is.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Magazine) -> R) -> Option<R> {
        // SAFETY: (MEMORY-3) the cell's own, borrowed meanwhile.
        self.0.get().map(|mut there| f(unsafe { there.as_mut() }))
    }

    fn replace(&self, magazine: Option<Box<Magazine>>) -> Option<Box<Magazine>> {
        let magazine = magazine.map(|magazine| NonNull::from(Box::leak(magazine)));
        let before = self.0.replace(magazine)?;
        // SAFETY: (MEMORY-3) of a box that was leaked here, and no more the cell's.
        Some(unsafe { Box::from_raw(before.as_ptr()) })
    }

    fn take(&self) -> Option<Box<Magazine>> {
        self.replace(None)
    }
}

/// What one thread keeps of one class: a magazine that it pops from and pushes to, and a full or empty one,
/// so that whoever goes to and fro at the end of one does not go to the depot each time.
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

    /// The loaded one is empty: takes from the spare one, or from one of the depot's.
    #[cold]
    #[inline(never)]
    fn reload(&self, class: usize) -> Option<NonNull<()>> {
        let spare = self.spare.take().filter(|spare| spare.len > 0);
        let mut full = spare.or_else(|| DEPOT[class].take())?;
        let block = full.pop();
        drop(self.spare.replace(self.loaded.replace(Some(full))));
        block
    }

    /// The loaded one is full, or there is none: keeps the block in another one.
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
        Cache([const { Shelf { loaded: MagazineCell::new(), spare: MagazineCell::new() } }; CLASSES])
    };
}

/// `None` also while the thread is being torn down: then the allocator serves.
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

/// Full magazines of one class, for any thread.
#[repr(align(64))]
struct Depot {
    /// How many there are; a hint.
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
        // Relaxed, as all of it: it spares the lock where there is nothing.
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut magazines = self.magazines()?;
        let taken = magazines.iter_mut().rev().find_map(Option::take);
        if mutant("a_hint_is_believed") {
            assert!(taken.is_some(), "somebody else took what there was");
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

    /// `None` in a child of a `fork` if they are locked: perhaps by a thread of the parent's, and so for ever.
    fn magazines(&self) -> Option<MutexGuard<'_, [Option<Box<Magazine>>; DEPOT_MAX]>> {
        if Process::is_first() {
            Some(self.magazines.lock())
        } else {
            self.magazines.try_lock()
        }
    }
}
