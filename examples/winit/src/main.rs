//! This example shows a lamp in a window: winit has the main thread, an actor on it has the window,
//! and an actor on the workers switches the lamp.
//!
//! ```text
//!  main thread                              pool
//!  winit's loop ── presses ───────────────> switch
//!   └─ stage: lamp (window) <── on, off ──────┘
//! ```
//!
//! The lamp blinks ten times, then its window closes. With `--stay` it changes when the mouse or a
//! key is pressed, until the window is closed. In the end the program prints how often it was
//! switched, and how many turns of the loop had nothing to do.

mod lamp;
mod switch;
mod turns;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use greenroom::{Address, Handle, Runtime, Stage, spawn};
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::{ElementState, KeyEvent, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::window::{Window, WindowId};

use lamp::{ToLamp, lamp};
use switch::{Press, switch};
use turns::Turns;

/// The event that says that a task of the stage is ready.
struct Wake;

/// The width and height of the window in pixels.
const SIZE: PhysicalSize<u32> = PhysicalSize::new(240, 160);

/// What winit's loop calls. It never waits for an actor.
struct App {
    stage: Stage,
    runtime: Runtime,
    stays: bool,
    open: Option<Open>,
    failure: Option<Box<dyn Error>>,
    turns: Turns,
}

/// The actors of an open window.
struct Open {
    lamp: Handle<ToLamp, Result<(), String>>,
    switch: Handle<Press, u32>,
    presses: Address<Press>,
}

impl App {
    fn open(&self, event_loop: &ActiveEventLoop) -> Result<Open, Box<dyn Error>> {
        let attributes = Window::default_attributes()
            .with_title("lamp")
            .with_inner_size(SIZE);
        let window = Arc::new(event_loop.create_window(attributes)?);
        let lamp = spawn!(lamp(_, window), on = &self.stage);
        let switch = spawn!(switch(_, lamp.address(), self.stays), on = &self.runtime);
        let presses = switch.address();
        Ok(Open {
            lamp,
            switch,
            presses,
        })
    }
}

impl ApplicationHandler<Wake> for App {
    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        if self.open.is_none() {
            match self.open(event_loop) {
                Ok(open) => self.open = Some(open),
                Err(error) => {
                    self.failure = Some(error);
                    event_loop.exit();
                }
            }
        }
    }

    /// Counts the event. `about_to_wait` follows, and runs the stage.
    fn user_event(&mut self, _: &ActiveEventLoop, Wake: Wake) {
        self.turns.event();
    }

    fn window_event(&mut self, _: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        self.turns.event();
        let Some(open) = &self.open else { return };
        // Each is refused only if the actor has ended; then the loop ends, too.
        match event {
            WindowEvent::CloseRequested => open.lamp.stop(),
            WindowEvent::RedrawRequested => drop(open.lamp.tell(ToLamp::Paint)),
            WindowEvent::MouseInput { state, .. }
            | WindowEvent::KeyboardInput {
                event:
                    KeyEvent {
                        state,
                        repeat: false,
                        ..
                    },
                ..
            } if state == ElementState::Pressed => drop(open.presses.tell(Press)),
            _ => {}
        }
    }

    /// Runs what is ready, then lets winit sleep until an event or the next timer of the stage.
    fn about_to_wait(&mut self, event_loop: &ActiveEventLoop) {
        self.turns.ran(self.stage.run_ready());
        if self.open.as_ref().is_some_and(|open| open.lamp.is_closed()) {
            event_loop.exit();
        }
        let next = self.stage.next_deadline();
        let next = next.and_then(|at| at.to_std());
        event_loop.set_control_flow(next.map_or(ControlFlow::Wait, ControlFlow::WaitUntil));
    }
}

fn run(stays: bool) -> Result<(), Box<dyn Error>> {
    let event_loop = EventLoop::<Wake>::with_user_event().build()?;
    let runtime = Runtime::new()?;
    let stage = runtime.pinned_here();
    let proxy = event_loop.create_proxy();
    // Refused if the loop has ended; then nothing runs the stage but `block_on`.
    stage.on_wake(move || drop(proxy.send_event(Wake)));
    let mut app = App {
        stage,
        runtime,
        stays,
        open: None,
        failure: None,
        turns: Turns::default(),
    };
    event_loop.run_app(&mut app)?;
    if let Some(error) = app.failure {
        return Err(error);
    }
    let open = app.open.ok_or("there was no window")?;
    open.lamp.stop();
    let lamp = app.stage.block_on(open.lamp.join());
    println!("closed");
    drop(open.presses);
    open.switch.stop();
    let switched = app.stage.block_on(open.switch.join())?;
    lamp??;
    println!("switched {switched} times, {}", app.turns);
    drop(app.stage);
    app.runtime.block_on(app.runtime.shutdown());
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let done = match &arguments[..] {
        [] => run(false),
        [stay] if stay == "--stay" => run(true),
        _ => Err("usage: lamp [--stay]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lamp: {error}");
            ExitCode::FAILURE
        }
    }
}
