//! The actor behind a client: a queue of exchanges, and the connections that carry them.

use std::collections::VecDeque;
use std::sync::Arc;

use greenroom::trace::CarriedSpan;
use greenroom::{Context, Handle, Refusal, RefusalKind, actor};

use super::connection::{Upstream, serve};
use super::exchange::Exchange;

/// The exchanges that wait at most.
const ROOM: usize = 256;

/// A message to the actor behind a client.
pub(super) enum PoolMessage {
    Carry(Box<dyn Exchange>),
    /// The connection of this number has no exchange any more.
    Free(usize),
    /// The connection of this number has ended: the code of an exchange has panicked.
    Lost(usize),
}

/// Gives the exchanges to the connections, in the order in which they came.
pub(super) async fn run(mut cx: Context<PoolMessage>, upstream: Arc<Upstream>, connections: usize) {
    let connection = |_| {
        let upstream = upstream.clone();
        let connection = actor(move |cx| serve(cx, upstream));
        connection.name("http client connection").spawn()
    };
    let mut connections: Vec<Handle<_, ()>> = (0..connections).map(connection).collect();
    let mut free: Vec<usize> = (0..connections.len()).rev().collect();
    let mut queue: VecDeque<(Box<dyn Exchange>, CarriedSpan)> = VecDeque::new();
    while let Some(message) = cx.recv().await {
        match message {
            PoolMessage::Carry(exchange) if queue.len() >= ROOM => {
                let why = format!("{ROOM} requests to {:?} wait", upstream.address);
                exchange.refuse(Refusal::of(RefusalKind::Overloaded, why));
            }
            PoolMessage::Carry(exchange) => {
                queue.push_back((exchange, CarriedSpan::current()));
            }
            PoolMessage::Free(number) => free.push(number),
            PoolMessage::Lost(number) => {
                connections[number] = connection(number);
                free.push(number);
            }
        }
        // Each free connection takes the oldest exchange that waits.
        while !queue.is_empty()
            && let Some(number) = free.pop()
        {
            let (exchange, span) = queue.pop_front().expect("it is not empty");
            let request = connections[number].request(|done| (exchange, done));
            // Not within the span of the request that was answered just now.
            span.in_scope(|| {
                cx.on_answer(request, move |done| match done {
                    Ok(()) => PoolMessage::Free(number),
                    Err(_) => PoolMessage::Lost(number),
                });
            });
        }
    }
}
