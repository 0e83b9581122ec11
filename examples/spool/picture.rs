//! The picture of a run: load, queue, average and refusals over time.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::Sample;

/// What a row of the picture shows.
type Row = (&'static str, fn(&Sample) -> f64);

const ROWS: [Row; 4] = [
    ("requests in flight", |sample| sample.load as f64),
    ("requests in the queue", |sample| {
        sample.status.waiting as f64
    }),
    ("average response time, ms", |sample| {
        sample.status.average.as_secs_f64() * 1e3
    }),
    ("refused so far", |sample| sample.status.refused() as f64),
];

/// Draws the samples, one row for each figure.
pub fn draw(path: &Path, samples: &[Sample]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (800, 600)).into_drawing_area();
    area.fill(&WHITE)?;
    let end = samples.last().map_or(0.0, |last| last.time.as_secs_f64());
    for ((name, figure), row) in ROWS.iter().zip(area.split_evenly((ROWS.len(), 1))) {
        let most = samples.iter().map(figure).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(&row)
            .margin(8)
            .set_left_and_bottom_label_area_size(40)
            .caption(name, ("sans-serif", 14))
            .build_cartesian_2d(0.0..end, 0.0..most)?;
        let mesh = &mut chart.configure_mesh();
        mesh.disable_x_mesh().x_labels(8).y_labels(4).draw()?;
        let points = samples.iter().map(|it| (it.time.as_secs_f64(), figure(it)));
        chart.draw_series(LineSeries::new(points, &BLUE))?;
    }
    area.present()?;
    Ok(())
}
