//! Two turns that overlap: each looks for what the other one is about to send.
//!
//! Two candidates look whether the other has told them that it leads; if not, each tells that it leads itself. As
//! long as one turn comes after the other, the second candidate finds the message of the first.

use greenroom::sim::Problem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts_within_a_turn};

enum Candidate {
    Run(Address<Candidate>),
    OtherLeads,
}

/// Gives `true` to the first who asks.
pub async fn referee(mut cx: Context<Reply<bool>>) {
    let mut is_first = true;
    while let Some(reply) = cx.recv().await {
        reply.send(std::mem::replace(&mut is_first, false));
    }
}

/// Says whether it leads.
async fn candidate(
    mut cx: Context<Candidate>,
    referee: Address<Reply<bool>>,
    version: Version,
) -> bool {
    let Some(Candidate::Run(other)) = cx.recv().await else {
        return false;
    };
    match version {
        Version::Mended => referee.ask(|reply| reply).await.unwrap(),
        Version::Buggy => {
            if let Some(Candidate::OtherLeads) = cx.try_recv() {
                return false;
            }
            // It may have ended.
            let _ = other.tell(Candidate::OtherLeads);
            true
        }
    }
}

pub async fn election(version: Version) {
    let referee = spawn!(referee(_), name = "referee");
    let [one, two] = ["one", "two"].map(|name| {
        let referee = referee.address();
        spawn!(candidate(_, referee, version), name = name)
    });
    one.tell(Candidate::Run(two.address())).unwrap();
    // The first may have told the second already, which then gives up.
    let _ = two.tell(Candidate::Run(one.address()));
    let leaders = [one.join().await.unwrap(), two.join().await.unwrap()];
    assert!(leaders != [true, true], "zoo: two lead");
}

fn is_the_bug(problem: &Problem) -> bool {
    *problem == Problem::Panicked("main panicked: zoo: two lead".to_owned())
}

hunts_within_a_turn!(election, is_the_bug);
