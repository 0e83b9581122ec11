//! `/actors`: the workers and the busiest actors, for people.
//!
//! The page needs nothing from elsewhere and has no script. Each text in it is escaped.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use greenroom::{ActorStatus, Runtime, Stats};

use super::escape::escape;
use super::mount::Mount;
use crate::message::HttpResponse;

/// The number of actors that are shown at most.
const SHOWN: usize = 1000;
/// The time that the chart shows, and the least time between two of its moments.
const SPAN: Duration = Duration::from_secs(300);
const APART: Duration = Duration::from_millis(500);
/// The seconds between two pages of a reader.
const REFRESH: u64 = 2;

/// Returns the page `/actors`: the workers, the busiest actors, and a chart of the last minutes.
///
/// It shows at most 1000 actors, those with the longest turns or the most waiting messages first. It
/// refreshes itself every 2 s. The chart has the last 5 minutes, as far as the page was asked for.
///
/// ```
/// use greenroom_http::{Server, actors_page};
///
/// let server = Server::bind("127.0.0.1:0").mount(actors_page());
/// # drop(server);
/// ```
pub fn actors_page() -> Mount {
    let chart = Mutex::new(Chart::default());
    Mount::new("/actors", move |_, _| {
        let Some(runtime) = Runtime::try_current() else {
            return HttpResponse::new(503, "there is no runtime");
        };
        let (stats, actors) = (runtime.stats(), runtime.actors(SHOWN));
        let mut chart = chart.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        chart.add(now, stats.total().runs);
        respond(page(&stats, &actors, &chart, now))
    })
}

/// Answers with a page that a browser shows as it is, and that asks for nothing else.
fn respond(page: String) -> HttpResponse {
    HttpResponse::new(200, page)
        .header("content-type", "text/html; charset=utf-8")
        .header("cache-control", "no-store")
        .header("referrer-policy", "no-referrer")
        .header("refresh", &REFRESH.to_string())
        .header(
            "content-security-policy",
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
}

/// Turns a second, between the moments at which they were counted.
#[derive(Default)]
struct Chart {
    last: Option<(Instant, u64)>,
    rates: VecDeque<Rate>,
}

struct Rate {
    from: Instant,
    to: Instant,
    turns: f64,
}

impl Chart {
    fn add(&mut self, now: Instant, turns: u64) {
        if let Some((from, before)) = self.last {
            let time = now.saturating_duration_since(from);
            // Two readers at the same time are no moments of their own.
            if time < APART {
                return;
            }
            self.rates.push_back(Rate {
                from,
                to: now,
                turns: turns.saturating_sub(before) as f64 / time.as_secs_f64(),
            });
        }
        self.last = Some((now, turns));
        while let Some(oldest) = self.rates.front()
            && now.saturating_duration_since(oldest.to) > SPAN
        {
            self.rates.pop_front();
        }
    }

    /// Draws the chart up to now, 600 by 80 pixels.
    fn draw(&self, page: &mut String, now: Instant) {
        let most = self.rates.iter().map(|it| it.turns).fold(1.0, f64::max);
        let x = |at: Instant| {
            let ago = now.saturating_duration_since(at).as_secs_f64();
            (600.0 * (1.0 - ago / SPAN.as_secs_f64())).max(0.0)
        };
        let points = self.rates.iter().map(|rate| {
            let y = 79.0 - 78.0 * rate.turns / most;
            format!("{:.1},{y:.0} {:.1},{y:.0}", x(rate.from), x(rate.to))
        });
        let points: Vec<_> = points.collect();
        let _ = write!(
            page,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"600\" height=\"80\" role=\"img\">\
             <title>turns a second</title>\
             <rect width=\"600\" height=\"80\" fill=\"#f4f4f4\"/>\
             <polyline points=\"{}\" fill=\"none\" stroke=\"#06c\"/></svg>\
             <p>Turns a second in the last {} minutes, at most {most:.0}.</p>",
            points.join(" "),
            SPAN.as_secs() / 60
        );
    }
}

fn page(stats: &Stats, actors: &[ActorStatus], chart: &Chart, now: Instant) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>Actors</title></head><body><h1>Actors</h1>",
    );
    chart.draw(&mut page, now);
    table(
        &mut page,
        "Workers",
        &["worker", "turns", "steals", "parks", "queued"],
        {
            stats.workers.iter().enumerate().map(|(index, worker)| {
                let numbers = [
                    worker.runs,
                    worker.steals,
                    worker.parks,
                    worker.queued as u64,
                ];
                let numbers = numbers.map(|number| number.to_string());
                std::iter::once(index.to_string()).chain(numbers).collect()
            })
        },
    );
    let _ = write!(
        page,
        "<p>{} actors, of which {} are shown; {} tasks; {} tasks and actors are ready.</p>",
        stats.actors.len(),
        actors.len(),
        stats.tasks,
        stats.queued
    );
    // The busiest come first, as the runtime lists them.
    let heads = ["id", "name", "state", "mailbox", "incarnation", "busy"];
    table(&mut page, "Busiest actors", &heads, actors.iter().map(row));
    page.push_str("</body></html>\n");
    page
}

fn row(actor: &ActorStatus) -> Vec<String> {
    let state = if actor.is_dormant { "dormant" } else { "ready" };
    let busy = actor
        .busy
        .map_or("not counted".to_owned(), |busy| format!("{busy:.1?}"));
    vec![
        actor.task.id().to_string(),
        actor.task.called().into_owned(),
        state.to_owned(),
        actor.mailbox.to_string(),
        actor.incarnation.to_string(),
        busy,
    ]
}

fn table(page: &mut String, title: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = write!(
        page,
        "<h2>{title}</h2><table border=\"1\" cellpadding=\"4\"><tr>"
    );
    for head in heads {
        let _ = write!(page, "<th>{head}</th>");
    }
    page.push_str("</tr>");
    for row in rows {
        page.push_str("<tr>");
        for cell in row {
            page.push_str("<td>");
            // The title and the heads are written in this file; a cell may have a name of users.
            escape(page, &cell);
            page.push_str("</td>");
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the corners of the chart after turns were counted at these seconds.
    fn drawn(counts: &[(u64, u64)]) -> String {
        let (begun, mut chart, mut page) = (Instant::now(), Chart::default(), String::new());
        let mut now = begun;
        for (second, turns) in counts {
            now = begun + Duration::from_secs(*second);
            chart.add(now, *turns);
        }
        chart.draw(&mut page, now);
        let (_, points) = page.split_once("points=\"").unwrap();
        points.split('"').next().unwrap().to_owned()
    }

    #[test]
    fn the_chart_has_the_turns_a_second_of_the_last_minutes() {
        assert_eq!(drawn(&[(0, 7)]), "");
        assert_eq!(drawn(&[(0, 7), (0, 8), (30, 37)]), "540.0,1 600.0,1");
        let two = drawn(&[(0, 0), (30, 3000), (60, 4500)]);
        assert_eq!(two, "480.0,1 540.0,1 540.0,40 600.0,40");
        // What was before the last minutes is not shown, and a part of what began before.
        let later = drawn(&[(0, 0), (30, 3000), (400, 6700), (401, 6700)]);
        assert_eq!(later, "0.0,1 598.0,1 598.0,79 600.0,79");
    }
}
