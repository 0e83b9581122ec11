//! The actor that listens: it accepts connections, each an actor that it adopts.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::or;
use greenroom::time::{Sleep, sleep, timeout};
use greenroom::trace::{Level, note};
use greenroom::{Address, Context, Fault, Reply, actor};

use super::connection::{CountedSite, drain, serve};
use super::peers::RemoteClient;
use super::site::Site;
use super::status::no_room;
use crate::event::{CloseReason, HttpEvent};
use crate::reactor::{Acceptor, Socket};
use crate::wire::IdleSince;

/// What became of the connections of a server that was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StopReport {
    /// The connections that were open at the stop and have ended within the grace, with all answers.
    pub finished: usize,
    /// The connections that were cut when the grace was over, or have failed before: their clients may
    /// lack an answer.
    pub cut: usize,
}

/// What happens to a listener: a message to its actor, or what it waits for itself.
pub(super) enum ListenerEvent {
    /// A connection has ended.
    Ended(u64, Result<CloseReason, Fault>),
    StopListening,
    Stop(Option<Reply<StopReport>>),
    /// A connection has come.
    Came(io::Result<(Socket, SocketAddr)>),
    /// The pause or the grace is over.
    TimeOver,
}

pub(super) struct Listener {
    pub(super) site: Arc<Site>,
    pub(super) events: Option<Address<HttpEvent>>,
    pub(super) grace: Duration,
}

/// How long nothing is accepted when the system has no descriptor left: other work may free some.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the answer to a client may take that there is no room, and how many clients get one at the
/// same time. Others are cut.
const REFUSAL: Duration = Duration::from_secs(1);
const MOST_REFUSALS: usize = 64;

/// The state of a listener.
struct ListenerState {
    listener: Option<Acceptor>,
    /// The number of the last connection.
    last: u64,
    open: HashMap<u64, ServedConnection>,
    /// Shared with each client that is being refused.
    refusals: Arc<()>,
    /// Nothing is accepted for so long, since the system has no room for it.
    pause: Option<Sleep>,
    /// It was stopped.
    stopping: Option<Stopping>,
}

/// A connection that is open.
struct ServedConnection {
    address: Address<Infallible>,
    idle: Arc<IdleSince>,
    /// The client, if its connections are counted.
    peer: Option<RemoteClient>,
}

struct Stopping {
    grace: Option<Sleep>,
    report: StopReport,
    replies: Vec<Reply<StopReport>>,
}

impl Listener {
    pub(super) async fn run(self, mut cx: Context<ListenerEvent>, listener: Acceptor) {
        let name = listener.name();
        note!(Level::Trace, format_args!("Listening on \"{name}\""));
        let mut state = ListenerState {
            listener: Some(listener),
            last: 0,
            open: HashMap::new(),
            refusals: Arc::default(),
            pause: None,
            stopping: None,
        };
        loop {
            let Some(event) = state.next(&mut cx).await else {
                break;
            };
            self.handle(&mut cx, &mut state, event);
            // A server that was stopped ends with its last connection.
            if state.stopping.is_some() && state.open.is_empty() {
                break;
            }
        }
        state.report();
    }

    fn accept(
        &self,
        cx: &mut Context<ListenerEvent>,
        state: &mut ListenerState,
        stream: Socket,
        peer: SocketAddr,
    ) {
        let counted = self.site.proxies.counted(peer.ip());
        if !self.make_room(state, counted) {
            let one = state.refusals.clone();
            if Arc::strong_count(&one) <= MOST_REFUSALS {
                let refuses = refuse(stream, self.site.clone());
                greenroom::spawn(async move {
                    refuses.await;
                    drop(one);
                })
                .detach();
            }
            return;
        }
        state.last += 1;
        let id = state.last;
        note!(Level::Trace, format_args!("Accepted \"{peer}\""));
        self.report(HttpEvent::Accepted { id, peer });
        let (site, idle) = (CountedSite::new(&self.site), Arc::new(IdleSince::now()));
        let own = idle.clone();
        let connection = actor(move |cx| serve(cx, stream, site, own, peer.ip()));
        let connection = connection.name("http connection").spawn();
        // Adopted, so that a stop reaches the connection, and its end comes back as an event.
        let open = ServedConnection {
            address: connection.address(),
            idle,
            peer: counted,
        };
        state.open.insert(id, open);
        cx.adopt(connection, move |ended| ListenerEvent::Ended(id, ended));
    }

