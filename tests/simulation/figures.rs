//! The figures of the README and the guides are those of the newest run in `benches/RESULTS.md`.

use std::path::Path;

/// Returns the text of a file of this package.
fn text_of(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// Returns the section below a heading.
fn below<'a>(text: &'a str, heading: &str) -> &'a str {
    let section = text.split_once(&format!("\n## {heading}"));
    let (_, section) = section.unwrap_or_else(|| panic!("no section `{heading}`"));
    section.split("\n## ").next().unwrap()
}

/// Returns the rows of the table whose first line begins with these columns.
fn table<'a>(text: &'a str, columns: &str) -> Vec<Vec<&'a str>> {
    let begin = text.find(columns);
    let begin = begin.unwrap_or_else(|| panic!("no table `{columns}`"));
    let lines = text[begin..].lines().skip(2);
    let rows = lines.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split('|').map(str::trim).collect())
        .collect()
}

/// Returns the rows of the newest run. Each has the case, the figure, greenroom's result, the goal,
/// the result beside the best, and those of the peers.
fn newest_run(results: &str) -> Vec<Vec<&str>> {
    let columns = "| case | figure | greenroom | goal | beside the best |";
    let rows = table(below(results, "Newest run, "), columns);
    assert!(rows.len() > 25, "not all cases were recorded");
    rows
}

#[test]
fn each_figure_of_the_readme_and_the_guides_is_one_of_the_newest_run() {
    let results = text_of("benches/RESULTS.md");
    let recorded = newest_run(&results);
    let recorded: Vec<_> = recorded
        .iter()
        .map(|row| (format!("{}, {}", row[0], row[1]), row[2], row[4]))
        .collect();
    for page in ["README.md", "src/docs/performance.md"] {
        let text = text_of(page);
        let shown = table(&text, "| case | greenroom | beside the best |");
        assert!(shown.len() >= 6, "too few figures in {page}: {shown:?}");
        for row in shown {
            let figure = (row[0].to_owned(), row[1], row[2]);
            assert!(
                recorded.contains(&figure),
                "{page}: not recorded: {figure:?}"
            );
        }
    }
}

#[test]
fn the_readme_names_the_date_and_the_commit_of_the_newest_run() {
    let (results, readme) = (text_of("benches/RESULTS.md"), text_of("README.md"));
    let newest = below(&results, "Newest run, ");
    let date = newest.lines().next().unwrap();
    let commit = newest.lines().find_map(|line| line.strip_prefix("commit "));
    let record = format!("\nRecorded on {date} at commit {}.\n", commit.unwrap());
    assert!(readme.contains(&record), "not in README.md: {record}");
}

#[test]
fn the_results_give_a_reason_for_each_case_where_a_peer_is_first() {
    let results = text_of("benches/RESULTS.md");
    let reasons = below(&results, "Where a peer is first");
    let is_behind = |row: &Vec<&str>| {
        let times = row[4].split(' ').next().unwrap().parse::<f64>();
        times.is_ok_and(|times| times < 1.0)
    };
    let unexplained: Vec<_> = newest_run(&results)
        .into_iter()
        .filter(is_behind)
        .filter(|row| !reasons.contains(&format!("- `{}`", row[0])))
        .map(|row| [row[0], row[1], row[4]])
        .collect();
    assert!(unexplained.is_empty(), "no reason for {unexplained:?}");
}
