//! A timer whose moment changes from poll to poll.
//!
//! It is armed anew only when the moment has changed, and is not armed while there is none. So it
//! does not keep a runtime from being quiescent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{Instant, Sleep, sleep};

#[derive(Default)]
pub(crate) struct Alarm(Option<(Instant, Sleep)>);

impl Alarm {
    /// Waits until this moment, or forever without one.
    pub(crate) fn poll(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = at else {
            self.0 = None;
            return Poll::Pending;
        };
        if !matches!(&self.0, Some((until, _)) if *until == at) {
            self.0 = Some((at, sleep(at - Instant::now())));
        }
        if let Some((_, sleep)) = &mut self.0 {
            ready!(Pin::new(sleep).poll(cx));
        }
        self.0 = None;
        Poll::Ready(())
    }
}
