//! The actor behind a controller: it makes lanes, keeps the time, and ends with the runtime.
//!
//! Regular work does not wake it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use futures_core::Stream;

use super::inbox::Shut;
use super::lane::Lane;
use super::monitor::Monitor;
use crate::actor::{Address, Context};
use crate::instant::Instant;
use crate::time::Alarm;
use crate::waker::KeptWaker;

pub(super) struct Steward {
    monitor: Arc<Monitor>,
    alarm: Alarm,
}

impl Steward {
    pub(super) fn new(monitor: Arc<Monitor>) -> Self {
        Steward {
            monitor,
            alarm: Alarm::default(),
        }
    }

    /// Serves the controller until no task is left and none can be posted.
    pub(super) async fn run(mut self, mut cx: Context<Infallible>) {
        // Without an address the mailbox would be closed.
        let _open: Address<Infallible> = cx.address();
        let mut is_stopping = false;
        poll_fn(|task| {
            if !is_stopping && Pin::new(&mut cx).poll_next(task).is_ready() {
                is_stopping = true;
                self.monitor
                    .change_after(Shut::Controller, |table, effects| table.close_all(effects));
            }
            self.poll(task)
        })
        .await;
    }

    fn poll(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            let (is_over, lane, alarm) = self.monitor.change(|table, effects| {
                table.steward = Some(KeptWaker::new(task.waker()));
                let lane = table.lanes.is_wanted().then(|| table.lanes.make());
                (table.is_over, lane, table.expire(now, effects))
            });
            if is_over {
                return Poll::Ready(());
            }
            if let Some(number) = lane {
                Lane::start(&self.monitor, number);
                continue;
            }
            ready!(self.alarm.poll(alarm, task));
        }
    }
}

/// Drops what is left when the runtime has ended before the controller.
impl Drop for Steward {
    fn drop(&mut self) {
        self.monitor
            .change_after(Shut::Controller, |table, effects| table.abort(effects));
    }
}
