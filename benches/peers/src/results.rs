//! The results that the repository keeps: the page `RESULTS.md` with the newest run, older runs in
//! `results/DATE.md`, the charts, and the figures that the README and the guides show.

use std::path::Path;
use std::{fs, io};

use crate::machine;

/// The section of `RESULTS.md` with the newest run; its date follows.
const NEWEST: &str = "\n## Newest run, ";
/// The heading of a run in `results/DATE.md`.
const SPEED: &str = "Speed and size";

/// The pages, beside that folder, that show some figures of the newest run.
const SHOWN: [&str; 2] = ["README.md", "src/docs/performance.md"];

/// Returns the folder that contains this package: `benches`.
pub fn folder() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("a package is in a folder")
}

/// Writes an entry into today's `results/DATE.md`.
pub fn archive(title: &str, entry: &str) -> io::Result<()> {
    archive_of(&machine::today(), title, entry)
}

/// Replaces the newest run in `RESULTS.md` by this entry, moves the old one to `results/DATE.md`,
/// and updates the other pages. A figure is its name and the two cells after it.
pub fn replace_newest(entry: &str, figures: &[[String; 3]]) -> io::Result<()> {
    let page = folder().join("RESULTS.md");
    let text = fs::read_to_string(&page)?;
    let newest = Newest::find(&text).ok_or_else(|| io::Error::other("no newest run"))?;
    archive_of(newest.date, SPEED, newest.entry)?;
    let today = machine::today();
    fs::write(&page, newest.replaced(&today, entry))?;
    for page in SHOWN {
        let page = folder().with_file_name(page);
        let text = with_figures(&fs::read_to_string(&page)?, figures);
        fs::write(&page, with_record(&text, &today, entry))?;
    }
    Ok(())
}

/// Writes an entry into the `results/DATE.md` of a date, before the older ones.
fn archive_of(date: &str, title: &str, entry: &str) -> io::Result<()> {
    let path = folder().join("results").join(format!("{date}.md"));
    let old = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("# Results of {date}\n\n"),
        old => old?,
    };
    fs::write(&path, with_entry(&old, &format!("## {title}"), entry))
}

/// Returns the text with an entry before its first one.
fn with_entry(old: &str, heading: &str, entry: &str) -> String {
    let head = old.find("\n## ").map_or(old.len(), |first| first + 1);
    let (head, entries) = old.split_at(head);
    format!("{head}{heading}\n\n{}\n\n{entries}", entry.trim())
}

/// The newest run in the text of `RESULTS.md`.
struct Newest<'a> {
    before: &'a str,
    date: &'a str,
    entry: &'a str,
    after: &'a str,
}

impl<'a> Newest<'a> {
    /// Finds the section of the newest run.
    fn find(text: &'a str) -> Option<Self> {
        let (before, rest) = text.split_once(NEWEST)?;
        let (date, rest) = rest.split_once('\n')?;
        let (entry, after) = rest.split_at(rest.find("\n## ").unwrap_or(rest.len()));
        Some(Newest {
            before,
            date,
            entry,
            after,
        })
    }

    /// Returns the text with another run in this place.
    fn replaced(&self, date: &str, entry: &str) -> String {
        let (before, after) = (self.before, self.after);
        format!("{before}{NEWEST}{date}\n\n{}\n{after}", entry.trim())
    }
}

/// Returns the text with new figures in the table rows that begin with their names.
fn with_figures(text: &str, figures: &[[String; 3]]) -> String {
    let mut updated = String::new();
    for line in text.lines() {
        let cells = line.strip_prefix("| ");
        let name = cells.and_then(|cells| cells.split(" | ").next());
        match figures
            .iter()
            .find(|figure| name == Some(figure[0].as_str()))
        {
            Some(figure) => updated += &format!("| {} |", figure.join(" | ")),
            None => updated += line,
        }
        updated.push('\n');
    }
    updated
}

/// Returns the text with this date, and the commit of this entry, where it names those of its record.
fn with_record(text: &str, date: &str, entry: &str) -> String {
    let commit = entry.lines().find_map(|line| line.strip_prefix("commit "));
    let record = format!(
        "Recorded on {date} at commit {}.",
        commit.unwrap_or_default()
    );
    let is_record = |line: &str| line.starts_with("Recorded on ");
    let lines = text
        .lines()
        .map(|line| if is_record(line) { &record } else { line });
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_entry_is_put_before_the_older_ones() {
        let one = with_entry("# Results\n\n", "## one", "1\n");
        assert_eq!(one, "# Results\n\n## one\n\n1\n\n");
        let two = with_entry(&one, "## two", "\n2\n");
        assert_eq!(two, "# Results\n\n## two\n\n2\n\n## one\n\n1\n\n");
    }

    #[test]
    fn the_newest_run_is_found_and_replaced() {
        let page = "# Results\n\n## Newest run, 2026-01-02\n\nold\n\n## More\n\ntext\n";
        let newest = Newest::find(page).unwrap();
        assert_eq!((newest.date, newest.entry.trim()), ("2026-01-02", "old"));
        let replaced = "# Results\n\n## Newest run, 2026-03-04\n\nnew\n\n## More\n\ntext\n";
        assert_eq!(newest.replaced("2026-03-04", "new\n"), replaced);
        assert!(Newest::find("# Results\n").is_none());
    }

    #[test]
    fn known_rows_of_a_page_get_new_figures() {
        let text = "| case | x |\n|---|---|\n| ask, asks/s | 1 | 2 |\n| idle, s | 1 | 2 |\nask\n";
        let figures = [["ask, asks/s", "3", "4 × tokio"].map(str::to_owned)];
        let expected = text.replace("asks/s | 1 | 2 |", "asks/s | 3 | 4 × tokio |");
        assert_eq!(with_figures(text, &figures), expected);
    }

    #[test]
    fn a_page_that_names_its_record_names_the_new_one() {
        let text = "A\n\nRecorded on 2026-01-02 at commit 0123456789.\n\n| case |\n";
        let entry = "```text\nCPU    x\ncommit abcdef0123\n```\n\n| case |\n";
        let expected = text.replace(
            "2026-01-02 at commit 0123456789",
            "2026-03-04 at commit abcdef0123",
        );
        assert_eq!(with_record(text, "2026-03-04", entry), expected);
        assert_eq!(with_record("| case |\n", "2026-03-04", entry), "| case |\n");
    }
}
