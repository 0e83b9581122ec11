//! `TestProbe`: an address for tests, whose messages the test itself receives.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::actor::{self, Address};
use crate::error::Fault;
use crate::sync::Mutex;
use crate::time::timeout;
use crate::waiters::{Ticket, Waiters};

/// An [`Address`] whose messages the test receives itself, with methods that check what arrives.
///
/// A probe dereferences to its address. It reads only while one of its methods is awaited. A
/// stopped probe ends when one of its methods is next awaited. Time is the time of the runtime that
/// it is used on: virtual in a simulation, so that no test needs to sleep, and real elsewhere.
///
/// ```
/// use greenroom::{Address, Context, sim, sim::TestProbe, spawn, time};
/// use std::time::Duration;
///
/// async fn alarm(mut cx: Context<Duration>, bell: Address<&'static str>) {
///     while let Some(after) = cx.recv().await {
///         time::sleep(after).await;
///         bell.tell("ring").unwrap();
///     }
/// }
///
/// sim::explore(0..10, |_| async {
///     let mut bell = TestProbe::new("bell");
///     let alarm = spawn!(alarm(_, bell.address()), name = "alarm");
///     alarm.tell(Duration::from_secs(60)).unwrap();
///     bell.expect_no_message(Duration::from_secs(59)).await;
///     assert_eq!(bell.expect_within(Duration::from_secs(2)).await, "ring");
/// });
/// ```
pub struct TestProbe<M> {
    address: Address<M>,
    /// Moves arriving messages to `received` when it is polled.
    actor: Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>,
    received: Arc<Mutex<VecDeque<M>>>,
    /// The task that waits for the actor.
    waits: Arc<Waiters>,
    /// Whether the probe was stopped or killed.
    ended: bool,
}

impl<M: Send + 'static> TestProbe<M> {
    /// Creates a probe with this name.
    pub fn new(name: impl Into<String>) -> Self {
        let received = Arc::new(Mutex::new(VecDeque::new()));
        let own = received.clone();
        let receive = |mut cx: actor::Context<M>| async move {
            while let Some(message) = cx.recv().await {
                own.lock().push_back(message);
            }
        };
        let (address, actor) = actor::actor(receive).name(name).split();
        TestProbe {
            address,
            actor: Box::pin(actor),
            received,
            waits: Arc::new(Waiters::new()),
            ended: false,
        }
    }

    /// Returns a clone of the address.
    pub fn address(&self) -> Address<M> {
        self.address.clone()
    }

    /// Waits for the next message, without a limit of time.
    ///
    /// # Panics
    /// If the probe was stopped and has no message left.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn expect(&mut self) -> impl Future<Output = M> {
        let here = Location::caller();
        async move {
            match self.next().await {
                Some(message) => message,
                None => panic!("a message was expected at {here}, but the probe was stopped"),
            }
        }
    }

    /// Waits for the next message, at most for `duration`.
    ///
    /// # Panics
    /// If no message arrives in that time, or the probe was stopped and has no message left.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn expect_within(&mut self, duration: Duration) -> impl Future<Output = M> {
        let here = Location::caller();
        async move {
            match timeout(duration, self.next()).await {
                Ok(Some(message)) => message,
                Ok(None) => panic!("a message was expected at {here}, but the probe was stopped"),
                Err(_) => {
                    panic!("a message was expected at {here}, but none came within {duration:?}")
                }
            }
        }
    }

    /// Waits for `duration`, or until the probe is stopped.
    ///
    /// # Panics
    /// If a message arrives meanwhile, or has arrived before.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn expect_no_message(&mut self, duration: Duration) -> impl Future<Output = ()> {
        let here = Location::caller();
        async move {
            if let Ok(Some(_)) = timeout(duration, self.next()).await {
                panic!("no message was expected at {here}, but one came within {duration:?}");
            }
        }
    }

    fn next(&mut self) -> NextMessage<'_, M> {
        NextMessage {
            probe: self,
            ticket: Ticket::default(),
        }
    }
}

/// The future of the next message, or of the end.
struct NextMessage<'a, M> {
    probe: &'a mut TestProbe<M>,
    ticket: Ticket,
}

impl<M> Future for NextMessage<'_, M> {
    type Output = Option<M>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<M>> {
        let NextMessage { probe, ticket } = self.get_mut();
        let mut first = probe.received.lock().pop_front();
        if first.is_none() && !probe.ended {
            // The actor keeps the list, and not the waker of a wait that may be dropped.
            let _ = probe.waits.poll(ticket, cx, || false);
            let waker = Waker::from(probe.waits.clone());
            let polled = probe.actor.as_mut().poll(&mut Context::from_waker(&waker));
            probe.ended = polled.is_ready();
            first = probe.received.lock().pop_front();
        }
        match first {
            None if !probe.ended => Poll::Pending,
            received => Poll::Ready(received),
        }
    }
}

impl<M> Drop for NextMessage<'_, M> {
    fn drop(&mut self) {
        self.probe.waits.leave(&mut self.ticket);
    }
}

impl<M> Deref for TestProbe<M> {
    type Target = Address<M>;

    fn deref(&self) -> &Address<M> {
        &self.address
    }
}

impl<M> fmt::Debug for TestProbe<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestProbe")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
