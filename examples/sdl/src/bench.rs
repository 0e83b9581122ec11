//! The option `--bench`: keeps every worker busy, and closes the window after a time.

use std::fmt;
use std::time::Duration;

use greenroom::{Address, Context, Handle, Runtime, spawn, time};

use crate::board::Board;
use crate::frames::Frames;
use crate::processor::Processor;
use crate::simulation::Message;

/// The number of busy actors for each worker. Each of them waits for the turns of the others, as
/// all other actors do.
const PER_WORKER: usize = 4;

/// The number of cells on a side of each busy actor's board: a generation takes some ten
/// microseconds.
const SIDE: usize = 64;

/// The limit for frames: 99 of 100 must take less.
const BAR: Duration = Duration::from_millis(20);

pub struct Bench {
    /// The busy actors; they end when their handles are dropped.
    _load: Vec<Handle<(), ()>>,
    workers: usize,
    start: Processor,
}

impl Bench {
    /// Starts the load, and sends `Quit` to the simulation after `length`.
    pub fn start(runtime: &Runtime, simulation: Address<Message>, length: Duration) -> Bench {
        let workers = runtime.stats().workers.len();
        let seeds = 0..(workers * PER_WORKER) as u64;
        let busy = |seed| spawn!(busy(_, Board::random(SIDE, SIDE, seed)), on = runtime);
        let end = async move {
            time::sleep(length).await;
            // Refused if the user has quit already.
            let _ = simulation.tell(Message::Quit);
        };
        runtime.spawn(end).detach();
        Bench {
            _load: seeds.map(busy).collect(),
            workers,
            start: Processor::now(),
        }
    }

    /// Returns the load of the machine since the start, and whether the frames met the limit.
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

/// Computes a generation for each message, and sends itself the next message.
async fn busy(mut cx: Context<()>, mut board: Board) {
    let own = cx.downgrade();
    let again = || own.tell(()).is_ok();
    again();
    while let Some(()) = cx.recv().await {
        board = board.with_cells(board.next(0..SIDE));
        again();
    }
}
