//! Model 51: blocks that threads hand on through the depot.

use ::loom::thread::spawn;

use super::*;
use crate::sync::UnsafeCell;

/// Blocks of this class come one in a magazine here, and the depot has room for one magazine.
const CLASS: usize = CLASSES - 1;

/// What lies in a block: fails the model if two write there at once, or one after the other without an order.
type Content = UnsafeCell<usize>;

/// Frees as many blocks as bring one to the depot: the thread keeps two, and gives them back at its end.
fn give() {
    for _ in 0..3 {
        let block = from_allocator(layout_of(CLASS));
        // SAFETY: (MEMORY-1) new memory for a block, which is larger.
        unsafe { block.cast::<Content>().write(Content::new(0)) };
        write_to(block);
        assert!(keep(CLASS, block), "the thread goes on");
    }
}

/// Takes a block that was handed on, if there is one, and writes to it.
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
    // SAFETY: (MEMORY-1) the caller's; `give` has put that into it.
    let content = unsafe { block.cast::<Content>().as_ref() };
    // SAFETY: (MEMORY-1) as above.
    content.with_mut(|count| unsafe { *count += 1 });
}

/// Gives what the depot has to the allocator, which is asked whether anything is missing.
fn clear() {
    if let Some(magazine) = DEPOT[CLASS].take() {
        magazine.give_back(CLASS);
    }
}

/// A thread frees a block that others lack: at most one of them gets it, and what was done with it is over then.
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

/// Two threads bring more than the depot has room for: no block is lost, and none freed twice.
#[test]
fn model_51_what_the_depot_has_no_room_for_is_not_lost() {
    ::loom::model(|| {
        let other = spawn(give);
        give();
        other.join().unwrap();
        clear();
    });
}
