//! `DeadJob`: a job that is not tried any more.

use std::fmt;
use std::time::Duration;

use crate::error::StoreProblem;
use crate::records::command::RawDead;
use crate::stored::{Stored, decode};

/// A dead letter: a job that has failed in its last attempt, or whose payload is not understood.
///
/// It stays until it is [put again](crate::Store::requeue) or [removed](crate::Store::discard).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadJob {
    /// Its number in the store.
    pub number: i64,
    /// The kind of its payload.
    pub kind: String,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
    /// Why the last attempt has failed.
    pub reason: String,
    /// The payload as it is stored, in JSON.
    pub payload: Vec<u8>,
    /// How long it has been dead.
    pub age: Duration,
}

impl DeadJob {
    pub(crate) fn new(raw: RawDead) -> Self {
        DeadJob {
            number: raw.seq,
            kind: raw.kind,
            id: raw.id,
            key: raw.key,
            attempts: raw.attempts,
            reason: raw.reason,
            payload: raw.payload,
            age: Duration::from_millis(raw.age.max(0) as u64),
        }
    }

    /// Decodes the payload.
    ///
    /// # Errors
    /// [`StoreProblem::Undecodable`] with the reason.
    pub fn decode<J: Stored>(&self) -> Result<J, StoreProblem> {
        decode(&self.kind, &self.payload).map_err(StoreProblem::Undecodable)
    }
}

impl fmt::Debug for DeadJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadJob")
            .field("number", &self.number)
            .field("kind", &self.kind)
            .field("id", &self.id)
            .field("key", &self.key)
            .field("attempts", &self.attempts)
            .field("reason", &self.reason)
            .field("payload", &String::from_utf8_lossy(&self.payload))
            .field("age", &self.age)
            .finish()
    }
}
