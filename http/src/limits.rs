//! What a client may ask of a server.

use std::time::Duration;

use crate::values::{JsonRules, MapForm};

/// How long a body may come, and an answer go, slower than its rate at first: a connection begins slowly.
pub(crate) const SLOW_START: Duration = Duration::from_secs(5);

/// What clients may send and how long they may take, with the answer to those that exceed it.
///
/// Each hit is counted by [`metrics`](crate::metrics), under the name of the limit:
/// `greenroom_http_limits_total{limit="uri"}`. A server with an impossible limit does not listen:
/// only `body`, the rates and the unsent bytes may be 0.
///
/// ```
/// use greenroom_http::Limits;
///
/// let limits = Limits { body: 1 << 20, ..Limits::default() };
/// assert_eq!(limits.connections, 1024);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's URI: 8000, and 65 534 at most. More are answered with 414.
    pub uri: usize,
    /// Bytes of the value of a header field: 8192. More are answered with 431.
    pub header_value: usize,
    /// Bytes of a request's head: 16384, and 262 144 at most. More are answered with 431.
    pub head: usize,
    /// Header fields of a request: 64, and 10 000 at most. More are answered with 431.
    pub headers: usize,
    /// Bytes of a request's body: 262144. More are answered with 413.
    pub body: usize,
    /// Lists and objects of JSON that are within each other: 64, and 127 at most. More are answered with 400.
    pub depth: usize,
    /// Elements of a list of JSON: 10 000. More are answered with 400.
    pub list: usize,
    /// Connections that are open: 1024. For another one, that goes which has been idle longest: it has
    /// no request that is being answered. If there is none, the new one is answered with 503 and
    /// closed.
    pub connections: usize,
    /// Connections of one client, by its address, or by the first 64 bits of an address of IPv6: 64.
    /// Another one takes the place of the client's own that has been idle longest, or is answered with
    /// 503 and closed. Clients at loopback addresses have no such limit. Those of a
    /// [proxy](crate::ServerBuilder::trust_proxy) are told apart by its `Forwarded`, and the limit is
    /// that of their requests for which actors work.
    pub connections_a_peer: usize,
    /// Requests for which actors work: 256. Another one is answered with 503.
    pub in_flight: usize,
    /// Requests of a connection, which is closed after the last one: 1000.
    pub requests_a_connection: u64,
    /// The time for a head, the first one from the beginning of the connection on: 5 s. A part of a head
    /// is answered with 408, nothing with a close.
    pub head_time: Duration,
    /// The time for a body: 30 s. A longer one is answered with 408.
    pub body_time: Duration,
    /// Bytes of a body a second, after a start of 5 s: 1024. Fewer are answered with 408. 0 is no limit.
    pub body_rate: u64,
    /// The time that an actor has to answer: 30 s. Then 504 is the answer.
    pub answer_time: Duration,
    /// The time between two requests of a connection, which is closed then: 15 s.
    pub idle_time: Duration,
    /// The time in which a client takes no byte of an answer: 10 s. Then the connection is cut.
    /// [`write_rate`](Limits::write_rate) may cut it before.
    pub write_time: Duration,
    /// Bytes of an answer that a client takes in a second, in each 5 s and 5 s later: 1024. With fewer,
    /// the connection is cut. 0 is no limit.
    pub write_rate: u64,
    /// Bytes of answers that all clients have not taken: 64 MiB. With more, requests for actors are
    /// answered with 503. Of one connection, this is at most one answer: its next request waits until
    /// all of it was taken.
    pub unsent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            uri: 8000,
            header_value: 8 * 1024,
            head: 16 * 1024,
            headers: 64,
            body: 256 * 1024,
            depth: 64,
            list: 10_000,
            connections: 1024,
            connections_a_peer: 64,
            in_flight: 256,
            requests_a_connection: 1000,
            head_time: Duration::from_secs(5),
            body_time: Duration::from_secs(30),
            body_rate: 1024,
            answer_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(15),
            write_time: Duration::from_secs(10),
            write_rate: 1024,
            unsent: 64 << 20,
        }
    }
}

impl Limits {
    /// Returns what is wrong with a limit: it lets no request through, or more than hyper and
    /// serde_json do.
    pub(crate) fn problem(&self) -> Option<String> {
        let numbers = [
            ("uri", self.uri as u64, 65_534),
            ("header_value", self.header_value as u64, u64::MAX),
            ("head", self.head as u64, 256 * 1024),
            ("headers", self.headers as u64, 10_000),
            ("depth", self.depth as u64, 127),
            ("list", self.list as u64, u64::MAX),
            ("connections", self.connections as u64, u64::MAX),
            (
                "connections_a_peer",
                self.connections_a_peer as u64,
                u64::MAX,
            ),
            ("in_flight", self.in_flight as u64, u64::MAX),
            (
                "requests_a_connection",
                self.requests_a_connection,
                u64::MAX,
            ),
        ];
        let times = [
            ("head_time", self.head_time),
            ("body_time", self.body_time),
            ("answer_time", self.answer_time),
            ("idle_time", self.idle_time),
            ("write_time", self.write_time),
        ];
        let times = times.map(|(name, time)| (name, u64::from(!time.is_zero()), u64::MAX));
        // Only a time of 0 is impossible, so it counts as 0 and any other one as 1.
        let mut all = numbers.into_iter().chain(times);
        let wrong = all.find(|(_, number, most)| *number == 0 || number > most);
        wrong.map(|(name, number, most)| match number {
            0 => format!("the limit {name} is 0"),
            _ => format!("the limit {name} is {number}, more than {most}"),
        })
    }

    pub(crate) fn of_json(&self, maps: MapForm) -> JsonRules {
        JsonRules {
            depth: self.depth,
            list: self.list,
            maps,
        }
    }
}
