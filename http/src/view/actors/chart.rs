//! The charts of the last minutes, as pictures that are made here.
//!
//! Their colours are in the style of the page.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::{Duration, Instant};

use greenroom::Stats;

use super::figures::short;

/// The minutes that the charts show.
const MINUTES: u64 = 5;
const SPAN: Duration = Duration::from_secs(60 * MINUTES);

/// The size of a chart, and the edges of its field. Texts fit a screen of 400 pixels.
const SIZE: (f64, f64) = (400.0, 160.0);
const LEFT: f64 = 40.0;
const RIGHT: f64 = 392.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 136.0;

/// The load of a runtime at the looks of the last minutes.
#[derive(Default)]
pub(super) struct LoadChart {
    last: Option<(Instant, u64)>,
    points: VecDeque<LoadPoint>,
}

struct LoadPoint {
    at: Instant,
    /// The look before, and the turns and messages a second since then.
    rates: Option<(Instant, f64, f64)>,
    /// The messages that wait, and the tasks and actors that are queued.
    waiting: f64,
    queued: f64,
}

/// A line of a chart: what it shows, and its corners as times and values.
struct ChartLine {
    label: &'static str,
    corners: Vec<(Instant, f64)>,
}

impl LoadChart {
    /// Adds a look, with the messages that were handled since the one before.
    pub(super) fn add(&mut self, now: Instant, stats: &Stats, messages: u64) {
        let waiting = stats.actors.iter().map(|actor| actor.mailbox).sum();
        let counts = [stats.total().runs, messages];
        self.add_counts(now, counts, waiting, stats.queued);
    }

    fn add_counts(
        &mut self,
        now: Instant,
        [turns, messages]: [u64; 2],
        waiting: usize,
        queued: usize,
    ) {
        let rates = self.last.map(|(from, before)| {
            let time = now.saturating_duration_since(from).as_secs_f64();
            let turns = turns.saturating_sub(before) as f64 / time;
            (from, turns, messages as f64 / time)
        });
        self.points.push_back(LoadPoint {
            at: now,
            rates,
            waiting: waiting as f64,
            queued: queued as f64,
        });
        self.last = Some((now, turns));
        while let Some(oldest) = self.points.front()
            && now.saturating_duration_since(oldest.at) > SPAN
        {
            self.points.pop_front();
        }
    }

    /// Draws the charts up to now.
    pub(super) fn draw(&self, now: Instant) -> String {
        let steps = |value: fn((f64, f64)) -> f64| -> Vec<_> {
            let rates = self.points.iter().filter_map(|it| Some((it.rates?, it.at)));
            let corners = rates.flat_map(|((from, turns, messages), at)| {
                let value = value((turns, messages));
                [(from, value), (at, value)]
            });
            corners.collect()
        };
        let levels = |value: fn(&LoadPoint) -> f64| -> Vec<_> {
            let corners = self.points.iter().map(|it| (it.at, value(it)));
            corners.collect()
        };
        let mut page = String::from("<div class=\"charts\">");
        let lines = [
            ChartLine {
                label: "turns",
                corners: steps(|(turns, _)| turns),
            },
            ChartLine {
                label: "messages handled",
                corners: steps(|(_, messages)| messages),
            },
        ];
        draw_chart(&mut page, "Turns and messages", "a second", &lines, now);
        let lines = [
            ChartLine {
                label: "messages waiting",
                corners: levels(|it| it.waiting),
            },
            ChartLine {
                label: "queued",
                corners: levels(|it| it.queued),
            },
        ];
        draw_chart(&mut page, "Waiting", "count", &lines, now);
        page.push_str("</div>");
        page
    }
}

/// Returns the end of an axis that has room for this value, with a round number in its middle.
fn end_of_axis(most: f64) -> f64 {
    let mut power = 1.0;
    loop {
        for digit in [2.0, 4.0, 10.0] {
            if most <= digit * power {
                return digit * power;
            }
        }
        power *= 10.0;
    }
}

