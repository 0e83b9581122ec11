//! A reply that is sent too early: the asker then asks another actor, where nothing has happened
//! yet.
//!
//! A coordinator replies and then sends to the participant, in one turn. Only a task that runs
//! between these two effects reveals the bug.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts_within_a_turn};

enum Participant {
    Decide,
    HasDecided(Reply<bool>),
}

async fn participant(mut cx: Context<Participant>) {
    let mut has_decided = false;
    while let Some(message) = cx.recv().await {
        match message {
            Participant::Decide => has_decided = true,
            Participant::HasDecided(reply) => reply.send(has_decided),
        }
    }
}

async fn coordinator(
    mut cx: Context<Reply<()>>,
    participant: Address<Participant>,
    version: Version,
) {
    while let Some(reply) = cx.recv().await {
        match version {
            Version::Buggy => {
                reply.send(());
                participant.tell(Participant::Decide).unwrap();
            }
            Version::Mended => {
                participant.tell(Participant::Decide).unwrap();
                reply.send(());
            }
        }
    }
}

pub async fn commit(version: Version) {
    let participant = spawn!(participant(_), name = "participant");
    let to = participant.address();
    let coordinator = spawn!(coordinator(_, to, version), name = "coordinator");
    coordinator.ask(|reply| reply).await.unwrap();
    let has_decided = participant.ask(Participant::HasDecided).await.unwrap();
    assert!(has_decided, "zoo: it is not decided yet");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    *problem == RunProblem::Panicked("main panicked: zoo: it is not decided yet".to_owned())
}

hunts_within_a_turn!(commit, is_the_bug);
