//! The engine over sockets: TLS over TCP, on one thread of its own.
//!
//! The thread runs all tasks of the node: it accepts, dials, reads and writes. Senders leave their
//! frames in a buffer, and never wait for it. With certificates all links are TLS, without any all
//! are plain.

mod address;
mod dial;
mod greet;
mod greetings;
mod options;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::future::{Boxed, or};

use dial::Dials;
use greetings::Greetings;
pub(crate) use options::SocketOptions;
use tls::Tls;

use super::{LinkEngine, NodeEvent, Tasks};
use crate::error::OpenError;
use crate::node::NodeState;

/// The pause after an accept that failed, such as for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Tcp {
    tasks: Tasks,
    state: OnceLock<Weak<NodeState>>,
    /// `None` if links are plain.
    tls: Option<Arc<Tls>>,
    dials: Dials,
    greetings: Greetings,
}

impl Tcp {
    pub(crate) fn new(tls: Option<Arc<Tls>>, seeds: Vec<String>) -> Arc<Tcp> {
        Arc::new(Tcp {
            tasks: Tasks::default(),
            state: OnceLock::new(),
            tls,
            dials: Dials::new(seeds),
            greetings: Greetings::default(),
        })
    }

    /// Starts the thread, which serves these listeners and dials the seeds. After an error nothing is
    /// left of them.
    pub(crate) fn start(
        self: &Arc<Self>,
        state: &Arc<NodeState>,
        listeners: Vec<TcpListener>,
    ) -> Result<(), OpenError> {
        let started = self.prepare(state, listeners).and_then(|()| {
            let this = self.clone();
            let thread = thread::Builder::new().name("greenroom-cluster".into());
            let tasks = move || async_io::block_on(this.tasks.run());
            thread.spawn(tasks).map_err(OpenError::Thread)
        });
        started.map(drop).inspect_err(|_| self.abandon(state))
    }

    /// Drops all tasks, which no thread runs.
    fn abandon(&self, state: &NodeState) {
        state.shut();
        async_io::block_on(self.tasks.run());
    }

    /// Adds the tasks of the node. They begin with the thread.
    fn prepare(
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
        Ok(())
    }

    fn state(&self) -> Option<Arc<NodeState>> {
        self.state.get()?.upgrade()
    }
}

/// Accepts connections. Each greets, and is served until its link is down, in a task of its own.
async fn accept(engine: Arc<Tcp>, listener: Async<TcpListener>) {
    loop {
        match listener.accept().await {
            Ok((socket, from)) => {
                let this = engine.clone();
                // The oldest of the host with the most gives way, so that silence shuts out none.
                let (number, stop) = engine.greetings.begin(from.ip());
                engine.spawn(Box::pin(async move {
                    let gave_way = async {
                        stop.wait().await;
                        Err("too many connections greet at the same time".into())
                    };
                    let greeted = or(this.accepted(socket), gave_way).await;
                    this.greetings.end(number);
                    match (greeted, this.state()) {
                        (Ok((link, connection)), _) => this.serve(link, connection).await,
                        (Err(why), Some(state)) => state.refused(why),
                        (Err(_), None) => {}
                    }
                }));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => drop(Timer::after(PAUSE).await),
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
            NodeEvent::Learnt { by, members } => self.dial_members(members, by),
            NodeEvent::Left(name) => self.dials.forget(name),
            NodeEvent::Lost => self.dials.look_again(),
            // All nodes are connected, and know all names of each other.
            NodeEvent::Wanted(_)
            | NodeEvent::Unused(_)
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
