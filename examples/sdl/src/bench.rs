//! What `--bench` does beside all the rest: it keeps every worker busy, and closes the window.

use std::fmt;
use std::time::Duration;

use greenroom::{Address, Context, Handle, Runtime, spawn, time};

use crate::board::Board;
use crate::frames::Frames;
use crate::processor::Processor;
use crate::simulation::Message;

/// Actors for each worker: each of them waits for the others' turns, and so do all other actors.
const PER_WORKER: usize = 4;

/// Cells on a side of the board that each of them has: a generation takes some ten microseconds.
const SIDE: usize = 64;

/// What the frames are held to: 99 of 100 take less.
const BAR: Duration = Duration::from_millis(20);

pub struct Bench {
    /// They end when their handles are dropped.
    _load: Vec<Handle<(), ()>>,
    workers: usize,
    start: Processor,
}

impl Bench {
    /// Tells the simulation to quit after that time.
    pub fn start(runtime: &Runtime, simulation: Address<Message>, length: Duration) -> Bench {
        let workers = runtime.stats().workers.len();
        let seeds = 0..(workers * PER_WORKER) as u64;
        let busy = |seed| spawn!(busy(_, Board::random(SIDE, SIDE, seed)), on = runtime);
        let end = async move {
            time::sleep(length).await;
            // Refused if the user was faster.
            let _ = simulation.tell(Message::Quit);
        };
        runtime.spawn(end).detach();
        Bench {
            _load: seeds.map(busy).collect(),
            workers,
            start: Processor::now(),
        }
    }

    /// What the machine did meanwhile, and what is to be thought of the frames.
    pub fn verdict(&self, frames: &Frames) -> impl fmt::Display + use<> {
        let processor = self.start.since();
        let is_met = frames.percentile(99) < BAR;
        let verdict = if is_met { "met" } else { "missed" };
        let (workers, actors) = (self.workers, self.workers * PER_WORKER);
        format!(
            "{workers} workers, {actors} busy actors; {processor}\np99 under {BAR:?}: {verdict}"
        )
    }
}

/// Computes a generation a message, and sends itself the next one.
async fn busy(mut cx: Context<()>, mut board: Board) {
    let own = cx.downgrade();
    let again = || own.tell(()).is_ok();
    again();
    while let Some(()) = cx.recv().await {
        board = board.with_cells(board.next(0..SIDE));
        again();
    }
}
