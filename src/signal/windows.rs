//! Signals of a Windows console, whose handler runs on a thread that the system starts.
//!
//! # Invariants
//! - CONSOLE-1: the handler is a function of the signature that the system expects. It does not
//!   unwind: wakers are contained.
#![expect(unsafe_code, reason = "a call of the system; see CONSOLE-1")]

use std::io;
use std::sync::Arc;

use super::{Arrivals, Signal};
use crate::sync::{Mutex, OnceLock};

const CTRL_C_EVENT: u32 = 0;
const CTRL_BREAK_EVENT: u32 = 1;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn SetConsoleCtrlHandler(
        handler: Option<unsafe extern "system" fn(event: u32) -> i32>,
        add: i32,
    ) -> i32;
}

static INTERRUPTS: OnceLock<Arc<Arrivals>> = OnceLock::new();
static TERMINATIONS: OnceLock<Arc<Arrivals>> = OnceLock::new();

/// Counts an event that is awaited, and leaves others to the next handler.
unsafe extern "system" fn handle(event: u32) -> i32 {
    let arrivals = match event {
        CTRL_C_EVENT => INTERRUPTS.get(),
        CTRL_BREAK_EVENT => TERMINATIONS.get(),
        _ => None,
    };
    if let Some(arrivals) = arrivals {
        arrivals.add();
    }
    i32::from(arrivals.is_some())
}

/// Catches the event from now on.
pub(super) fn listen(signal: Signal, arrivals: Arc<Arrivals>) -> io::Result<()> {
    static IS_INSTALLED: OnceLock<Mutex<bool>> = OnceLock::new();
    let mut is_installed = IS_INSTALLED.get_or_init(|| Mutex::new(false)).lock();
    if !*is_installed {
        // SAFETY: (CONSOLE-1) the handler has the signature, and is never removed.
        if unsafe { SetConsoleCtrlHandler(Some(handle), 1) } == 0 {
            return Err(io::Error::last_os_error());
        }
        *is_installed = true;
    }
    let own = match signal {
        Signal::Interrupt => &INTERRUPTS,
        Signal::Terminate => &TERMINATIONS,
    };
    own.get_or_init(|| arrivals);
    Ok(())
}
