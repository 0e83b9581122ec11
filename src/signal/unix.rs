//! Signals of Unix: one thread for each kind that is awaited.

use std::io;
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{Arrivals, Signal};

/// Catches the signal from now on.
pub(super) fn listen(signal: Signal, arrivals: Arc<Arrivals>) -> io::Result<()> {
    let mut signals = Signals::new([match signal {
        Signal::Interrupt => SIGINT,
        Signal::Terminate => SIGTERM,
    }])?;
    let thread = std::thread::Builder::new().name("greenroom-signal".into());
    thread
        .spawn(move || signals.forever().for_each(|_| arrivals.add()))
        .map(drop)
}
