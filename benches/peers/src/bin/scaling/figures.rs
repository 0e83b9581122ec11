//! The figures, under the names that the child processes print.

/// One measured number: its name and its value.
pub type Figure = (&'static str, f64);

/// The figures of an operation.
pub struct Operation {
    pub time: &'static str,
    pub processor_time: &'static str,
    /// What [`lines`](crate::lines) counts.
    pub counts: [&'static str; 3],
}

pub const MESSAGE: Operation = Operation {
    time: "ns per message",
    processor_time: "ns of processor time a message",
    counts: [
        "RMWs a message",
        "lines read a message",
        "lines written a message",
    ],
};
pub const TO_ONE: Operation = Operation {
    time: "ns per message to one actor",
    processor_time: "ns of processor time a message to one actor",
    counts: [
        "RMWs a message to one actor",
        "lines read a message to one actor",
        "lines written a message to one actor",
    ],
};
pub const SPAWN: Operation = Operation {
    time: "ns per spawn",
    processor_time: "ns of processor time a spawn",
    counts: [
        "RMWs a spawn",
        "lines read a spawn",
        "lines written a spawn",
    ],
};
/// In the order in which they are measured.
pub const OPERATIONS: [Operation; 3] = [MESSAGE, TO_ONE, SPAWN];

pub const LIVE: &str = "live";
pub const RESIDENT: &str = "resident";
pub const PEAK: &str = "a million actors, peak";
pub const LEFT_LIVE: &str = "a million actors, live when they are gone";
pub const LEFT_RESIDENT: &str = "a million actors, resident when they are gone";
pub const PEAK_AGAIN: &str = "three more millions, added to the peak";
pub const LEFT_TRIMMED: &str = "a million actors, resident after `malloc_trim` when all are gone";
/// In the order in which they are measured.
pub const OF_A_MILLION: [&str; 5] = [PEAK, LEFT_LIVE, LEFT_RESIDENT, PEAK_AGAIN, LEFT_TRIMMED];
