//! The chart: the cost of a message and of a spawn by the number of live actors.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::figures;
use crate::point::{LIVE, Point, WAYS, WORKERS};
use crate::tables::{Results, in_words};

type Drawn<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (1000, 460);
/// The height of the legend under the panels.
const LEGEND: u32 = 50;
const FONT: &str = "sans-serif";
/// One colour for each number of workers; they differ for the colour-blind, too.
const COLOURS: [RGBColor; WORKERS.len()] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 114, 178),
    RGBColor(204, 121, 167),
];

/// Draws one panel for messages, one for spawns, and the legend.
pub fn draw(path: &Path, results: &Results) -> Drawn {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (panels, legend) = root.split_vertically(SIZE.1 - LEGEND);
    let (left, right) = panels.split_horizontally(SIZE.0 / 2);
    panel(&left, results, "A message", figures::MESSAGE.time)?;
    panel(
        &right,
        results,
        "Spawn, one message, end",
        figures::SPAWN.time,
    )?;
    explain(&legend)?;
    root.present()?;
    Ok(())
}

/// Draws a line for each way and number of workers.
fn panel(area: &Area<'_>, results: &Results, title: &str, what: &str) -> Drawn {
    let lines = WAYS.map(|(way, _)| WORKERS.map(|workers| points(results, way, workers, what)));
    let greatest = lines.iter().flatten().flatten().map(|point| point.1);
    let greatest = greatest.fold(1.0, f64::max);
    let (least, most) = (LIVE[0] as f64, LIVE[LIVE.len() - 1] as f64);
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 18))
        .margin(10)
        .margin_right(20)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((least / 1.3..most * 1.3).log_scale(), 0.0..greatest * 1.05)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_labels(LIVE.len())
        .x_desc("live actors")
        .y_desc(what)
        .y_label_formatter(&|nanoseconds| format!("{nanoseconds:.0}"))
        .x_label_formatter(&|live| power_of_ten(*live))
        .draw()?;
    for (way, lines) in lines.into_iter().enumerate() {
        for (line, colour) in lines.into_iter().zip(COLOURS) {
            let style = colour.stroke_width(2);
            if way == 0 {
                chart.draw_series(LineSeries::new(line.clone(), style))?;
            } else {
                chart.draw_series(DashedLineSeries::new(line.clone(), 6, 5, style))?;
            }
            let dots = line
                .into_iter()
                .map(|point| Circle::new(point, 3, style.filled()));
            chart.draw_series(dots)?;
        }
    }
    Ok(())
}

/// Returns the medians of one line.
fn points(results: &Results, way: &'static str, workers: usize, what: &str) -> Vec<(f64, f64)> {
    let medians = LIVE.into_iter().filter_map(|live| {
        let median = results.median(way, Point::Cost { live, workers }, what)?;
        Some((live as f64, median.middle))
    });
    medians.collect()
}

/// Formats 10 000 as "10⁴".
fn power_of_ten(number: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let power = number.log10().round() as usize;
    DIGITS
        .get(power)
        .map_or(number.to_string(), |digit| format!("10{digit}"))
}

/// Draws the legend for colours and strokes.
fn explain(area: &Area<'_>) -> Drawn {
    const STROKE: i32 = 30;
    const STEP: i32 = 140;
    let mut x = 70;
    for (workers, colour) in WORKERS.into_iter().zip(COLOURS) {
        let stroke = [(x, 20), (x + STROKE, 20)];
        area.draw(&PathElement::new(stroke, colour.stroke_width(2)))?;
        let name = Text::new(in_words(workers), (x + STROKE + 8, 13), (FONT, 15));
        area.draw(&name)?;
        x += STEP;
    }
    for (place, (way, _)) in WAYS.iter().enumerate() {
        let (dashes, length) = if place == 0 { (1, STROKE) } else { (3, 8) };
        for begin in (x..).step_by(11).take(dashes) {
            let dash = [(begin, 20), (begin + length, 20)];
            area.draw(&PathElement::new(dash, BLACK.stroke_width(2)))?;
        }
        area.draw(&Text::new(*way, (x + STROKE + 8, 13), (FONT, 15)))?;
        x += STEP;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::power_of_ten;

    #[test]
    fn powers_of_ten_are_written_as_such() {
        assert_eq!([100.0, 1e6].map(power_of_ten), ["10²", "10⁶"]);
    }
}
