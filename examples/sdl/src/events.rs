//! The loop of SDL, as the host of a stage: this is how greenroom is joined with a loop that is there.
//!
//! The loop sleeps in SDL alone. Three things end that: an event of the user's, the stage's next
//! deadline, and an event that the stage itself sends when somebody has woken an actor there.

use greenroom::time::Instant;
use greenroom::{Address, Stage};
use sdl2::Sdl;
use sdl2::event::Event;
use sdl2::keyboard::Keycode;
use sdl2::mouse::MouseButton;

use crate::simulation::Message;
use crate::window::CELL;

/// The stage has something to run.
struct Wake;

/// Serves SDL and the stage as long as that `goes_on`, and tells the simulation what the user does.
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
        // Refused if the queue is full of events; then the loop does not sleep anyway.
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
                // If it has ended, the loop does not go on.
                let _ = simulation.tell(message);
            }
        }
        stage.run_ready();
    }
    // Wakes nobody. But SDL comes back from it only when no other thread is in the middle of waking
    // the window, which may be closed after this.
    queue.push_custom_event(Wake)
}

/// Rounded up: to come back too early would be to come back many times.
fn millis_until(deadline: Instant) -> u32 {
    let left = deadline.duration_since(Instant::now());
    u32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// What the user wants; nothing if it is no concern of the simulation's.
fn message_of(event: &Event) -> Option<Message> {
    let cell = |pixel: i32| Some(usize::try_from(pixel).ok()? / CELL);
    match *event {
        // The red X; Ctrl-C too, by SDL.
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
