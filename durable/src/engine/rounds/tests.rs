//! Tests of what belongs to a transaction.

use rusqlite::Connection;

use super::*;
use crate::engine::{ValueReceiver, reply};
use crate::records::command::NewJob;
use crate::records::schema;

/// An engine to which commands come while others run. It counts its commits.
struct LateEngine {
    late: Vec<Entry>,
    commits: usize,
}

impl RoundEngine for LateEngine {
    fn now(&self) -> i64 {
        0
    }

    fn take_late(&mut self, most: usize) -> Vec<Entry> {
        self.late
            .drain(..most.min(1).min(self.late.len()))
            .collect()
    }

    fn commit(&mut self, db: &Db<'_>) -> Result<(), StoreProblem> {
        self.commits += 1;
        commit(db)
    }
}

fn entry(command: Command) -> (Entry, ValueReceiver<CommandResult>) {
    let (sender, receiver) = reply();
    let reply = Some(sender);
    (Entry { command, reply }, receiver)
}

fn put() -> Command {
    Command::Put(NewJob {
        queue: 1,
        kind: 1,
        id: None,
        key: None,
        priority: 0,
        delay: 0,
        payload: Vec::new(),
    })
}

#[test]
fn commands_that_come_while_others_run_share_their_commit() {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::complete(&mut connection).unwrap();
    let (first, mut first_answer) = entry(put());
    let (late, answers): (Vec<_>, Vec<_>) = (0..300).map(|_| entry(put())).unzip();
    let mut engine = LateEngine { late, commits: 0 };
    let mut rounds = Rounds::new(Limits::default());
    rounds.round(&Db::new(&connection), &mut engine, vec![first], false);
    assert!(matches!(first_answer.end(), Some(Ok(_))));
    assert_eq!(engine.commits, 1);
    // A transaction has so many commands at most. The others wait for the next round.
    let answered = answers.into_iter().filter_map(|mut answer| answer.end());
    assert_eq!(answered.count(), COMMANDS - 1);
    assert_eq!(engine.late.len(), 300 - (COMMANDS - 1));
}
