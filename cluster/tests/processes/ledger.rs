//! Sessions of numbered notes, and the comparison with what was handled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_cluster::{Distance, RemoteAddress, RemoteAskError};

use crate::notes::Note;
use crate::process::Handled;

/// What an address was given, in order. The numbers of the notes begin with 0.
#[derive(Debug)]
pub struct Session {
    number: u64,
    /// The notes that were accepted. The last one perhaps was not, if the address was lost.
    accepted: u64,
    /// The notes of which an answer says that they were handled, with all before them.
    answered: u64,
    pub is_lost: bool,
}

impl Session {
    /// Sends notes until the address is lost, or there are as many as `most`. The last one is then
    /// asked, so all are handled.
    pub async fn run(far: RemoteAddress<Note>, most: u64) -> Session {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut session = Session {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            accepted: 0,
            answered: 0,
            is_lost: false,
        };
        while session.accepted < most && !session.is_lost {
            session.step(&far, session.accepted + 1 == most).await;
        }
        session
    }

    async fn step(&mut self, far: &RemoteAddress<Note>, is_last: bool) {
        let (session, number) = (self.number, self.accepted);
        let told = Note::Told(session, number);
        let sent = match number % 16 {
            _ if is_last => return self.ask(far).await,
            15 => return self.ask(far).await,
            0..8 => far.tell(told),
            _ => far.send(told).await,
        };
        match sent.map_err(|error| error.why) {
            Ok(()) => self.accepted += 1,
            Err(Distance::Full) => return self.ask(far).await,
            Err(Distance::Lost) => self.is_lost = true,
            Err(why) => panic!("{why}"),
        }
    }

    async fn ask(&mut self, far: &RemoteAddress<Note>) {
        let number = self.accepted;
        // Perhaps it is sent, and perhaps it is handled.
        self.accepted += 1;
        match far
            .ask(|reply| Note::Asked(self.number, number, reply))
            .await
        {
            Ok(answer) => {
                assert_eq!(answer, number);
                self.answered = self.accepted;
            }
            Err(RemoteAskError::Lost) => self.is_lost = true,
            Err(why) => panic!("{why}"),
        }
    }
}

/// Asserts that of each session a prefix was handled, in order, each note once, with all answered
/// ones.
pub fn compare(sessions: &[Session], handled: &[Handled]) {
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (session, number) in handled {
        numbers.entry(*session).or_default().push(*number);
    }
    for session in sessions {
        let handled = numbers.remove(&session.number).unwrap_or_default();
        let count = handled.len() as u64;
        assert!(
            handled.iter().copied().eq(0..count),
            "{session:?}: {handled:?}"
        );
        let Session {
            accepted, answered, ..
        } = *session;
        assert!(
            answered <= count && count <= accepted,
            "{session:?}: {count}"
        );
    }
    assert!(numbers.is_empty(), "nobody has sent {numbers:?}");
}
