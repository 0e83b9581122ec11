//! Ctrl-C: the first one requests an orderly end, the second one quits at once.
//!
//! An `Interrupt` is pending until the first Ctrl-C and ready from then on, for all its clones.
//! Once it is ready, the next Ctrl-C ends the process, even if actors hang.

use std::future::{self, Future};
use std::pin::{Pin, pin};
use std::process;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;

use crate::progress::Progress;

/// The exit status of a program that was ended by Ctrl-C, by the convention of shells.
pub const STATUS: u8 = 130;

/// A future that is ready after the first Ctrl-C.
pub type Interrupt = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Watches for Ctrl-C from now on.
pub fn watch(progress: Progress) -> Interrupt {
    let (first, pressed) = oneshot::channel();
    greenroom::spawn(async move {
        if let Err(error) = greenroom::ctrl_c().await {
            progress.say(&format!("Ctrl-C can't be handled: {error}"));
            future::pending::<()>().await;
        }
        let mut again = pin!(greenroom::ctrl_c());
        // Polled before the first is reported, so that the second works as soon as that is visible.
        if futures::poll!(&mut again).is_pending() {
            let _ = first.send(()); // The receiver may be dropped if the program is at its end.
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
