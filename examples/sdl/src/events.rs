//! The event loop of SDL as the host of a stage: how to integrate greenroom with an existing loop.
//!
//! The loop sleeps only in SDL. Three things wake it: an event from the user, the next deadline of
//! the stage, and an event that the stage posts when one of its tasks becomes ready.

use greenroom::time::Instant;
use greenroom::{Address, Stage};
use sdl2::Sdl;
use sdl2::event::Event;
use sdl2::keyboard::Keycode;
use sdl2::mouse::MouseButton;

use crate::simulation::Message;
use crate::window::CELL;

/// The event that says that a task of the stage is ready.
struct Wake;

/// Runs SDL and the stage while `goes_on` returns true, and sends the user's input to the
/// simulation.
pub fn serve(
    sdl: &Sdl,
    stage: &Stage,
    simulation: &Address<Message>,
    goes_on: impl Fn() -> bool,
) -> Result<(), String> {
    let queue = sdl.event()?;
    queue.register_custom_event::<Wake>()?;
    let sender = queue.event_sender();
    stage.on_wake(move || {
        // Refused if the queue is full; then the loop does not sleep anyway.
        let _ = sender.push_custom_event(Wake);
    });
    let mut events = sdl.event_pump()?;
    while goes_on() {
        let first = match stage.next_deadline() {
            Some(deadline) => events.wait_event_timeout(millis_until(deadline)),
            None => Some(events.wait_event()),
        };
        for event in first.into_iter().chain(events.poll_iter()) {
            if let Some(message) = message_of(&event) {
                // Refused if the simulation has ended; then the loop ends, too.
                let _ = simulation.tell(message);
            }
        }
        stage.run_ready();
    }
    // Wakes no task. But SDL returns from this call only when no other thread is waking the window,
    // which may be closed after this.
    queue.push_custom_event(Wake)
}

/// Returns the time until a deadline, rounded up: an early return would loop many times.
fn millis_until(deadline: Instant) -> u32 {
    let left = deadline.duration_since(Instant::now());
    u32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// Returns the message for an event, or `None` if the simulation does not handle it.
fn message_of(event: &Event) -> Option<Message> {
    let cell = |pixel: i32| Some(usize::try_from(pixel).ok()? / CELL);
    match *event {
        // The red X; SDL also maps Ctrl-C to this.
        Event::Quit { .. } => Some(Message::Quit),
        Event::KeyDown {
            keycode: Some(key),
            repeat: false,
            ..
        } => match key {
            Keycode::Space => Some(Message::Pause),
            Keycode::N => Some(Message::Step),
            Keycode::C => Some(Message::Clear),
            _ => None,
        },
        Event::MouseButtonDown {
            mouse_btn: MouseButton::Left,
            x,
            y,
            ..
        } => Some(Message::Toggle {
            x: cell(x)?,
            y: cell(y)?,
        }),
        _ => None,
    }
}
