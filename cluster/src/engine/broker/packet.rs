//! The packets that nodes exchange over a broker.
//!
//! A packet is the version of the protocol in two bytes, and then the packet as postcard encodes it.
//! A packet of another version is never decoded.

use serde::{Deserialize, Serialize};

use crate::link::frame::{Hello, VERSION};

/// The first bytes of what a server says of a user, and the version of no packet. It says so to each
/// user that asks, under the subject that the user names: also under that of another node.
const SERVER_TEXT: u16 = u16::from_le_bytes(*b"{\"");

/// The most bytes of a packet without its frames, and without the names in a hello.
pub(super) const HEAD: usize = 64;

/// What a packet says. [`Hello`](Packet::Hello) stays the first one in all versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Packet {
    /// The sender wants a link of this epoch.
    Hello { epoch: u64, greeting: Greeting },
    /// The link of this epoch is up.
    Welcome { epoch: u64, greeting: Greeting },
    /// There will be no link of this epoch.
    Refused { epoch: u64, why: String },
    /// Frames follow.
    Batch { epoch: u64, numbers: BatchNumbers },
    /// What the sender has sent and taken so far.
    Numbers { epoch: u64, numbers: BatchNumbers },
    /// The link of this epoch is down.
    Cut { epoch: u64 },
    /// Who holds this name?
    Find { name: String },
    /// Who holds names that begin with this?
    Watch { prefix: String },
    /// The sender holds this name.
    Holds { name: String, kind: String },
}

/// The hello of a node, with what tells its connection from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub(super) hello: Hello,
    /// The connection of the node with its server. Empty if the broker has no such number.
    pub(super) connection: String,
}

/// The state of a link at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BatchNumbers {
    /// The number of the last batch that was sent. In a batch it is that of the batch.
    pub(super) sent: u64,
    /// The number of the last batch that was taken.
    pub(super) taken: u64,
    /// The weight of all batches that the other end may send, from the first one on.
    pub(super) granted: u64,
    /// Whether the sender waits for numbers: it knows of batches that were not taken, or may send none.
    pub(super) awaits: bool,
}

/// Why bytes are no packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PacketError {
    /// The packet is of this version, and may be a hello.
    Version {
        theirs: u16,
        is_hello: bool,
    },
    /// A server has said them, and not the node of the subject.
    OfServer,
    Malformed,
}

impl Packet {
    /// Encodes the packet, with room for so many bytes behind it.
    pub(super) fn encode(&self, room: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + room);
        bytes.extend(VERSION.to_le_bytes());
        // Values of this module can always be encoded.
        postcard::to_extend(self, bytes).unwrap_or_default()
    }

    /// Decodes a packet. Returns what follows it, which only a batch has.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Packet, &[u8]), PacketError> {
        let (version, rest) = bytes.split_first_chunk().ok_or(PacketError::Malformed)?;
        match u16::from_le_bytes(*version) {
            VERSION => {}
            SERVER_TEXT => return Err(PacketError::OfServer),
            theirs => {
                let is_hello = rest.first() == Some(&0);
                return Err(PacketError::Version { theirs, is_hello });
            }
        }
        match postcard::take_from_bytes(rest) {
            Ok((batch @ Packet::Batch { .. }, frames)) => Ok((batch, frames)),
            Ok((packet, [])) => Ok((packet, &[])),
            _ => Err(PacketError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::compare;
    use crate::link::frame::ClusterMember;

    #[test]
    fn packets_of_version_0_1_0_are_read_and_written() {
        let member = ClusterMember {
            name: "shop".into(),
            incarnation: 1 << 100,
            addresses: Vec::new(),
        };
        let hello = Hello {
            member,
            lease: 5000,
            frame: 1 << 20,
            features: 0,
        };
        let (epoch, connection) = (9, "server/1".into());
        let greeting = Greeting { hello, connection };
        let numbers = BatchNumbers {
            sent: 300,
            taken: 2,
            granted: 1 << 24,
            awaits: true,
        };
        let (name, kind) = ("tally".to_owned(), "note/1".into());
        let welcome = greeting.clone();
        let packets = [
            Packet::Hello { epoch, greeting },
            Packet::Welcome {
                epoch,
                greeting: welcome,
            },
            Packet::Refused {
                epoch,
                why: "no".into(),
            },
            Packet::Batch { epoch, numbers },
            Packet::Numbers { epoch, numbers },
            Packet::Cut { epoch },
            Packet::Find { name: name.clone() },
            Packet::Watch {
                prefix: "ta".into(),
            },
            Packet::Holds { name, kind },
        ];
        let decode = |bytes: &[u8]| match Packet::decode(bytes) {
            Ok((packet, [])) => packet,
            other => panic!("{other:?}"),
        };
        let file = include_str!("../../formats/packets-1.txt");
        compare(file, &packets, |packet| packet.encode(0), decode);
    }

    #[test]
    fn the_head_of_the_longest_batch_has_room() {
        let numbers = BatchNumbers {
            sent: u64::MAX,
            taken: u64::MAX,
            granted: u64::MAX,
            awaits: true,
        };
        let batch = Packet::Batch {
            epoch: u64::MAX,
            numbers,
        };
        let bytes = batch.encode(0);
        assert!(bytes.len() <= HEAD, "{}", bytes.len());
        let frames = [&bytes[..], b"frames"].concat();
        assert_eq!(Packet::decode(&frames), Ok((batch, &b"frames"[..])));
    }

    #[test]
    fn only_a_batch_has_something_behind_it() {
        let cut = Packet::Cut { epoch: 1 }.encode(0);
        let longer = [&cut[..], b"x"].concat();
        assert_eq!(Packet::decode(&longer), Err(PacketError::Malformed));
        for end in 0..cut.len() {
            assert_eq!(Packet::decode(&cut[..end]), Err(PacketError::Malformed));
        }
    }

    #[test]
    fn a_hello_of_another_version_is_known_as_one() {
        let (theirs, is_hello) = (VERSION + 1, true);
        let bytes = [&theirs.to_le_bytes()[..], &[0, 1, 2]].concat();
        let version = PacketError::Version { theirs, is_hello };
        assert_eq!(Packet::decode(&bytes), Err(version));
    }
}
