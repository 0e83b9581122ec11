//! Model 51: blocks that threads pass on through the depot.

use ::loom::thread::spawn;

use super::*;
use crate::sync::UnsafeCell;

/// A class of which a magazine has one block in a model; the depot has room for one magazine.
const CLASS: usize = CLASSES - 1;

/// The content of a block: fails the model if two writes to it are concurrent or unordered.
type Content = UnsafeCell<usize>;

/// Frees as many blocks as needed for one to reach the depot. The thread caches two, which it frees
/// when it ends.
fn give() {
    for _ in 0..3 {
        let block = from_allocator(layout_of(CLASS));
        // SAFETY: (MEMORY-1) new memory for a block, which is larger than the content.
        unsafe { block.cast::<Content>().write(Content::new(0)) };
        write_to(block);
        assert!(keep(CLASS, block), "the thread does not end");
    }
}

/// Takes a block that was passed on, if there is one, and writes to it. Returns whether there was
/// one.
fn take_one() -> bool {
    let taken = take(CLASS);
    taken.inspect(|&block| {
        write_to(block);
        // SAFETY: (MEMORY-1, MEMORY-2) a block of this class, taken by this caller.
        unsafe { to_allocator(block, layout_of(CLASS)) };
    });
    taken.is_some()
}

fn write_to(block: NonNull<()>) {
    // SAFETY: (MEMORY-1) the caller owns the block, in which `give` has stored the content.
    let content = unsafe { block.cast::<Content>().as_ref() };
    // SAFETY: (MEMORY-1) as above.
    content.with_mut(|count| unsafe { *count += 1 });
}

/// Frees the depot's magazine to loom's allocator, which detects leaks.
fn clear() {
    if let Some(magazine) = DEPOT[CLASS].take() {
        magazine.give_back(CLASS);
    }
}

/// Checks that at most one of two threads gets a freed block, and that its uses by the two owners
/// are ordered.
#[test]
fn model_51_a_block_in_the_depot_is_taken_once() {
    ::loom::model(|| {
        let takers = [(); 2].map(|()| spawn(take_one));
        give();
        let taken = takers.map(|taker| taker.join().unwrap());
        assert_ne!(taken, [true; 2], "a block has one owner");
        clear();
    });
}

/// Checks that no block is lost or freed twice if two threads pass on more than the depot has room
/// for.
#[test]
fn model_51_blocks_that_overflow_the_depot_are_not_lost() {
    ::loom::model(|| {
        let other = spawn(give);
        give();
        other.join().unwrap();
        clear();
    });
}
