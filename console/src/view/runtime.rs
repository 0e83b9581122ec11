//! The start view: what to look at, and the figures of the runtime.

use super::Screen;
use super::paint::{BOLD, DIM, PLAIN, REVERSED, short, sparkline, thousands, trouble_style};
use super::pane::Pane;
use crate::model::{Model, WorkerFigures};
use crate::why::{Trouble, duration};

pub(super) fn draw(screen: &Screen, model: &Model, pane: &mut Pane<'_>) {
    pane.heading(0, "Look at");
    for (at, trouble) in Trouble::ALL.into_iter().enumerate() {
        let row = at as u16 * 2 + 1;
        draw_suspect(screen, model, trouble, row, pane);
        if screen.kind_at == at {
            pane.fill(row, REVERSED);
        }
        pane.on_click_row(row, at, screen.kind_at);
        pane.on_click_row(row + 1, at, screen.kind_at);
    }
    draw_totals(model, &mut pane.below(9));
    draw_workers(model, &mut pane.below(14));
}

/// Draws the first suspect of a kind: its name, and below it what is known.
fn draw_suspect(screen: &Screen, model: &Model, trouble: Trouble, row: u16, pane: &mut Pane<'_>) {
    let count = screen.suspects.count(trouble);
    let word = format!(" {:<9}{count:>6}", trouble.word());
    let Some(first) = screen.suspects.of(trouble).first() else {
        pane.put(0, row, word, DIM);
        let ended = model.log().iter().filter(|line| line.level == "error");
        let ended = ended.count();
        if trouble == Trouble::Faulting && ended > 0 {
            let text = format!("{ended} ended by a panic: the log (5) has them");
            pane.put(11, row + 1, text, trouble_style(trouble));
        }
        return;
    };
    pane.put(0, row, word, trouble_style(trouble));
    pane.put(18, row, model.label(first.actor), PLAIN);
    pane.put(11, row + 1, &first.says, DIM);
}

/// Draws the figures of the whole runtime.
fn draw_totals(model: &Model, pane: &mut Pane<'_>) {
    let (figures, series) = (model.figures(), model.series());
    pane.heading(0, "Runtime");
    let room = usize::from(pane.width().saturating_sub(34)).min(60);
    let messages = series.messages.back().copied().unwrap_or(0);
    let lines = [
        ("messages/s", messages, &series.messages),
        ("queued", figures.queued, &series.queued),
        ("actors", figures.actors, &series.actors),
    ];
    for ((name, value, values), row) in lines.into_iter().zip(1..) {
        let text = format!("{name:<11}{:>12}", thousands(value));
        pane.put(1, row, text, PLAIN);
        pane.put(26, row, sparkline(values.iter(), room), PLAIN);
    }
    let blocking = &figures.blocking;
    let text = format!(
        " tasks {}   timers {}   injector {}   pinned {}   blocking {}, idle {}, waiting {}",
        figures.tasks,
        figures.timers,
        figures.injector,
        figures.pinned,
        blocking.threads,
        blocking.idle,
        blocking.waiting,
    );
    pane.put(0, 4, text, PLAIN);
}

fn draw_workers(model: &Model, pane: &mut Pane<'_>) {
    let head = "Worker  turns/s steals/s parks/s queued  runs";
    pane.put(0, 0, head, BOLD);
    let workers = &model.figures().workers;
    let room = usize::from(pane.height().saturating_sub(1));
    let is_cut = workers.len() > room;
    for (at, worker) in workers.iter().enumerate().take(room) {
        let row = 1 + at as u16;
        if is_cut && at + 1 == room {
            let more = workers.len() - at;
            let more = format!(" and {more} more workers: a higher terminal shows them");
            pane.put(0, row, more, DIM);
            return;
        }
        draw_worker(model, at, worker, row, pane);
    }
}

fn draw_worker(model: &Model, at: usize, worker: &WorkerFigures, row: u16, pane: &mut Pane<'_>) {
    let series = model.series();
    let turns = series.turns.get(at);
    let rate = turns.and_then(|turns| turns.back()).copied().unwrap_or(0);
    let (steals, parks) = series.steals_and_parks.get(at).copied().unwrap_or_default();
    let text = format!(
        "{at:>6} {:>8} {:>8} {:>7} {:>6}  ",
        short(rate),
        short(steals),
        short(parks),
        short(worker.queued),
    );
    let column = pane.put(0, row, text, PLAIN);
    let column = match &worker.runs {
        Some(runs) => {
            let text = format!("{} for {} ", model.label(runs.id), duration(runs.for_us));
            pane.put(column, row, text, PLAIN)
        }
        None => pane.put(column, row, "– ", DIM),
    };
    let room = usize::from(pane.width().saturating_sub(column));
    if let Some(turns) = turns {
        pane.put(column, row, sparkline(turns.iter(), room), PLAIN);
    }
}