/// Draws a chart with its axes, the unit and a legend.
fn draw_chart(page: &mut String, title: &str, unit: &str, lines: &[ChartLine], now: Instant) {
    let values = lines.iter().flat_map(|line| &line.corners);
    let end = end_of_axis(values.map(|(_, value)| *value).fold(0.0, f64::max));
    let (width, height) = SIZE;
    let _ = write!(
        page,
        "<figure><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\
         <title>{title}, {unit}, in the last {MINUTES} minutes</title>\
         <text x=\"4\" y=\"12\">{title}, {unit}</text>"
    );
    for tick in [0.0, 0.5, 1.0] {
        let y = BOTTOM - tick * (BOTTOM - TOP);
        let _ = write!(
            page,
            "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{RIGHT}\" y2=\"{y}\"/>\
             <text class=\"end\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 5.0,
            y + 3.5,
            short(tick * end)
        );
    }
    for minute in 0..=MINUTES {
        let x = RIGHT - (RIGHT - LEFT) * minute as f64 / MINUTES as f64;
        let (class, text) = match minute {
            0 => ("end", "now".to_owned()),
            MINUTES => ("", format!("{minute} min ago")),
            _ => ("middle", minute.to_string()),
        };
        let _ = write!(
            page,
            "<line x1=\"{x}\" y1=\"{BOTTOM}\" x2=\"{x}\" y2=\"{}\"/>\
             <text class=\"{class}\" x=\"{x}\" y=\"{}\">{text}</text>",
            BOTTOM + 4.0,
            BOTTOM + 16.0
        );
    }
    // The first line is drawn last, above the others.
    for (number, line) in lines.iter().enumerate().rev() {
        let corners = line.corners.iter();
        let mut points: Vec<_> = corners.map(|it| corner(*it, end, now)).collect();
        // A line of one corner would not be seen.
        if let [only] = &points[..] {
            points.push(only.clone());
        }
        let points = points.join(" ");
        let _ = write!(
            page,
            "<polyline class=\"line{number}\" points=\"{points}\"/>"
        );
    }
    page.push_str("</svg><figcaption>");
    for (number, line) in lines.iter().enumerate() {
        let last = line.corners.last();
        let last = last.map_or("–".to_owned(), |(_, value)| short(*value));
        let _ = write!(
            page,
            "<span class=\"item\"><span class=\"key{number}\"></span> {}: {last}</span> ",
            line.label
        );
    }
    page.push_str("</figcaption></figure>");
}

/// Returns the place of a value at a moment.
fn corner((at, value): (Instant, f64), end: f64, now: Instant) -> String {
    let ago = now.saturating_duration_since(at).as_secs_f64() / SPAN.as_secs_f64();
    let x = (RIGHT - ago * (RIGHT - LEFT)).max(LEFT);
    let y = BOTTOM - value / end * (BOTTOM - TOP);
    format!("{x:.1},{y:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the charts after turns, messages and messages that wait were counted at these seconds.
    fn drawn(counts: &[(u64, u64, u64, usize)]) -> String {
        let (begun, mut chart) = (Instant::now(), LoadChart::default());
        let mut now = begun;
        for (second, turns, messages, waiting) in counts {
            now = begun + Duration::from_secs(*second);
            chart.add_counts(now, [*turns, *messages], *waiting, 0);
        }
        chart.draw(now)
    }

    /// Returns the corners of the first line of each chart.
    fn first_lines(page: &str) -> Vec<&str> {
        let lines = page.split("class=\"line0\" points=\"").skip(1);
        lines.map(|rest| rest.split('"').next().unwrap()).collect()
    }

    #[test]
    fn a_chart_has_the_rates_and_levels_of_the_last_minutes() {
        // 352 units are 5 minutes, and 114 the height.
        assert_eq!(
            first_lines(&drawn(&[(0, 7, 0, 0)])),
            ["", "392.0,136.0 392.0,136.0"]
        );
        let two = drawn(&[(0, 0, 0, 4), (150, 300, 0, 2), (300, 450, 0, 0)]);
        let rates = "40.0,22.0 216.0,22.0 216.0,79.0 392.0,79.0";
        assert_eq!(
            first_lines(&two),
            [rates, "40.0,22.0 216.0,79.0 392.0,136.0"]
        );
        // What was before is not shown, and a part of what began before.
        let later = drawn(&[
            (0, 0, 0, 9),
            (100, 100, 0, 9),
            (450, 800, 0, 2),
            (600, 800, 0, 2),
        ]);
        let rates = "40.0,22.0 216.0,22.0 216.0,136.0 392.0,136.0";
        assert_eq!(first_lines(&later)[0], rates);
        assert_eq!(first_lines(&later)[1], "216.0,22.0 392.0,22.0");
    }

    #[test]
    fn a_chart_has_axes_with_units_and_a_legend() {
        let page = drawn(&[(0, 0, 0, 0), (1, 1500, 700, 3)]);
        for text in [
            ">Turns and messages, a second<",
            ">Waiting, count<",
            ">5 min ago<",
            ">now<",
            // The middles and the ends of both axes.
            ">1k<",
            ">2k<",
            ">2<",
            ">4<",
            "</span> turns: 1.5k<",
            "</span> messages handled: 700<",
            "</span> messages waiting: 3<",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        let ends = [0.0, 2.0, 2.1, 5.0, 11.0, 40.0, 41.0, 123_456.0].map(end_of_axis);
        assert_eq!(ends, [2.0, 2.0, 4.0, 10.0, 20.0, 40.0, 100.0, 200_000.0]);
    }
}
