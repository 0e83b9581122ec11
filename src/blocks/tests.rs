//! The owners of blocks, and the bounds of the cache. Each test uses a size of its own, since the
//! depot is shared.

use std::alloc::Layout;
use std::collections::BTreeSet;
use std::thread;

use super::*;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

fn take_some(count: usize, layout: Layout) -> BTreeSet<NonNull<()>> {
    let taken: BTreeSet<_> = (0..count).map(|_| allocate(layout)).collect();
    assert_eq!(taken.len(), count, "each block is taken once");
    taken
}

fn free_all(blocks: BTreeSet<NonNull<()>>, layout: Layout) {
    // SAFETY: each block comes from `take_some`, with this layout, and is in one set only.
    blocks
        .into_iter()
        .for_each(|block| unsafe { free(block, layout) });
}

fn addresses(blocks: &BTreeSet<NonNull<()>>) -> BTreeSet<usize> {
    blocks.iter().map(|block| block.addr().get()).collect()
}

#[test]
fn a_class_is_large_enough_and_not_much_larger() {
    for bytes in 1..=bytes_of(STEPS - 1) {
        let class = class_of(layout(bytes)).unwrap();
        assert!(
            (bytes..bytes + STEP).contains(&bytes_of(class)) || class == 0,
            "{bytes}"
        );
        assert!(
            Magazine::full(class) * bytes_of(class) <= MAGAZINE_BYTES_MAX,
            "{bytes}"
        );
    }
    assert_eq!(class_of(layout(bytes_of(STEPS - 1) + 1)), None);
    assert_eq!(class_of(layout(HUGE_BYTES)), Some(STEPS));
    assert_eq!(class_of(layout(HUGE_BYTES - 1)), None);
    assert_eq!((bytes_of(STEPS), Magazine::full(STEPS)), (HUGE_BYTES, 1));
    assert_eq!(class_of(Layout::from_size_align(64, 64).unwrap()), None);
}

#[test]
fn a_thread_reuses_the_block_that_it_freed() {
    let layout = layout(500);
    let block = allocate(layout);
    // SAFETY: allocated above with this layout.
    unsafe { free(block, layout) };
    assert!(!keeps() || allocate(layout) == block);
}

#[test]
fn blocks_freed_by_one_thread_are_reused_by_another() {
    const COUNT: usize = 100;
    let layout = layout(600);
    let other = thread::spawn(move || {
        let blocks = take_some(COUNT, layout);
        let freed = addresses(&blocks);
        free_all(blocks, layout);
        freed
    });
    let freed = other.join().unwrap();
    let blocks = take_some(COUNT, layout);
    let same = addresses(&blocks).intersection(&freed).count();
    // Two magazines stayed with the thread, which freed them to the allocator when it ended.
    let lost = 2 * Magazine::full(class_of(layout).unwrap());
    assert!(!keeps() || same >= COUNT - lost, "{same} of {COUNT}");
    free_all(blocks, layout);
}

#[test]
fn the_caches_of_a_thread_and_of_the_depot_are_bounded() {
    let layout = layout(700);
    let class = class_of(layout).unwrap();
    free_all(take_some(10_000, layout), layout);
    let in_depot = DEPOT[class].len.load(Ordering::Relaxed);
    assert_eq!(in_depot, if keeps() { DEPOT_MAX } else { 0 });
    let in_thread = CACHE.with(|cache| {
        let shelf = &cache.0[class];
        let magazines = [shelf.loaded.take(), shelf.spare.take()];
        let counts = magazines.iter().flatten().map(|magazine| magazine.len);
        let count: usize = counts.sum();
        magazines
            .into_iter()
            .flatten()
            .for_each(|magazine| magazine.give_back(class));
        count
    });
    assert!(in_thread <= 2 * Magazine::full(class), "{in_thread}");
}

#[test]
fn blocks_in_use_do_not_overlap() {
    write_and_discard();
    // Now with cached blocks, as far as there are any.
    write_and_discard();
}

fn write_and_discard() {
    let values: Vec<_> = (0..1000_u64)
        .map(|n| {
            let room = room::<[u64; 41]>();
            // SAFETY: memory for the value.
            unsafe { room.write([n; 41]) };
            room
        })
        .collect();
    for (n, value) in values.into_iter().enumerate() {
        // SAFETY: written above, and discarded once.
        unsafe {
            assert_eq!(value.read(), [n as u64; 41]);
            discard(value);
        }
    }
}

/// Checks, in a process of its own, that AddressSanitizer reports a read of a cached block.
#[cfg(greenroom_poisoned)]
#[test]
fn a_use_of_a_cached_block_ends_the_process() {
    const ALONE: &str = "GREENROOM_TEST_ALONE";
    const NAME: &str = "blocks::tests::a_use_of_a_cached_block_ends_the_process";
    if std::env::var_os(ALONE).is_some() {
        let layout = layout(800);
        let block = allocate(layout).cast::<u8>();
        // SAFETY: memory for the byte, allocated with this layout.
        unsafe {
            block.write(1);
            free(block.cast(), layout);
        }
        // SAFETY: none; this is the fault to be found.
        let read = unsafe { block.read_volatile() };
        unreachable!("{read} was read");
    }
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ALONE, NAME)
        .env_remove("GREENROOM_UNCACHED")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(
        !run.status.success() && said.contains("use-after-poison"),
        "{said}"
    );
}
