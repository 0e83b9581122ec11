//! The window: an actor pinned to the thread of SDL, which owns all that is SDL's.
//!
//! It shows the newest world it was sent, sixty times a second by a timer of the stage it is on.

use std::mem::ManuallyDrop;
use std::time::Duration;

use greenroom::{Address, Context};
use sdl2::pixels::PixelFormatEnum;
use sdl2::render::Texture;

use crate::frames::Frames;
use crate::simulation::{self, World};

/// Pixels a cell is wide and high.
pub const CELL: usize = 4;

/// The time a frame has.
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// As the texture has it: blue, green, red, nothing.
const LIVE: [u8; 4] = [0x40, 0xc0, 0xf0, 0];
const DEAD: [u8; 4] = [0x30, 0x20, 0x10, 0];

pub enum Message {
    World(World),
    /// It is time for a frame.
    Paint,
}

/// Ends, and closes the window, when it is stopped: as long as it has a clock it does not by itself.
pub async fn window(
    mut cx: Context<Message>,
    simulation: Address<simulation::Message>,
    (width, height): (usize, usize),
) -> Result<Frames, String> {
    // Left to the end of the process: SDL wakes itself by messages to the window. X11 may come to the
    // last of them when the window has gone, and then an orderly goodbye to it gives a status of 1.
    let video = ManuallyDrop::new(sdl2::init()?.video()?);
    let size = |cells: usize| u32::try_from(cells).map_err(|error| error.to_string());
    let (wide, high) = (size(width * CELL)?, size(height * CELL)?);
    let window = video.window("life", wide, high).build();
    let window = window.map_err(|error| error.to_string())?;
    let canvas = window.into_canvas().build();
    let mut canvas = canvas.map_err(|error| error.to_string())?;
    let creator = canvas.texture_creator();
    // A pixel a cell; SDL makes it larger.
    let format = PixelFormatEnum::RGB888;
    let texture = creator.create_texture_streaming(format, size(width)?, size(height)?);
    let mut texture = texture.map_err(|error| error.to_string())?;

    let mut frames = Frames::new(canvas.info().name);
    let mut newest = None;
    let _clock = cx.send_every(FRAME, || Message::Paint);
    while let Some(message) = cx.recv().await {
        match message {
            Message::World(world) => newest = Some(world),
            Message::Paint => {
                let new = newest.take();
                if let Some(world) = &new {
                    draw(world, &mut texture)?;
                }
                canvas.copy(&texture, None, None)?;
                canvas.present();
                frames.presented(new.is_some());
                if let Some(world) = new {
                    if world.is_paused {
                        println!("paused: {world}");
                    }
                    // If it has ended, so will this.
                    let _ = simulation.tell(simulation::Message::Shown);
                }
            }
        }
    }
    Ok(frames)
}

fn draw(world: &World, texture: &mut Texture<'_>) -> Result<(), String> {
    let board = &world.board;
    texture.with_lock(None, |pixels, pitch| {
        let rows = board.cells().chunks(board.width());
        for (row, line) in rows.zip(pixels.chunks_mut(pitch)) {
            for (&lives, pixel) in row.iter().zip(line.chunks_exact_mut(LIVE.len())) {
                pixel.copy_from_slice(if lives { &LIVE } else { &DEAD });
            }
        }
    })
}
