//! What a node takes from others, and how much it keeps for them.

/// The limits of a node.
///
/// ```
/// use greenroom_cluster::Limits;
///
/// let limits = Limits { frame: 64 << 10, ..Limits::default() };
/// assert_eq!(limits.peers, 64);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message or an answer, with some bytes around it: 1 MiB, from 4 KiB to 64 MiB. The
    /// smaller limit of both nodes counts. A larger message is not sent
    /// ([`TooLarge`](crate::Distance::TooLarge)), and a larger frame of a peer ends its link. A peer
    /// that does not read its answers loses its link too: when 64 of the largest frames wait for it,
    /// and at least 64 MiB.
    pub frame: usize,
    /// Nodes that are connected: 64. Another one is refused.
    pub peers: usize,
    /// Names of this node, and of each other one: 10 000. Another one is
    /// [refused](crate::PublishError::TooMany) here, and ignored if it comes from a peer.
    pub names: usize,
    /// Streams from each node, which are actors here for which it has an address: 10 000. A stream
    /// beyond them ends with [`TooManyStreams`](crate::Distance::TooManyStreams).
    pub streams: usize,
    /// Messages that each node may have under way to an unbounded actor: 1024. A bounded actor has
    /// its capacity, if that is less.
    pub messages: u32,
    /// Bytes that each node may have under way to an actor: 1 MiB. The last message may exceed it.
    pub bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame: 1 << 20,
            peers: 64,
            names: 10_000,
            streams: 10_000,
            messages: 1024,
            bytes: 1 << 20,
        }
    }
}

impl Limits {
    /// Returns what is wrong with a limit.
    pub(crate) fn problem(&self) -> Option<String> {
        let limits = [
            ("frame", self.frame, 4 << 10, 64 << 20),
            ("peers", self.peers, 1, 1 << 16),
            ("names", self.names, 1, 1 << 24),
            ("streams", self.streams, 1, 1 << 24),
            ("messages", self.messages as usize, 1, 1 << 24),
            ("bytes", self.bytes as usize, 1, 1 << 30),
        ];
        let wrong = limits
            .into_iter()
            .find(|(_, limit, least, most)| limit < least || limit > most);
        wrong.map(|(name, limit, least, most)| {
            format!("the limit {name} is {limit}, and {least} to {most} are allowed")
        })
    }
}
