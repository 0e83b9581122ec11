//! The lamp: an actor pinned to the thread of winit, which has the window and what draws in it.

use std::num::NonZero;
use std::sync::Arc;

use greenroom::Context;
use softbuffer::{SoftBufferError, Surface};
use winit::window::Window;

/// Colours: red, green, blue.
const ON: u32 = 0x00ff_d040;
const OFF: u32 = 0x0030_2018;

pub enum ToLamp {
    Set(bool),
    /// The window has lost its content.
    Paint,
}

/// Runs the lamp until it is stopped, and then closes its window.
pub async fn lamp(mut cx: Context<ToLamp>, window: Arc<Window>) -> Result<(), String> {
    let text = |error: SoftBufferError| error.to_string();
    let display = softbuffer::Context::new(window.clone()).map_err(text)?;
    let mut surface = Surface::new(&display, window.clone()).map_err(text)?;
    let mut is_on = false;
    while let Some(message) = cx.recv().await {
        if let ToLamp::Set(value) = message {
            is_on = value;
        }
        let size = window.inner_size();
        let (Some(width), Some(height)) = (NonZero::new(size.width), NonZero::new(size.height))
        else {
            continue; // it is minimized
        };
        surface.resize(width, height).map_err(text)?;
        let mut pixels = surface.buffer_mut().map_err(text)?;
        pixels.fill(if is_on { ON } else { OFF });
        pixels.present().map_err(text)?;
    }
    Ok(())
}
