//! This example shows a panic hook that asks which panics greenroom contains: a dashboard stays on
//! the screen although a worker panics, and a report names the actor.
//!
//! The hook of a terminal library restores the screen at each panic, as that of `ratatui::init`
//! does. The program calls it only for a panic that ends the program. Faults and warnings go to a
//! log, since their default functions print onto the screen. The panic of the dashboard itself is
//! contained, too: `main` joins it, and gives the screen back in any case. It prints:
//!
//! ```text
//! report: worker #1 panicked: job 2 is broken
//! 2 of 3 jobs are done; the screen is up: true
//! report: dashboard #2 panicked: nothing is left to show
//! the dashboard panicked: nothing is left to show; the screen is up: false
//! report: the program panicked: nothing is left to do
//! the screen is up: false
//! ```

use std::fmt::Display;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom::supervise::Restarts;
use greenroom::{Address, Context, Reply, Runtime, current_actor, is_contained, spawn};

/// Stands for the raw mode and the alternate screen of a terminal.
static SCREEN: AtomicBool = AtomicBool::new(false);

fn is_screen_up() -> bool {
    SCREEN.load(Ordering::Relaxed)
}

fn set_screen(is_up: bool) {
    SCREEN.store(is_up, Ordering::Relaxed);
}

/// Does what a terminal library does: it takes the screen, and gives it back at a panic.
fn take_screen() {
    set_screen(true);
    panic::set_hook(Box::new(|_| set_screen(false)));
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

/// Stands for a line in a file: the screen shows none.
fn log(line: &dyn Display) {
    println!("log: {line}");
}

type Job = (u32, Reply<()>);

async fn worker(mut cx: Context<Job>) {
    while let Some((job, reply)) = cx.recv().await {
        assert!(job != 2, "job {job} is broken");
        reply.send(());
    }
}

/// Owns the screen, and shows how many jobs are done.
async fn dashboard(_cx: Context<()>, worker: Address<Job>) {
    let mut done = 0;
    for job in 1..=3 {
        done += u32::from(worker.ask(|reply| (job, reply)).await.is_ok());
    }
    let is_up = is_screen_up();
    println!("{done} of 3 jobs are done; the screen is up: {is_up}");
    panic!("nothing is left to show");
}

fn do_more() {
    panic!("nothing is left to do");
}

fn main() {
    take_screen();
    set_hook();
    let runtime = Runtime::builder()
        .on_fault(|fault| log(fault))
        .on_warning(|warning| log(warning))
        .build()
        .expect("its threads start");
    let shown = runtime.block_on(async {
        let worker = spawn!(worker(_), restart = Restarts::on_fault());
        let shown = spawn!(dashboard(_, worker.address())).join().await;
        runtime.shutdown().await;
        shown
    });
    set_screen(false); // whatever has ended the dashboard
    let (fault, is_up) = (shown.unwrap_err(), is_screen_up());
    println!("the dashboard {fault}; the screen is up: {is_up}");

    // The hook gives the screen back for a panic that is not contained. It is caught only so that
    // this example ends in order.
    set_screen(true);
    let ended = panic::catch_unwind(do_more);
    assert!(ended.is_err());
    println!("the screen is up: {}", is_screen_up());
}
