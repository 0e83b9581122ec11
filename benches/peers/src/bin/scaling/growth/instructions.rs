//! The instructions of the steps of greenroom's items, counted by callgrind.

use std::path::Path;
use std::process::Command;
use std::{env, fs, io, process};

use super::{Item, meter};

/// Returns whether valgrind is installed.
pub fn can_count() -> bool {
    let found = Command::new("valgrind").arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

/// Returns the instructions of each step for one item.
pub fn count(item: Item, count: u64) -> io::Result<Vec<(String, f64)>> {
    let folder = format!("scaling-{}-{}-{count}", process::id(), item.name());
    let folder = env::temp_dir().join(folder);
    fs::create_dir(&folder)?;
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}/out", folder.display()))
        .arg(format!("/proc/{}/exe", process::id()))
        .args(["count", item.name(), &count.to_string()])
        .output();
    let counts = output.and_then(|output| match output.status.success() {
        true => sums(&folder),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    });
    fs::remove_dir_all(&folder)?;
    let items = (meter::laps_counted(count) * count) as f64;
    let each = |(step, sum)| (of(step), sum as f64 / items);
    Ok(counts?.into_iter().map(each).collect())
}

/// Returns the name of the figure for the instructions of a step.
pub fn of(step: impl AsRef<str>) -> String {
    format!("{}, instructions", step.as_ref())
}

/// Adds up the instructions of each step in the files that callgrind has written.
fn sums(folder: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for file in fs::read_dir(folder)? {
        let text = fs::read_to_string(file?.path())?;
        let Some((step, count)) = counted(&text) else {
            continue;
        };
        match sums.iter_mut().find(|(name, _)| name == step) {
            Some((_, sum)) => *sum += count,
            None => sums.push((step.to_owned(), count)),
        }
    }
    Ok(sums)
}

/// Returns the step of a file of callgrind, and its instructions. The last file has no step.
fn counted(text: &str) -> Option<(&str, u64)> {
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
    let step = field("desc: Trigger: Client Request: ")?;
    Some((step, field("totals: ")?.trim().parse().ok()?))
}

/// What a program tells callgrind: where a step begins and ends.
pub mod marks {
    use std::ffi::CString;

    /// The requests of `callgrind.h`.
    const BASE: usize = (b'C' as usize) << 24 | (b'T' as usize) << 16;
    const ZERO_STATS: usize = BASE + 1;
    const DUMP_STATS_AT: usize = BASE + 3;

    /// Counts from zero.
    pub fn begin() {
        request(ZERO_STATS, 0);
    }

    /// Writes the count since [`begin`] under the name of the step.
    pub fn end(step: &str) {
        let step = CString::new(step).expect("a name of a step has no zero");
        request(DUMP_STATS_AT, step.as_ptr().addr());
    }

    /// Makes a request of valgrind. Without valgrind it does nothing.
    #[cfg(target_arch = "x86_64")]
    fn request(code: usize, argument: usize) {
        let request = [code, argument, 0, 0, 0, 0];
        // SAFETY: without valgrind these instructions change no register: the rotations make a
        // whole turn. Valgrind reads the request, and the text that it points to, and writes `rdx`.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") &raw const request,
                inout("rdx") 0_usize => _,
            );
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn request(_code: usize, _argument: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_and_its_instructions_are_read() {
        let text = "version: 1\ndesc: Trigger: Client Request: look up\nfn=(1)\n1 2\ntotals: 42\n";
        assert_eq!(counted(text), Some(("look up", 42)));
        assert_eq!(
            counted("desc: Trigger: Program termination\ntotals: 42\n"),
            None
        );
    }
}
