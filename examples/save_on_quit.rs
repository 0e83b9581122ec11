//! A program that ends when its work has run out: document 1's window that is closed.
//!
//! The window lives on a pinned thread, where its library wants to be. When the user closes it, its
//! actor tells another one to save the game, and ends. At that moment nobody seems to be busy; yet
//! there is a lot to come, and the program ends only after all of it. Prints:
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

/// The window: what it is made of need not be `Send`.
async fn window(mut cx: Context<Event>, saver: Address<Save>) {
    let title = std::rc::Rc::new(String::from("the window"));
    let mut level = 1;
    while let Some(event) = cx.recv().await {
        match event {
            Event::LevelUp => level += 1,
            Event::Quit => {
                saver.tell(Save(level)).expect("it is open");
                break;
            }
        }
    }
    println!("{title} is closed");
}

/// Runs on the workers. It is not waited for by anybody.
async fn saver(mut cx: Context<Save>, steps: Arc<AtomicUsize>) {
    while let Some(Save(level)) = cx.recv().await {
        // The disk takes a while.
        unblock(move || std::thread::sleep(Duration::from_millis(5))).await;
        println!("level {level} is written");
        steps.fetch_add(1, Ordering::SeqCst);
        let backup = spawn!(backup(_, steps.clone()));
        backup.tell(Save(level)).expect("it is new");
    }
}

async fn backup(mut cx: Context<Save>, steps: Arc<AtomicUsize>) {
    while let Some(Save(level)) = cx.recv().await {
        // Not at once: there may be another one.
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
