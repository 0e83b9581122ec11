//! The README's figures are the newest of `benches/RESULTS.md`, all of them.

use std::path::Path;

fn text_of(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// The part of a text below this heading.
fn below<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, part) = text.split_once(heading).expect("it has that heading");
    part.split("\n## ").next().unwrap()
}

/// The table that begins with these columns, a list of cells for each row.
fn table<'a>(text: &'a str, columns: &str) -> Vec<Vec<&'a str>> {
    let begin = text.find(columns).expect("there is such a table");
    let lines = text[begin..].lines().skip(2);
    let rows = lines.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_readme_shows_what_was_recorded_last() {
    let (results, readme) = (text_of("benches/RESULTS.md"), text_of("README.md"));
    let recorded = table(
        &results,
        "| case | figure | greenroom | bar | beside the best | tokio |",
    );
    let shown = table(
        below(&readme, "\n## How fast"),
        "| case | figure | greenroom |",
    );
    let expected: Vec<Vec<&str>> = recorded
        .iter()
        .map(|row| vec![row[0], row[1], row[2], row[4]])
        .collect();
    assert!(expected.len() > 25, "not all cases were recorded");
    assert_eq!(shown, expected);
}

#[test]
fn the_readme_gives_a_reason_for_each_case_where_another_is_first() {
    let readme = text_of("README.md");
    let fast = below(&readme, "\n## How fast");
    let rows = table(fast, "| case | figure | greenroom |");
    let behind = rows.iter().filter(|row| {
        let times = row[3].split(' ').next().unwrap().parse::<f64>();
        times.is_ok_and(|times| times < 1.0)
    });
    let unnamed: Vec<_> = behind
        .filter(|row| !fast.contains(&format!("- `{}`", row[0])))
        .collect();
    assert!(unnamed.is_empty(), "no reason is given for {unnamed:?}");
}
