//! How often threads have gone to sleep, as Linux tells it.

use std::collections::BTreeMap;

use super::{MANY_HAND_OVERS, hand_over};

/// Returns, for each thread whose name has this prefix, how often it has gone to sleep voluntarily
/// and whether it sleeps now.
pub fn naps(prefix: &str) -> BTreeMap<String, (u64, bool)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let status =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.expect("the field is in the status file")
            .trim()
            .to_owned()
    };
    status
        .map(|status| {
            let naps = field(&status, "voluntary_ctxt_switches:").parse().unwrap();
            let sleeps = field(&status, "State:").starts_with('S');
            (field(&status, "Name:"), (naps, sleeps))
        })
        .filter(|(name, _)| name.starts_with(prefix))
        .collect()
}

/// Waits until all threads whose names have this prefix sleep.
pub fn asleep(prefix: &str) -> BTreeMap<String, (u64, bool)> {
    loop {
        let before = naps(prefix);
        hand_over(MANY_HAND_OVERS / 4);
        let after = naps(prefix);
        if before == after && after.values().all(|&(_, sleeps)| sleeps) {
            return after;
        }
    }
}
