//! This example shows a program that ends when all its work is done, by `run_until_quiescent`.
//!
//! The window lives on a pinned thread, as its library requires. When the user closes it, its actor
//! sends to another one to save the game, and ends. At that moment no actor is busy, but work is
//! still to come: a write to the disk, a timer, a new actor. The program ends only after all of it.
//! It prints:
//!
//! ```text
//! the window is closed
//! level 3 is written
//! level 3 is backed up
//! all work is done
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::{Address, Context, Runtime, spawn, time, unblock};

enum Event {
    LevelUp,
    Quit,
}

struct Save(u32);

/// Runs the window; its state need not be `Send`.
async fn window(mut cx: Context<Event>, saver: Address<Save>) {
    let title = std::rc::Rc::new(String::from("the window"));
    let mut level = 1;
    while let Some(event) = cx.recv().await {
        match event {
            Event::LevelUp => level += 1,
            Event::Quit => {
                saver.tell(Save(level)).expect("the saver is open");
                break;
            }
        }
    }
    println!("{title} is closed");
}

/// Runs on the workers. Its handle is never joined.
async fn saver(mut cx: Context<Save>, steps: Arc<AtomicUsize>) {
    while let Some(Save(level)) = cx.recv().await {
        // The disk takes a while.
        unblock(move || std::thread::sleep(Duration::from_millis(5))).await;
        println!("level {level} is written");
        steps.fetch_add(1, Ordering::SeqCst);
        let backup = spawn!(backup(_, steps.clone()));
        backup.tell(Save(level)).expect("a new actor is open");
    }
}

async fn backup(mut cx: Context<Save>, steps: Arc<AtomicUsize>) {
    while let Some(Save(level)) = cx.recv().await {
        // Not at once: another save may follow.
        time::sleep(Duration::from_millis(5)).await;
        println!("level {level} is backed up");
        steps.fetch_add(1, Ordering::SeqCst);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new()?;
    let steps = Arc::new(AtomicUsize::new(0));
    let saver = spawn!(saver(_, steps.clone()), on = &runtime);
    let screen = runtime.spawn_pinned("screen")?;
    let window = spawn!(window(_, saver.address()), on = &screen);
    window.tell(Event::LevelUp)?;
    window.tell(Event::LevelUp)?;
    window.tell(Event::Quit)?;
    drop(screen);

    runtime.run_until_quiescent();
    assert_eq!(steps.load(Ordering::SeqCst), 2);
    println!("all work is done");
    Ok(())
}
