//! Ctrl-C: the first asks for an orderly end, the second quits at once.
//!
//! An `Interrupt` is pending until the first Ctrl-C and ready ever after, for all its clones. From
//! when it is ready, the next Ctrl-C ends the process, whatever its actors do.

use std::future::{self, Future};
use std::pin::{Pin, pin};
use std::process;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;

use crate::progress::Progress;

/// The exit status of a program that was ended by Ctrl-C, as shells know it.
pub const STATUS: u8 = 130;

/// Ready once Ctrl-C was pressed.
pub type Interrupt = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Watches for Ctrl-C from now on.
pub fn watch(progress: Progress) -> Interrupt {
    let (first, pressed) = oneshot::channel();
    greenroom::spawn(async move {
        if let Err(error) = greenroom::ctrl_c().await {
            progress.say(&format!("Ctrl-C can't be noticed: {error}"));
            future::pending::<()>().await;
        }
        let mut again = pin!(greenroom::ctrl_c());
        // Polled before the first is told, so that whoever hears of that can rely on the second.
        if futures::poll!(&mut again).is_pending() {
            let _ = first.send(()); // Nobody waits for it any more if the program is at its end.
            if again.await.is_err() {
                return;
            }
        }
        process::exit(i32::from(STATUS));
    })
    .detach();
    let pressed = async {
        if pressed.await.is_err() {
            future::pending::<()>().await;
        }
    };
    pressed.boxed().shared()
}
