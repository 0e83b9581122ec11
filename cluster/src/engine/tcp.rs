//! The engine over sockets: TLS over TCP, on one thread of its own.
//!
//! The thread runs all tasks of the node: it accepts, dials, reads and writes. Senders leave their
//! frames in a buffer, and never wait for it. With certificates all links are TLS, without any all
//! are plain.

mod address;
mod dial;
mod greet;
mod options;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use async_io::{Async, Timer};
use event_listener::Event;
use futures_lite::future::Boxed;

use dial::Dials;
pub(crate) use options::SocketOptions;
use tls::Tls;

use super::{LinkEngine, NodeEvent, Tasks};
use crate::error::OpenError;
use crate::node::NodeState;

/// The connections that may be greeting at the same time. Others wait in the system's queue.
const GREETINGS: usize = 64;

/// The pause after an accept that failed, such as for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Tcp {
    tasks: Tasks,
    state: OnceLock<Weak<NodeState>>,
    /// `None` if links are plain.
    tls: Option<Arc<Tls>>,
    dials: Dials,
    greetings: AtomicUsize,
    greeted: Event,
}

impl Tcp {
    pub(crate) fn new(tls: Option<Arc<Tls>>, seeds: Vec<String>) -> Arc<Tcp> {
        Arc::new(Tcp {
            tasks: Tasks::default(),
            state: OnceLock::new(),
            tls,
            dials: Dials::new(seeds),
            greetings: AtomicUsize::new(0),
            greeted: Event::new(),
        })
    }

    /// Starts the thread, which serves these listeners and dials the seeds.
    pub(crate) fn start(
        self: &Arc<Self>,
        state: &Arc<NodeState>,
        listeners: Vec<TcpListener>,
    ) -> Result<(), OpenError> {
        let _ = self.state.set(Arc::downgrade(state));
        for listener in listeners {
            let address = listener
                .local_addr()
                .map_or_else(|_| String::new(), |at| at.to_string());
            let listener = Async::new(listener).map_err(|e| OpenError::Listen(address, e))?;
            self.spawn(Box::pin(accept(self.clone(), listener)));
        }
        state.start();
        self.dial_seeds();
        // The tasks begin with the thread, so none runs if an error comes first.
        let this = self.clone();
        let thread = thread::Builder::new().name("greenroom-cluster".into());
        thread
            .spawn(move || async_io::block_on(this.tasks.run()))
            .map_err(OpenError::Thread)?;
        Ok(())
    }

    fn state(&self) -> Option<Arc<NodeState>> {
        self.state.get()?.upgrade()
    }

    /// NodeCounts a connection that greets, until `end_greeting`. Waits if there are too many.
    async fn begin_greeting(&self) {
        loop {
            let listener = self.greeted.listen();
            // One thread counts, so there are never more.
            if self.greetings.load(Ordering::Relaxed) < GREETINGS {
                self.greetings.fetch_add(1, Ordering::Relaxed);
                return;
            }
            listener.await;
        }
    }

    fn end_greeting(&self) {
        self.greetings.fetch_sub(1, Ordering::Relaxed);
        self.greeted.notify(1);
    }
}

/// Accepts connections. Each greets, and is served until its link is down, in a task of its own.
async fn accept(engine: Arc<Tcp>, listener: Async<TcpListener>) {
    loop {
        // Before the accept, so that a connection too many waits in the system's queue.
        engine.begin_greeting().await;
        match listener.accept().await {
            Ok((socket, _)) => {
                let this = engine.clone();
                engine.spawn(Box::pin(async move {
                    let greeted = this.accepted(socket).await;
                    this.end_greeting();
                    match (greeted, this.state()) {
                        (Ok((link, connection)), _) => this.serve(link, connection).await,
                        (Err(why), Some(state)) => state.refused(why),
                        (Err(_), None) => {}
                    }
                }));
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    Timer::after(PAUSE).await;
                }
                engine.end_greeting();
            }
        }
    }
}

impl LinkEngine for Arc<Tcp> {
    fn spawn(&self, task: Boxed<()>) {
        self.tasks.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> Boxed<()> {
        Box::pin(async move {
            Timer::after(duration).await;
        })
    }

    fn note(&self, event: NodeEvent<'_>) -> bool {
        match event {
            NodeEvent::Learnt(members) => self.dial_members(members, false),
            NodeEvent::Left(name) => self.dials.forget(name),
            NodeEvent::Lost => self.dials.look_again(),
            // All nodes are connected, and know all names of each other.
            NodeEvent::Wanted(_)
            | NodeEvent::Sought { .. }
            | NodeEvent::Watched { .. }
            | NodeEvent::Named { .. } => {}
        }
        false
    }

    fn problems(&self) -> Vec<String> {
        self.dials.problems()
    }

    fn stop(&self) -> Boxed<()> {
        self.tasks.stop.stop();
        self.tasks.ended()
    }
}
