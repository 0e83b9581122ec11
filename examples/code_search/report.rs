//! The report of a run: the files that were left out or could not be read, by reason.
//!
//! Every file, link or other entry that the walk found and that is not in the index is counted here
//! exactly once. Only the first few of each reason are kept by name.

use std::fmt;
use std::io;

/// How many entries of each reason are named.
const NAMED: usize = 3;

/// Why an entry is not searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is larger than 16 MiB.
    TooLarge,
    /// It contains a NUL byte.
    Nul,
    /// It is not valid UTF-8.
    NotUtf8,
    /// It is a symbolic link.
    Symlink,
    /// It is a device, pipe or socket.
    Special,
    /// It is a file of the index itself.
    Index,
    /// It was deleted between the walk and the reading.
    Gone,
    /// The system refused to list or read it.
    Unreadable,
}

impl Reason {
    const ALL: [Reason; 8] = [
        Reason::TooLarge,
        Reason::Nul,
        Reason::NotUtf8,
        Reason::Symlink,
        Reason::Special,
        Reason::Index,
        Reason::Gone,
        Reason::Unreadable,
    ];

    /// Returns the reason that an error of the file system means for one path.
    pub fn of(error: &io::Error) -> Reason {
        match error.kind() {
            io::ErrorKind::NotFound => Reason::Gone,
            _ => Reason::Unreadable,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Reason::TooLarge => "larger than 16 MiB",
            Reason::Nul => "contains NUL",
            Reason::NotUtf8 => "not UTF-8",
            Reason::Symlink => "symbolic link",
            Reason::Special => "device, pipe or socket",
            Reason::Index => "the index itself",
            Reason::Gone => "gone before it was read",
            Reason::Unreadable => "unreadable",
        }
    }
}

/// Counts and first names by reason.
#[derive(Debug, Default)]
pub struct Report {
    counts: [u64; Reason::ALL.len()],
    names: [Vec<String>; Reason::ALL.len()],
}

impl Report {
    /// Counts one entry at `path` (relative to the root).
    pub fn left_out(&mut self, reason: Reason, path: &[u8]) {
        self.note(reason, || String::from_utf8_lossy(path).into_owned());
    }

    /// Counts one entry at `path` that could not be read or listed.
    pub fn failed(&mut self, path: &[u8], error: &io::Error) {
        let name = || match path {
            b"" => format!(".: {error}"),
            _ => format!("{}: {error}", String::from_utf8_lossy(path)),
        };
        self.note(Reason::of(error), name);
    }

    fn note(&mut self, reason: Reason, name: impl FnOnce() -> String) {
        self.counts[reason as usize] += 1;
        let names = &mut self.names[reason as usize];
        if names.len() < NAMED {
            names.push(name());
        }
    }

    /// Adds the report of another part of the run.
    pub fn merge(&mut self, other: Report) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        for (names, more) in self.names.iter_mut().zip(other.names) {
            names.extend(more);
            names.truncate(NAMED);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reason in Reason::ALL {
            let (count, names) = (self.counts[reason as usize], &self.names[reason as usize]);
            if count == 0 {
                continue;
            }
            writeln!(f, "not searched, {}: {count}", reason.text())?;
            for name in names {
                writeln!(f, "    {}", printable(name))?;
            }
            if count > names.len() as u64 {
                writeln!(f, "    and {} more", count - names.len() as u64)?;
            }
        }
        Ok(())
    }
}

/// Escapes the control characters of a name, for a terminal.
fn printable(name: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() {
            c.escape_default().collect()
        } else {
            c.into()
        }
    };
    name.chars().map(escaped).collect::<Vec<String>>().concat()
}
