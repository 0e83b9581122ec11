//! Two turns that overlap: each checks for a message that the other one is about to send.
//!
//! Each of two candidates checks whether the other has announced that it leads. If not, it
//! announces that it leads itself. As long as turns do not overlap, the second candidate finds the
//! message of the first.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts_within_a_turn};

enum Candidate {
    Run(Address<Candidate>),
    OtherLeads,
}

/// Replies `true` to the first asker only.
pub async fn referee(mut cx: Context<Reply<bool>>) {
    let mut is_first = true;
    while let Some(reply) = cx.recv().await {
        reply.send(std::mem::replace(&mut is_first, false));
    }
}

/// Returns whether this candidate leads.
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
            // The other candidate may have ended.
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
    // The first may have announced itself already; then the second has ended.
    let _ = two.tell(Candidate::Run(one.address()));
    let leaders = [one.join().await.unwrap(), two.join().await.unwrap()];
    assert!(leaders != [true, true], "zoo: two lead");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    *problem == RunProblem::Panicked("main panicked: zoo: two lead".to_owned())
}

hunts_within_a_turn!(election, is_the_bug);
