//! The page of many actors: charts, workers, and a row for each actor or group.

use std::fmt::Write;

use super::figures::{rate, share, short, time, wait};
use super::look::ActorsLook;
use super::query::{PageQuery, SortColumn};
use super::rows::{ActorRow, RowList, rows_of};
use crate::view::escape::escape;

/// The number of rows that are shown at most.
const SHOWN: usize = 1000;

/// The levels of a tree that are moved to the right, so that names fit a small screen.
const DEPTH: usize = 8;

/// Returns what stands in the head of a column, and what it says of it.
fn head(column: SortColumn, is_grouped: bool) -> (&'static str, &'static str) {
    match column {
        SortColumn::Id if is_grouped => ("actors", "how many actors have the name"),
        SortColumn::Id => ("id", "the number of the actor"),
        SortColumn::Name => ("name", "its name, or its function or type"),
        SortColumn::State if is_grouped => ("ready", "how many are running or ready"),
        SortColumn::State => (
            "state",
            "running: in a turn; ready: waits for a worker; waiting: for a message, or for else",
        ),
        SortColumn::Mailbox => ("mailbox", "messages that wait now"),
        SortColumn::Highest => ("highest", "the most messages that have waited in a mailbox"),
        SortColumn::Wait => (
            "wait",
            "estimate of how long a message waits: mailbox ÷ messages/s",
        ),
        SortColumn::Messages => ("messages", "messages handled since the spawn"),
        SortColumn::Rate => ("messages/s", "messages a second since the last refresh"),
        SortColumn::Turns => ("turns", "turns since the spawn"),
        SortColumn::Busy => (
            "busy",
            "the part of the time since the last refresh in turns",
        ),
        SortColumn::Longest => ("longest", "the longest turn that was timed"),
        SortColumn::Restarts => ("restarts", "how often it was restarted"),
        SortColumn::Displaced => ("displaced", "messages that gave way to newer ones"),
    }
}

/// Writes the page up to its end.
pub(super) fn write_actors(page: &mut String, look: &ActorsLook, query: &PageQuery) {
    let list = rows_of(look.actors(), query, SHOWN);
    page.push_str("<h1>Actors</h1>");
    page.push_str(&look.charts);
    write_notes(page, look);
    write_controls(page, query);
    write_summary(page, look, query, &list);
    page.push_str("<div class=\"scroll\"><table class=\"actors\"><tr>");
    for (column, _) in SortColumn::ALL {
        write_head(page, column, query);
    }
    page.push_str("</tr>\n");
    let is_measured = look.is_measured();
    for row in &list.rows {
        write_row(page, row, look, query, is_measured);
    }
    page.push_str("</table></div>");
    write_workers(page, look);
}

/// Says how exact the figures are.
pub(super) fn write_notes(page: &mut String, look: &ActorsLook) {
    if !look.stats.is_counting {
        page.push_str(
            "<p class=\"note\">Nothing is counted: the runtime was built with \
             <code>counting(false)</code>.</p>",
        );
    } else if !look.is_measured() {
        page.push_str(
            "<p class=\"note\">Times are samples: one turn in 64 is timed, and a share with ≈ is \
             estimated from these. With the observer <code>Measure</code> they are exact.</p>",
        );
    }
    if look.stats.is_counting {
        page.push_str(
            "<p class=\"note\">The wait estimates how long a message waits: mailbox ÷ messages/s; \
             <em>stalled</em>: none was handled.</p>",
        );
    }
    if look.since.is_none() {
        page.push_str(
            "<p class=\"note\">Figures a second, shares and waits need a second refresh.</p>",
        );
    }
}

fn write_controls(page: &mut String, query: &PageQuery) {
    page.push_str("<p class=\"controls\">");
    let group = query.grouped(!query.is_grouped).link();
    let what = if query.is_grouped {
        "each actor"
    } else {
        "group by name"
    };
    let _ = write!(page, "<a href=\"{group}\">{what}</a> ");
    let tree = query.tree(!query.is_tree).link();
    let what = match query.is_tree {
        true => "without the tree",
        false => "tree of parents",
    };
    let _ = write!(page, "<a href=\"{tree}\">{what}</a> ");
    let paused = PageQuery {
        is_paused: !query.is_paused,
        ..query.clone()
    };
    let what = match query.is_paused {
        true => "refresh every 2 s",
        // A page that refreshes itself would take away what a reader types.
        false => "pause and filter",
    };
    let _ = write!(page, "<a href=\"{}\">{what}</a> ", paused.link());
    if !query.filter.is_empty() {
        let all = PageQuery {
            filter: String::new(),
            ..query.clone()
        };
        let _ = write!(page, "<a href=\"{}\">without the filter</a>", all.link());
    }
    page.push_str("</p>");
    if !query.is_paused {
        return;
    }
    page.push_str("<form><input name=\"filter\" aria-label=\"part of the name\" value=\"");
    escape(page, &query.filter);
    page.push_str("\">");
    for (name, value) in query.hidden() {
        let _ = write!(
            page,
            "<input type=\"hidden\" name=\"{name}\" value=\"{value}\">"
        );
    }
    page.push_str("<button>filter</button></form>");
}

