//! The start view: what to look at, and the figures of the runtime.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Screen;
use super::paint::{
    DIM, PLAIN, REVERSED, fill, heading, put, short, sparkline, thousands, trouble_style,
};
use crate::input::Action;
use crate::model::{Model, WorkerFigures};
use crate::why::{Suspect, Trouble, duration};

/// Returns the first suspect of each kind, if there is one.
pub(super) fn rows(screen: &Screen) -> Vec<Option<&Suspect>> {
    let kinds = Trouble::ALL.into_iter();
    kinds
        .map(|trouble| screen.suspects.of(trouble).first())
        .collect()
}

pub(super) fn draw(screen: &mut Screen, model: &Model, area: Rect, buffer: &mut Buffer) {
    heading(buffer, area, 0, "Look at");
    for (at, trouble) in Trouble::ALL.into_iter().enumerate() {
        let row = at as u16 * 2 + 1;
        draw_suspect(screen, model, trouble, row, area, buffer);
        if screen.kind_at == at {
            fill(buffer, area, row, REVERSED);
        }
        let place = Rect::new(area.x, area.y + row, area.width, 2);
        let click = match at == screen.kind_at {
            true => Action::Open,
            false => Action::Move(at as i32 - screen.kind_at as i32),
        };
        screen.spots.push((place.intersection(area), click));
    }
    let rest = Rect::new(
        area.x,
        area.y + 9,
        area.width,
        area.height.saturating_sub(9),
    );
    let row = draw_totals(model, rest, buffer);
    draw_workers(model, row, rest, buffer);
}

/// Draws the first suspect of a kind: its name, and below it what is known.
fn draw_suspect(
    screen: &Screen,
    model: &Model,
    trouble: Trouble,
    row: u16,
    area: Rect,
    buffer: &mut Buffer,
) {
    let count = screen.suspects.count(trouble);
    let word = format!(" {:<9}{count:>6}", trouble.word());
    let Some(first) = screen.suspects.of(trouble).first() else {
        put(buffer, area, 0, row, &word, DIM);
        let ended = model.log().iter().filter(|line| line.level == "error");
        let ended = ended.count();
        if trouble == Trouble::Faulting && ended > 0 {
            let text = format!("{ended} ended by a panic: the log (5) has them");
            put(buffer, area, 11, row + 1, &text, trouble_style(trouble));
        }
        return;
    };
    put(buffer, area, 0, row, &word, trouble_style(trouble));
    put(buffer, area, 18, row, &model.label(first.actor), PLAIN);
    put(buffer, area, 11, row + 1, &first.says, DIM);
}

/// Draws the figures of the whole runtime, and returns the next row.
fn draw_totals(model: &Model, area: Rect, buffer: &mut Buffer) -> u16 {
    let (figures, series) = (model.figures(), model.series());
    heading(buffer, area, 0, "Runtime");
    let room = usize::from(area.width.saturating_sub(34)).min(60);
    let lines = [
        (
            "messages/s",
            series.messages.back().copied().unwrap_or(0),
            &series.messages,
        ),
        ("ready", figures.queued, &series.queued),
        ("actors", figures.actors, &series.actors),
    ];
    for (at, (name, value, values)) in lines.into_iter().enumerate() {
        let row = at as u16 + 1;
        put(
            buffer,
            area,
            1,
            row,
            &format!("{name:<11}{:>12}", thousands(value)),
            PLAIN,
        );
        put(
            buffer,
            area,
            26,
            row,
            &sparkline(values.iter(), room),
            PLAIN,
        );
    }
    let blocking = &figures.blocking;
    let text = format!(
        " tasks {}   timers {}   injector {}   blocking: threads {}, idle {}, waiting {}",
        figures.tasks,
        figures.timers,
        figures.injector,
        blocking.threads,
        blocking.idle,
        blocking.waiting,
    );
    put(buffer, area, 0, 4, &text, PLAIN);
    5
}

fn draw_workers(model: &Model, row: u16, area: Rect, buffer: &mut Buffer) {
    let head = "Worker  turns/s steals/s parks/s queued  runs";
    put(buffer, area, 0, row, head, super::paint::BOLD);
    let workers = &model.figures().workers;
    let room = usize::from(area.height.saturating_sub(row + 1));
    let is_cut = workers.len() > room;
    for (at, worker) in workers.iter().enumerate().take(room) {
        let row = row + 1 + at as u16;
        if is_cut && at + 1 == room {
            let more = format!(
                " and {} more workers: a higher terminal shows them",
                workers.len() - at
            );
            put(buffer, area, 0, row, &more, DIM);
            return;
        }
        draw_worker(model, at, worker, row, area, buffer);
    }
}

fn draw_worker(
    model: &Model,
    at: usize,
    worker: &WorkerFigures,
    row: u16,
    area: Rect,
    buffer: &mut Buffer,
) {
    let series = model.series();
    let turns = series.turns.get(at);
    let rate = turns.and_then(|turns| turns.back()).copied().unwrap_or(0);
    let (steals, parks) = series.calm.get(at).copied().unwrap_or_default();
    let text = format!(
        "{at:>6} {:>8} {:>8} {:>7} {:>6}  ",
        short(rate),
        short(steals),
        short(parks),
        short(worker.queued),
    );
    let column = put(buffer, area, 0, row, &text, PLAIN);
    let runs = worker.runs.as_ref();
    let column = match runs {
        Some(runs) => {
            let text = format!("{} for {} ", model.label(runs.id), duration(runs.for_us));
            put(buffer, area, column, row, &text, PLAIN)
        }
        None => put(buffer, area, column, row, "- ", DIM),
    };
    let room = usize::from(area.width.saturating_sub(column));
    let line = turns
        .map(|turns| sparkline(turns.iter(), room))
        .unwrap_or_default();
    put(buffer, area, column, row, &line, PLAIN);
}
