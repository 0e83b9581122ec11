//! The chart: how many times as good as each peer greenroom is, one row for each figure.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::roster::{OURS, Peer};
use crate::table::Line;

/// The height of a row, and of the heading and the axis together.
const ROW: u32 = 24;
const MARGINS: u32 = 90;
/// The width of the chart, and of the names of the peers in it.
const WIDTH: u32 = 1000;
const NAMES: u32 = 110;
const FONT: &str = "sans-serif";

/// Draws the first figure of each case and all figures with a goal.
pub fn draw(
    path: &Path,
    lines: &[Line],
    peers: &[&Peer],
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let rows: Vec<&Line> = lines.iter().filter(|line| line.is_charted()).collect();
    let height = MARGINS + ROW * rows.len() as u32;
    let root = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(WIDTH - NAMES);

    let ratios = rows
        .iter()
        .flat_map(|row| (0..peers.len()).filter_map(|peer| row.ratio(peer)));
    let (least, greatest) = ratios.fold((0.5, 2.0), |(least, greatest): (f64, f64), ratio| {
        (least.min(ratio), greatest.max(ratio))
    });
    let count = i32::try_from(rows.len())?;
    let name = |row: &i32| {
        let row = usize::try_from(-row).ok().and_then(|row| rows.get(row));
        row.map(|row| row.name()).unwrap_or_default()
    };
    let mut chart = ChartBuilder::on(&left)
        .caption(
            "How many times as good as each peer greenroom is",
            (FONT, 18),
        )
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(230)
        .build_cartesian_2d((least / 1.2..greatest * 1.2).log_scale(), -count..1)?;
    chart
        .configure_mesh()
        .x_labels(12)
        .y_labels(rows.len() + 2)
        .max_light_lines(0)
        .y_label_formatter(&name)
        .x_label_formatter(&|ratio| format!("{ratio}"))
        .draw()?;
    let even = PathElement::new([(1.0, -count), (1.0, 1)], BLACK);
    chart.draw_series([even])?;

    let others = peers.iter().enumerate();
    let others = others.filter(|(_, peer)| peer.name != OURS);
    for (place, (peer, Peer { name, .. })) in others.enumerate() {
        let style = Palette99::pick(place).filled();
        let ratios = (0..).zip(&rows);
        let dots = ratios.filter_map(|(row, line)| Some((line.ratio(peer)?, -row)));
        chart.draw_series(dots.map(|dot| Circle::new(dot, 5, style)))?;
        let top = 50 + 20 * i32::try_from(place)?;
        right.draw(&Circle::new((10, top), 5, style))?;
        right.draw(&Text::new(*name, (22, top - 7), (FONT, 15)))?;
    }
    root.present()?;
    Ok(())
}
