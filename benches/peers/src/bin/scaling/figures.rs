//! The figures, under the names that the child processes print.

/// One measured number: its name and its value.
pub type Figure = (&'static str, f64);

pub const MESSAGE: &str = "ns per message";
pub const MESSAGE_CPU: &str = "ns of processor time a message";
pub const SPAWN: &str = "ns per spawn";
pub const SPAWN_CPU: &str = "ns of processor time a spawn";

pub const LIVE: &str = "live";
pub const RESIDENT: &str = "resident";
pub const PEAK: &str = "a million actors, peak";
pub const LEFT_LIVE: &str = "a million actors, live when they are gone";
pub const LEFT_RESIDENT: &str = "a million actors, resident when they are gone";
pub const PEAK_AGAIN: &str = "three more millions, added to the peak";
pub const LEFT_TRIMMED: &str = "a million actors, resident after `malloc_trim` when all are gone";
/// In the order in which they are measured.
pub const OF_A_MILLION: [&str; 5] = [PEAK, LEFT_LIVE, LEFT_RESIDENT, PEAK_AGAIN, LEFT_TRIMMED];
