//! This example shows a panic hook that asks which panics greenroom contains: a dashboard stays on
//! the screen although a worker panics, and a report names the actor.
//!
//! The hook of a terminal library restores the screen at each panic, as that of `ratatui::init`
//! does. The program calls it only for a panic that ends the program. It prints:
//!
//! ```text
//! report: worker #1 panicked: job 2 is broken
//! 2 of 3 jobs are done; the screen is up: true
//! report: the program panicked: nothing is left to show
//! the screen is up: false
//! ```

use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom::{Context, Reply, current_actor, is_contained, spawn};

/// Stands for the raw mode and the alternate screen of a terminal.
static SCREEN: AtomicBool = AtomicBool::new(false);

fn is_screen_up() -> bool {
    SCREEN.load(Ordering::Relaxed)
}

/// Does what a terminal library does: it takes the screen, and gives it back at a panic.
fn take_screen() {
    SCREEN.store(true, Ordering::Relaxed);
    panic::set_hook(Box::new(|_| SCREEN.store(false, Ordering::Relaxed)));
}

/// Puts a hook before the present one, which is called only at the end of the program.
fn set_hook() {
    let gives_screen_back = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !is_contained() {
            gives_screen_back(panic);
        }
    }));
}

/// Prints what a crash reporter would send.
fn report(panic: &PanicHookInfo<'_>) {
    let who = current_actor().map_or_else(|| "the program".into(), |actor| actor.to_string());
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    println!("report: {who} panicked: {}", text.unwrap_or("no text"));
}

async fn worker(mut cx: Context<(u32, Reply<()>)>) {
    while let Some((job, reply)) = cx.recv().await {
        assert!(job != 2, "job {job} is broken");
        reply.send(());
    }
}

async fn show_nothing() {
    panic!("nothing is left to show");
}

fn main() {
    take_screen();
    set_hook();
    greenroom::run(async {
        let restarts = greenroom::supervise::Restarts::on_fault();
        let worker = spawn!(worker(_), restart = restarts);
        let mut done = 0;
        for job in 1..=3 {
            done += u32::from(worker.ask(|reply| (job, reply)).await.is_ok());
        }
        println!(
            "{done} of 3 jobs are done; the screen is up: {}",
            is_screen_up()
        );
    });
    // Caught only so that this example ends in order, and after the hook has run.
    let ended = panic::catch_unwind(|| greenroom::run(show_nothing()));
    assert!(ended.is_err());
    println!("the screen is up: {}", is_screen_up());
}
