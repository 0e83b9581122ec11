//! Where results are kept in the repository: `RESULTS.md` and the charts beside it.

use std::path::Path;
use std::{fs, io};

use crate::machine;

/// The folder that this package is in: `benches`.
pub fn folder() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("it is in one")
}

/// Puts an entry of today before the newest one of `RESULTS.md`; `title` stands before the date.
pub fn record(title: &str, entry: &str) -> io::Result<()> {
    let path = folder().join("RESULTS.md");
    let old = fs::read_to_string(&path)?;
    let heading = format!("## {title}{}", machine::today());
    fs::write(&path, with_entry(&old, &heading, entry))
}

fn with_entry(old: &str, heading: &str, entry: &str) -> String {
    let head = old.find("\n## ").map_or(old.len(), |newest| newest + 1);
    let (head, entries) = old.split_at(head);
    format!("{head}{heading}\n\n{entry}\n{entries}")
}

#[cfg(test)]
mod tests {
    use super::with_entry;

    #[test]
    fn the_newest_entry_is_the_first() {
        let one = with_entry("# Results\n\n", "## one", "1\n");
        assert_eq!(one, "# Results\n\n## one\n\n1\n\n");
        let two = with_entry(&one, "## two", "2\n");
        assert_eq!(two, "# Results\n\n## two\n\n2\n\n## one\n\n1\n\n");
    }
}