    /// Makes room for a connection, also by the end of one that is idle. Returns whether there is room.
    fn make_room(&self, state: &mut ListenerState, peer: Option<RemoteClient>) -> bool {
        let limits = &self.site.limits;
        if let Some(peer) = peer {
            let own = state.open.values().filter(|it| it.peer == Some(peer));
            if own.count() >= limits.connections_a_peer {
                self.site.counts.limit("connections_a_peer");
                return state.end_idle(|it| it.peer == Some(peer));
            }
        }
        if state.open.len() >= limits.connections {
            self.site.counts.limit("connections");
            return state.end_idle(|_| true);
        }
        true
    }

    /// Handles an event. Once it is stopped, it accepts nothing and waits for its connections.
    fn handle(
        &self,
        cx: &mut Context<ListenerEvent>,
        state: &mut ListenerState,
        event: ListenerEvent,
    ) {
        match event {
            ListenerEvent::Ended(id, ended) => {
                // One that has made room for another was open at no stop.
                let was_open = state.open.remove(&id).is_some();
                let why = ended.unwrap_or_else(|fault| match fault {
                    Fault::Killed | Fault::Cancelled => CloseReason::Cut,
                    other => CloseReason::Failed(fault_text(&other)),
                });
                if let Some(stopping) = state.stopping.as_mut().filter(|_| was_open) {
                    match why {
                        CloseReason::Cut | CloseReason::Failed(_) => stopping.report.cut += 1,
                        _ => stopping.report.finished += 1,
                    }
                }
                self.report(HttpEvent::Closed { id, why });
            }
            ListenerEvent::StopListening => state.listener = None,
            ListenerEvent::Stop(reply) => {
                state.listener = None;
                let stopping = state.stopping.get_or_insert_with(|| {
                    cx.stop_children();
                    Stopping {
                        grace: Some(sleep(self.grace)),
                        report: StopReport::default(),
                        replies: Vec::new(),
                    }
                });
                stopping.replies.extend(reply);
            }
            ListenerEvent::Came(Ok((stream, peer))) => {
                state.pause = None;
                self.accept(cx, state, stream, peer);
            }
            ListenerEvent::Came(Err(error)) => {
                // A connection that is gone already is no reason to wait.
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    state.pause = Some(sleep(PAUSE));
                }
            }
            ListenerEvent::TimeOver => state.time_is_over(),
        }
    }

    fn report(&self, event: HttpEvent) {
        if let Some(events) = &self.events {
            // The program may not receive events any more.
            let _ = events.tell(event);
        }
    }
}

/// Returns a text without that of a panic.
fn fault_text(fault: &Fault) -> String {
    match fault {
        Fault::Panicked(_) => "panicked".to_owned(),
        other => other.to_string(),
    }
}

impl ListenerState {
    /// Waits for the next event. Returns `None` if no message can come any more.
    async fn next(&mut self, cx: &mut Context<ListenerEvent>) -> Option<ListenerEvent> {
        let (listener, is_paused) = (&self.listener, self.pause.is_some());
        let comes = async {
            match listener {
                Some(listener) if !is_paused => Some(ListenerEvent::Came(listener.accept().await)),
                _ => pending().await,
            }
        };
        let grace = self.stopping.as_mut().and_then(|it| it.grace.as_mut());
        let time = async {
            match grace.or(self.pause.as_mut()) {
                Some(sleep) => sleep.await,
                None => pending().await,
            }
            Some(ListenerEvent::TimeOver)
        };
        let message = async { cx.recv().await };
        // Messages come first: a stop is not delayed by connections that keep coming.
        or(message, or(time, comes)).await
    }

    /// Cuts the connections that are left after the grace, or ends the pause.
    fn time_is_over(&mut self) {
        let grace = self.stopping.as_mut().and_then(|it| it.grace.take());
        if grace.is_none() {
            self.pause = None;
            return;
        }
        self.open.values().for_each(|open| open.address.kill());
    }

    /// Ends the connection that has been idle longest, of those that are meant. Returns whether there
    /// is one.
    fn end_idle(&mut self, is_meant: impl Fn(&ServedConnection) -> bool) -> bool {
        let meant = self.open.iter().filter(|(_, open)| is_meant(open));
        let idle = meant.filter_map(|(id, open)| Some((open.idle.get()?, *id)));
        let Some((_, id)) = idle.min() else {
            return false;
        };
        let ended = self.open.remove(&id);
        ended.inspect(|ended| ended.address.kill());
        true
    }

    fn report(self) {
        let Some(stopping) = self.stopping else {
            return;
        };
        for reply in stopping.replies {
            reply.send(stopping.report);
        }
    }
}

/// Answers a client that there is no room for its connection.
async fn refuse(stream: Socket, site: Arc<Site>) {
    let response = no_room(site.form);
    let answers = async {
        let _ = stream.write_all(&response).await;
        let _ = stream.end_writing();
        // A request that has come would make the end a reset, which may overtake the answer.
        drain(&stream).await;
    };
    let _ = timeout(REFUSAL, pin!(answers)).await;
}
