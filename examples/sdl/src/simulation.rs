//! The simulation: an actor on the workers that owns the world, and others that compute parts of
//! it.
//!
//! Each generation is computed by several actors, one for each band of rows. The watcher receives
//! the world when it has changed. The next generation begins only after the last one was shown, so
//! a slow screen slows the simulation and nothing piles up.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use greenroom::{Address, Context, Handle, Reply, spawn, unblock};

use crate::board::Board;

/// The number of actors that compute a generation.
const BANDS: usize = 8;

pub enum Message {
    /// Send the world to this address from now on.
    Watch(Address<World>),
    /// The last world that was sent is on the screen.
    Shown,
    /// Pause or resume.
    Pause,
    /// Pause after one more generation.
    Step,
    Toggle {
        x: usize,
        y: usize,
    },
    Clear,
    /// Save and end.
    Quit,
}

#[derive(Clone)]
pub struct World {
    pub generation: u64,
    pub board: Arc<Board>,
    pub is_paused: bool,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (generation, live) = (self.generation, self.board.live());
        write!(f, "generation {generation}, {live} live cells")
    }
}

/// Runs the simulation until `Quit`; then saves the board, if there is a file.
pub async fn simulation(
    mut cx: Context<Message>,
    board: Board,
    file: Option<PathBuf>,
) -> io::Result<()> {
    let mut world = World {
        generation: 0,
        board: Arc::new(board),
        is_paused: false,
    };
    let bands: Vec<_> = (0..BANDS).map(|_| spawn!(band(_))).collect();
    let mut watcher = None;
    while let Some(message) = cx.recv().await {
        match message {
            Message::Watch(other) => watcher = Some(other),
            Message::Shown if world.is_paused => continue,
            Message::Shown => advance(&mut world, &bands).await,
            Message::Pause => world.is_paused ^= true,
            Message::Step => {
                world.is_paused = true;
                advance(&mut world, &bands).await;
            }
            Message::Toggle { x, y } => Arc::make_mut(&mut world.board).toggle(x, y),
            Message::Clear => Arc::make_mut(&mut world.board).clear(),
            Message::Quit => {
                cx.stop();
                continue;
            }
        }
        if let Some(watcher) = &watcher {
            // Refused if the window has ended; the world does not depend on it.
            let _ = watcher.tell(world.clone());
        }
    }
    if let Some(file) = file {
        let board = world.board.clone();
        unblock(move || save(&board, &file)).await?;
        println!("saved: {world}");
    }
    Ok(())
}

async fn advance(world: &mut World, bands: &[Handle<Band, ()>]) {
    let height = world.board.height();
    let parts = bands.iter().enumerate().map(|(at, band)| {
        let rows = height * at / BANDS..height * (at + 1) / BANDS;
        let board = world.board.clone();
        band.ask(|next| Band { board, rows, next })
    });
    let parts = join_all(parts).await.into_iter();
    let cells = parts.flat_map(|part| part.expect("a band answers"));
    world.board = Arc::new(world.board.with_cells(cells.collect()));
    world.generation += 1;
}

/// A request for some rows of the next generation.
struct Band {
    board: Arc<Board>,
    rows: Range<usize>,
    next: Reply<Vec<bool>>,
}

async fn band(mut cx: Context<Band>) {
    while let Some(Band { board, rows, next }) = cx.recv().await {
        next.send(board.next(rows));
    }
}

/// Replaces the file atomically.
fn save(board: &Board, file: &Path) -> io::Result<()> {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, board.to_string())?;
    fs::rename(&new, file)
}
