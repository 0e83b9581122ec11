//! What is to be published: packets in their order, and links that have something to say.
//!
//! One task publishes, so the broker receives packets of a link in the order of their numbers. Each link
//! that waits has one turn, and then the broker has its own: meanwhile frames gather for a larger batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event_listener::Event;
use futures_lite::future::or;

use super::BrokerEngine;
#[cfg(any(test, fuzzing))]
use super::packet::{Greeting, Packet};
#[cfg(any(test, fuzzing))]
use super::subject::PacketSubject;
use super::subject::Token;
#[cfg(any(test, fuzzing))]
use crate::link::frame::Hello;
use crate::link::lock;

/// The time for what waits when the engine is stopped.
const LAST_PACKETS: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct Posts {
    waiting: Mutex<WaitingPosts>,
    /// Notified when something waits.
    posted: Event,
}

#[derive(Default)]
struct WaitingPosts {
    packets: VecDeque<Post>,
    /// The nodes whose links have something to say, in the order of their turns.
    links: VecDeque<Token>,
}

/// A packet with its subject.
pub(super) struct Post {
    pub(super) subject: String,
    pub(super) packet: Vec<u8>,
}

impl Posts {
    pub(super) fn push(&self, subject: String, packet: Vec<u8>) {
        let post = Post { subject, packet };
        lock(&self.waiting).packets.push_back(post);
        self.posted.notify(1);
    }

    /// Adds the link to a node, which publishes in its turn.
    pub(super) fn queue(&self, peer: &Token) {
        lock(&self.waiting).links.push_back(peer.clone());
        self.posted.notify(1);
    }

    fn is_empty(&self) -> bool {
        let waiting = lock(&self.waiting);
        waiting.packets.is_empty() && waiting.links.is_empty()
    }

    /// Takes the next packet, or else the next node whose link has its turn, with how many wait behind
    /// it.
    fn next(&self) -> Option<Result<Post, (Token, usize)>> {
        let mut waiting = lock(&self.waiting);
        // What begins or ends a link comes before its frames.
        if let Some(packet) = waiting.packets.pop_front() {
            return Some(Ok(packet));
        }
        let peer = waiting.links.pop_front()?;
        Some(Err((peer, waiting.links.len())))
    }
}

#[cfg(any(test, fuzzing))]
impl BrokerEngine {
    /// Takes the hello of a node that wants a link of this epoch.
    pub(crate) fn take_hello(self: &Arc<Self>, hello: Hello, epoch: u64) {
        let (to, from) = (&self.me, &Token::new(&hello.member.name));
        let subject = PacketSubject::To { to, from }.text();
        let connection = "server/1".into();
        let greeting = Greeting { hello, connection };
        self.arrived(&subject, &Packet::Hello { epoch, greeting }.encode(0));
    }

    /// Takes all that would be published now, with its subjects.
    pub(crate) fn take_posts(&self) -> Vec<(String, Vec<u8>)> {
        let mut posts = Vec::new();
        while let Some(next) = self.posts.next() {
            let post = next.map_or_else(|(peer, _)| self.turn_of(&peer), Some);
            posts.extend(post.map(|post| (post.subject, post.packet)));
        }
        posts
    }
}

/// Publishes what waits until the engine is stopped, and then the rest, as far as there is time.
pub(super) async fn publish(engine: Arc<BrokerEngine>) {
    let published = async {
        publish_all(&engine).await;
        engine.broker.close().await;
    };
    let over = async {
        engine.tasks.stop.wait().await;
        engine.broker.sleep(LAST_PACKETS).await;
    };
    or(published, over).await;
}

async fn publish_all(engine: &BrokerEngine) {
    // Set when nothing was found. What comes after that look notifies it.
    let mut posted = None;
    // The links that have their turns before that of the broker, while there are any.
    let mut round = None;
    loop {
        let post = match engine.posts.next() {
            Some(Ok(post)) => Some(post),
            Some(Err((peer, others))) => {
                let left: usize = round.unwrap_or(others + 1);
                round = Some(left - 1);
                engine.turn_of(&peer)
            }
            None if engine.tasks.stop.is_stopped() => return,
            None => {
                match posted.take() {
                    None => posted = Some(engine.posts.posted.listen()),
                    Some(posted) => or(posted, engine.tasks.stop.wait()).await,
                }
                continue;
            }
        };
        if let Some(Post { subject, packet }) = post {
            engine.broker.publish(subject, packet).await;
        }
        if round == Some(0) {
            round = None;
            // Without anything else, the wait for it lets the broker work as well.
            if !engine.posts.is_empty() {
                engine.broker.take_turn().await;
            }
        }
    }
}