fn write_summary(page: &mut String, look: &ActorsLook, query: &PageQuery, list: &RowList<'_>) {
    let stats = &look.stats;
    let _ = write!(page, "<p>{} actors, ", stats.actors.len());
    if !query.filter.is_empty() {
        let _ = write!(page, "of which {} have <q>", list.actors);
        escape(page, &query.filter);
        page.push_str("</q> in the name, ");
    }
    let shown = list.rows.len();
    let _ = match query.is_grouped {
        true => write!(page, "in {} groups, of which {shown} are shown", list.all),
        false => write!(page, "of which {shown} are shown"),
    };
    let _ = write!(
        page,
        "; {} tasks; {} queued; {} timers; {} pinned threads.",
        stats.tasks, stats.queued, stats.timers, stats.pinned
    );
    if let Some(since) = look.since {
        let _ = write!(page, " The last refresh was {since:.1?} before.");
    }
    page.push_str("</p>");
}

fn write_head(page: &mut String, column: SortColumn, query: &PageQuery) {
    let (text, title) = head(column, query.is_grouped);
    let link = query.sorted_by(column).link();
    let (order, sign) = match (query.sort == column, query.is_ascending) {
        (false, _) => ("", ""),
        (true, true) => (" aria-sort=\"ascending\"", " ▲"),
        (true, false) => (" aria-sort=\"descending\"", " ▼"),
    };
    let _ = write!(
        page,
        "<th{order}><a href=\"{link}\" title=\"{title}\">{text}{sign}</a></th>"
    );
}

fn write_row(
    page: &mut String,
    row: &ActorRow<'_>,
    look: &ActorsLook,
    query: &PageQuery,
    is_measured: bool,
) {
    let (id, name) = (row.task.id(), row.name());
    if query.is_grouped {
        let members = query.members(&name).link();
        let _ = write!(
            page,
            "<tr><td>{}</td><td><a href=\"{members}\">",
            row.actors
        );
        escape(page, &name);
        let _ = write!(page, "</a></td><td>{}</td>", row.ready);
    } else {
        let _ = write!(page, "<tr><td><a href=\"?id={id}\">{id}</a></td><td>");
        page.push_str(&branch(row.depth));
        escape(page, &name);
        let _ = write!(page, "</td><td>{}</td>", row.state);
    }
    let counted = |number: u64| match look.stats.is_counting {
        true => number.to_string(),
        false => "–".to_owned(),
    };
    let cells = [
        row.mailbox.to_string(),
        counted(row.highest as u64),
        wait(row.wait()),
        counted(row.messages),
        rate(row.rate),
        counted(row.turns),
        share(row.busy, is_measured),
        time(row.longest),
        row.restarts.to_string(),
        row.displaced.to_string(),
    ];
    for cell in cells {
        // Made of numbers here, so there is nothing to escape.
        let _ = write!(page, "<td>{cell}</td>");
    }
    page.push_str("</tr>\n");
}

/// Returns what is before the name of an actor that has so many ancestors.
fn branch(depth: usize) -> String {
    match depth.checked_sub(1) {
        None => String::new(),
        Some(above) => format!("{}└ ", "\u{2003}".repeat(above.min(DEPTH))),
    }
}

fn write_workers(page: &mut String, look: &ActorsLook) {
    page.push_str("<h2>Workers</h2><div class=\"scroll\"><table><tr>");
    for head in ["worker", "turns", "steals", "parks", "queued", "runs"] {
        let _ = write!(page, "<th>{head}</th>");
    }
    page.push_str("</tr>\n");
    for (index, worker) in look.stats.workers.iter().enumerate() {
        let numbers = [worker.runs, worker.steals, worker.parks];
        let [turns, steals, parks] = numbers.map(|number| short(number as f64));
        let _ = write!(
            page,
            "<tr><td>{index}</td><td>{turns}</td><td>{steals}</td><td>{parks}</td>\
             <td>{}</td><td>",
            worker.queued
        );
        match look.stats.running.get(index).and_then(Option::as_ref) {
            Some(turn) => {
                escape(page, &turn.task.to_string());
                let _ = write!(
                    page,
                    " for {}",
                    time(Some(look.at.duration_since(turn.since)))
                );
            }
            None => page.push('–'),
        }
        page.push_str("</td></tr>\n");
    }
    page.push_str("</table></div>");
}
