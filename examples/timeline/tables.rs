//! The two tables below the plot: the actors by time in turns, and the longest turns.

use std::cmp::Reverse;

use super::picture::{MARGIN, Picture, Time, short};
use super::record::{Actor, Turn};

/// How many actors have bars.
const ACTORS: usize = 15;
/// How many of the longest turns are listed.
const LONGEST: usize = 10;

const LINE: f64 = 19.0;
/// Where the actors' names end and their two bars begin, and how long a bar is at most.
const NAMES: f64 = 170.0;
const BUSY: (f64, f64) = (180.0, 200.0);
const RUNS: (f64, f64) = (460.0, 110.0);
/// Where the columns of the list begin or, for the two times, end.
const SWATCH: f64 = 690.0;
const ACTOR: f64 = 712.0;
const WORKER: f64 = 890.0;
const START: f64 = 1080.0;
const TOOK: f64 = 1180.0;

impl Picture<'_> {
    pub fn tables(&mut self) {
        let top = self.y;
        self.actors();
        let left = std::mem::replace(&mut self.y, top);
        self.longest();
        self.y = self.y.max(left) + 20.0;
    }

    /// Draws two bars for each of the busiest actors.
    fn actors(&mut self) {
        let all = &self.recording.actors;
        let mut actors: Vec<(usize, &Actor)> = all.iter().enumerate().collect();
        actors.sort_by_key(|(_, actor)| (Reverse(actor.busy), &actor.name));
        actors.truncate(ACTORS);
        let busiest = actors
            .first()
            .map_or(0.0, |(_, actor)| actor.busy.as_secs_f64());
        let most = actors
            .iter()
            .map(|(_, actor)| actor.runs)
            .max()
            .unwrap_or(0);
        let title = format!(
            "Actors by time in turns ({} of {})",
            actors.len(),
            all.len()
        );
        self.canvas.text("head", MARGIN, self.y + 12.0, title);
        self.canvas.text("head", RUNS.0, self.y + 12.0, "Turns");
        self.y += 24.0;
        for (index, actor) in actors {
            let y = self.y;
            let class = format!("k{}", self.kind_of[index]);
            self.canvas.text("end", NAMES, y + 12.0, short(&actor.name));
            let share = actor.busy.as_secs_f64() / busiest.max(1e-9);
            self.bar(&class, BUSY, share, Time(actor.busy).to_string());
            let share = actor.runs as f64 / most.max(1) as f64;
            self.bar("bar", RUNS, share, actor.runs.to_string());
            self.y += LINE;
        }
    }

    fn bar(&mut self, class: &str, (x, longest): (f64, f64), share: f64, label: String) {
        let width = (share * longest).max(1.0);
        self.canvas.rect(class, [x, self.y, width, 14.0], "");
        self.canvas
            .text("small", x + width + 6.0, self.y + 11.5, label);
    }

    fn longest(&mut self) {
        let lanes = self.recording.lanes.iter();
        let turns = lanes.flat_map(|lane| lane.turns.iter().map(|turn| (turn, lane.name.as_str())));
        let mut turns: Vec<(&Turn, &str)> = turns.collect();
        turns.sort_by_key(|(turn, _)| (Reverse(turn.took), turn.start));
        turns.truncate(LONGEST);
        let y = self.y + 12.0;
        self.canvas.text("head", SWATCH, y, "Longest turns");
        self.canvas.text("head", WORKER, y, "Worker");
        self.canvas.text("head end", START, y, "Start");
        self.canvas.text("head end", TOOK, y, "Took");
        self.y += 24.0;
        for (turn, worker) in turns {
            let y = self.y + 12.0;
            let name = short(&self.recording.actors[turn.actor].name);
            let class = format!("k{}", self.kind_of[turn.actor]);
            self.canvas
                .rect(&class, [SWATCH, self.y + 2.0, 12.0, 12.0], "");
            self.canvas.text("", ACTOR, y, name);
            self.canvas.text("", WORKER, y, worker);
            self.canvas.text("end", START, y, Time(turn.start));
            self.canvas.text("end", TOOK, y, Time(turn.took));
            self.y += LINE;
        }
    }
}
