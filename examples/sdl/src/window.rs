//! The window: an actor pinned to the thread of SDL, which owns all SDL values.
//!
//! It draws the newest world sixty times a second, by a timer of its stage.

use std::mem::ManuallyDrop;
use std::time::Duration;

use greenroom::{Address, Context};
use sdl2::pixels::PixelFormatEnum;
use sdl2::render::Texture;

use crate::frames::Frames;
use crate::simulation::{self, World};

/// The width and height of a cell in pixels.
pub const CELL: usize = 4;

/// The time between two frames.
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// Colours in the format of the texture: blue, green, red, unused.
const LIVE: [u8; 4] = [0x40, 0xc0, 0xf0, 0];
const DEAD: [u8; 4] = [0x30, 0x20, 0x10, 0];

pub enum Message {
    World(World),
    /// It is time for a frame.
    Paint,
}

/// Runs the window until it is stopped, and then closes it. Its timer keeps it open until then.
pub async fn window(
    mut cx: Context<Message>,
    simulation: Address<simulation::Message>,
    (width, height): (usize, usize),
) -> Result<Frames, String> {
    // Dropped by the end of the process only. SDL wakes itself by messages to the window. X11 may
    // process the last of them after the window was closed, and an orderly shutdown of X11 then
    // exits with status 1.
    let video = ManuallyDrop::new(sdl2::init()?.video()?);
    let size = |cells: usize| u32::try_from(cells).map_err(|error| error.to_string());
    let (wide, high) = (size(width * CELL)?, size(height * CELL)?);
    let window = video.window("life", wide, high).build();
    let window = window.map_err(|error| error.to_string())?;
    let canvas = window.into_canvas().build();
    let mut canvas = canvas.map_err(|error| error.to_string())?;
    let creator = canvas.texture_creator();
    // One pixel for each cell; SDL scales the texture.
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
                    // Refused if the simulation has ended; then this actor ends soon, too.
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
