//! Atomic read-modify-writes, and cache lines that move between threads: counted if `./scaling` has
//! compiled the program for that, with `lines.rs` of this package.

/// The counts of all threads: read-modify-writes, and lines moved by reads and by writes.
pub type Counts = [u64; 3];

#[cfg(counts_lines)]
unsafe extern "C" {
    safe fn lines_start();
    safe fn lines_counts(counts: &mut Counts);
}

/// Counts from now on.
pub fn start() {
    #[cfg(counts_lines)]
    lines_start();
}

/// Returns the counts so far, if they are counted.
pub fn counts() -> Option<Counts> {
    #[cfg(counts_lines)]
    {
        let mut counts = Counts::default();
        lines_counts(&mut counts);
        Some(counts)
    }
    #[cfg(not(counts_lines))]
    None
}
