//! The frames of the files, and a message.

use super::codec::{decode, encode};
use super::frame::{
    ClusterMember, Hello, LENGTH, LinkFrame, Publication, StreamEnd, TRACES, Unanswered, Window,
    WireRefusal, first, framed,
};
use super::{LinkOwner, Target};
use crate::address::RemoteAddress;
use crate::formats::compare;
use crate::fuzzing::{Desk, FRAME, Note};
use crate::remote::Remote;

const WINDOW: Window = Window {
    messages: 1024,
    bytes: 1 << 20,
};

fn member() -> ClusterMember {
    ClusterMember {
        name: "shop".into(),
        incarnation: 1 << 100,
        addresses: vec!["10.0.0.1:7000".into()],
    }
}

/// Returns the bytes behind the length, which has to be theirs.
fn behind_length(bytes: &[u8]) -> &[u8] {
    let frame = first(bytes, FRAME).unwrap().unwrap();
    assert_eq!(frame.len() + LENGTH, bytes.len());
    frame
}

fn ends() -> impl Iterator<Item = LinkFrame<'static>> {
    let ends = [
        StreamEnd::Closed,
        StreamEnd::Unknown,
        StreamEnd::WrongKind("note/1".into()),
        StreamEnd::Undecodable("no text".into()),
        StreamEnd::Excess("twice".into()),
        StreamEnd::TooMany { limit: 1000 },
    ];
    ends.into_iter().map(|why| LinkFrame::Ended {
        stream: 300,
        taken: 2,
        why,
    })
}

fn answers() -> impl Iterator<Item = LinkFrame<'static>> {
    let refusal = WireRefusal {
        kind: 3,
        condition: "full".into(),
        explanation: "no room".into(),
        code: Some(-7),
        status: None,
    };
    let unanswered = [
        Unanswered::Refused(refusal),
        Unanswered::NoReply("dropped".into()),
        Unanswered::TooLarge {
            bytes: 1 << 40,
            limit: 1 << 20,
        },
    ];
    let unanswered = unanswered.into_iter();
    unanswered.map(|why| LinkFrame::Unanswered { ask: 5, why })
}

fn frames() -> Vec<LinkFrame<'static>> {
    let publication = Publication {
        actor: 7,
        name: "tally".into(),
        kind: "note/1".into(),
        window: WINDOW,
    };
    let first = [
        LinkFrame::Open {
            stream: 300,
            actor: 7,
            kind: "note/1".into(),
            window: WINDOW,
        },
        LinkFrame::Message { stream: 300 },
        LinkFrame::Credit {
            stream: 300,
            messages: 1,
            bytes: 4096,
        },
        LinkFrame::ReturnCredit { stream: 300 },
        LinkFrame::Close { stream: 300 },
    ];
    let last = [
        LinkFrame::Answer { ask: 5 },
        LinkFrame::Unwanted { ask: 5 },
        LinkFrame::Publish(publication),
        LinkFrame::Withdraw { actor: 7 },
        LinkFrame::Members(vec![member()]),
        LinkFrame::Ping,
        LinkFrame::Bye,
        LinkFrame::Unused,
        LinkFrame::Used,
        LinkFrame::TracedMessage { stream: 300 },
    ];
    let frames = first.into_iter().chain(ends()).chain(answers());
    frames.chain(last).collect()
}

#[test]
fn frames_of_version_0_1_0_are_read_and_written() {
    let decode = |bytes: &[u8]| {
        let bytes = Vec::leak(bytes.to_vec());
        let (frame, payload) = LinkFrame::decode(behind_length(bytes)).unwrap();
        assert!(payload.is_empty());
        frame
    };
    let file = include_str!("../formats/frames-1.txt");
    compare(file, &frames(), LinkFrame::encode, decode);
}

#[test]
fn a_hello_of_version_0_1_0_is_read_and_written() {
    let hello = Hello {
        member: member(),
        lease: 5000,
        frame: 1 << 20,
        features: TRACES,
    };
    let decode = |bytes: &[u8]| postcard::from_bytes(behind_length(bytes)).unwrap();
    compare(
        include_str!("../formats/hello-1.txt"),
        &[hello],
        framed,
        decode,
    );
}

#[test]
fn addresses_of_version_0_1_0_are_read_and_written_in_messages() {
    let (desk, link, _wire) = Desk::link();
    let target = Target {
        node: "shop".into(),
        incarnation: 1 << 100,
        actor: 7,
        kind: Note::KIND.into(),
        window: WINDOW,
    };
    let address = RemoteAddress::<Note>::new(desk.outgoing(target));
    let head = LinkFrame::Message { stream: 300 };
    let encode = |_: &_| encode(&link, &head, None, &address, None).unwrap().0;
    let decode = |bytes: &[u8]| {
        let (head, payload) = LinkFrame::decode(behind_length(bytes)).unwrap();
        let address = decode::<RemoteAddress<Note>>(&link, payload).unwrap();
        format!("{head:?} {address:?}")
    };
    let value = format!("{head:?} {address:?}");
    let file = include_str!("../formats/message-1.txt");
    compare(file, &[value], encode, decode);
}
