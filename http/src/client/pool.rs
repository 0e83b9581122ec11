//! The actor behind a client: a queue of exchanges, and the connections that carry them.

use std::collections::VecDeque;
use std::sync::Arc;

use greenroom::{Context, Handle, Refusal, RefusalKind, actor};

use super::connection::{Job, Target, serve};
use super::exchange::Exchange;

/// The exchanges that wait at most.
const ROOM: usize = 256;

pub(super) enum Order {
    Carry(Box<dyn Exchange>),
    /// The connection of this number has no exchange any more.
    Free(usize),
    /// The connection of this number has ended: the code of an exchange has panicked.
    Lost(usize),
}

/// Gives the exchanges to the connections, first come first served.
pub(super) async fn run(mut cx: Context<Order>, target: Arc<Target>, connections: usize) {
    let connection = |_| {
        let target = target.clone();
        let connection = actor(move |cx| serve(cx, target));
        connection.name("http client connection").spawn()
    };
    let mut connections: Vec<Handle<Job, ()>> = (0..connections).map(connection).collect();
    let mut free: Vec<usize> = (0..connections.len()).rev().collect();
    let mut queue: VecDeque<Box<dyn Exchange>> = VecDeque::new();
    while let Some(order) = cx.recv().await {
        match order {
            Order::Carry(exchange) if queue.len() >= ROOM => {
                let why = format!("{ROOM} requests to {:?} wait", target.address);
                exchange.refuse(Refusal::of(RefusalKind::Overloaded, why));
            }
            Order::Carry(exchange) => queue.push_back(exchange),
            Order::Free(number) => free.push(number),
            Order::Lost(number) => {
                connections[number] = connection(number);
                free.push(number);
            }
        }
        while !queue.is_empty()
            && let Some(number) = free.pop()
        {
            let exchange = queue.pop_front().expect("it is not empty");
            let request = connections[number].request(|done| Job { exchange, done });
            cx.on_answer(request, move |done| match done {
                Ok(()) => Order::Free(number),
                Err(_) => Order::Lost(number),
            });
        }
    }
}
