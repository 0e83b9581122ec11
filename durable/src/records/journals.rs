//! Journals: events of one key in their order, and snapshots.
//!
//! - CHAIN-1: the events of a stream are numbered from 1 without a gap, and its row has the last number.
//! - CHAIN-2: each event has the sum of itself and of all before it, and the row has the last sum. So a
//!   lost tail shows, as does a changed byte.
//! - CLAIM-1: a stream has the token of the one who has appended to it last. Whose first append it is
//!   has none and claims the stream, if it is at the last position.

use rusqlite::{Result, params};

use super::command::{
    Append, RawEvent, RawFence, RawSnapshot, RawStream, StoreAnswer, StreamClaim,
};
use super::schema::{RUNNING, Sum};
use super::tx::Tx;

/// The row of a stream.
pub(super) struct StreamHead {
    pub(super) position: i64,
    pub(super) token: i64,
    pub(super) chain: i64,
}

/// Returns the sum of an event and of all before it.
pub(super) fn chain_of(before: i64, position: i64, kind: i64, payload: &[u8]) -> i64 {
    let head = [position.to_le_bytes(), kind.to_le_bytes()].concat();
    Sum::new(before).add(&head).add(payload).end()
}

impl Tx<'_, '_> {
    pub(crate) fn open_stream(&mut self, name: &str, key: &str) -> Result<StoreAnswer> {
        let sql = "SELECT stream FROM stream WHERE name = ?1 AND key = ?2";
        let stream = match self.db.row(sql, params![name, key], |row| row.get(0))? {
            Some(stream) => stream,
            None => {
                let sql = "INSERT INTO stream(name, key) VALUES (?1, ?2)";
                self.db.run(sql, params![name, key])?;
                self.db.connection.last_insert_rowid()
            }
        };
        let snapshot = self.db.row(
            "SELECT position, chain, sum, (SELECT name FROM kind WHERE kind = snapshot.kind), payload
             FROM snapshot WHERE stream = ?1",
            [stream],
            |row| {
                let snapshot = RawSnapshot {
                    position: row.get(0)?,
                    chain: row.get(1)?,
                    kind: row.get(3)?,
                    payload: row.get(4)?,
                };
                let is_whole = snapshot_sum(&snapshot) == row.get::<_, i64>(2)?;
                Ok(is_whole.then_some(snapshot))
            },
        )?;
        // A damaged snapshot is not used: the events are there.
        let snapshot = snapshot.flatten();
        Ok(StoreAnswer::Stream(RawStream { stream, snapshot }))
    }

    pub(super) fn stream_head(&self, stream: i64) -> Result<Option<StreamHead>> {
        let sql = "SELECT position, token, chain FROM stream WHERE stream = ?1";
        self.db.row(sql, [stream], |row| {
            Ok(StreamHead {
                position: row.get(0)?,
                token: row.get(1)?,
                chain: row.get(2)?,
            })
        })
    }

    /// Reads events after a position, whose chain is given, and at most so many. Fewer are the last ones.
    pub(crate) fn read_events(
        &self,
        stream: i64,
        after: i64,
        chain: i64,
        most: usize,
    ) -> Result<StoreAnswer> {
        let (mut position, mut chain, mut events) = (after, chain, Vec::new());
        let mut damage = None;
        self.db.each(
            "SELECT position, kind, (SELECT name FROM kind WHERE kind = event.kind), chain, payload
             FROM event WHERE stream = ?1 AND position > ?2 ORDER BY position LIMIT ?3",
            params![stream, after, most as i64],
            |row| {
                let payload: Vec<u8> = row.get(4)?;
                position += 1;
                chain = chain_of(chain, position, row.get(1)?, &payload);
                if row.get::<_, i64>(0)? != position || row.get::<_, i64>(3)? != chain {
                    damage = Some(format!("event {position} of stream {stream} is not whole"));
                    return Ok(false);
                }
                let kind = row.get(2)?;
                events.push(RawEvent { kind, payload });
                Ok(true)
            },
        )?;
        let head = self.stream_head(stream)?;
        let is_end = events.len() < most;
        let is_last = head.is_some_and(|head| head.position == position && head.chain == chain);
        if damage.is_none() && is_end && !is_last {
            damage = Some(format!("the events of stream {stream} end at {position}"));
        }
        Ok(match damage {
            Some(what) => StoreAnswer::Damaged(what),
            None => StoreAnswer::Events {
                events,
                chain,
                is_end,
            },
        })
    }

    pub(crate) fn append(&mut self, append: &Append) -> Result<StoreAnswer> {
        let fence = append.fence.as_ref();
        if !fence.map_or(Ok(true), |fence| self.holds(fence))? {
            return Ok(StoreAnswer::Stale);
        }
        // The row mostly is as the writer has left it, and need not be read.
        if let Some(claim) = append.claim
            && let Some(appended) = self.append_at(append, claim)?
        {
            return Ok(appended);
        }
        let Some(head) = self.stream_head(append.stream)? else {
            return Ok(StoreAnswer::Missing);
        };
        // CLAIM-1
        if append.claim.is_some() || head.position != append.position {
            return Ok(StoreAnswer::Stale);
        }
        let token = self.next_token()?;
        let sql = "UPDATE stream SET token = ?2 WHERE stream = ?1";
        self.db.run(sql, params![append.stream, token])?;
        let chain = head.chain;
        let appended = self.append_at(append, StreamClaim { token, chain })?;
        Ok(appended.unwrap_or(StoreAnswer::Stale))
    }

    /// Adds events, if the row of the stream has this position and claim.
    fn append_at(&mut self, append: &Append, claim: StreamClaim) -> Result<Option<StoreAnswer>> {
        let kind = self.kind(append.kind)?;
        let (mut end, mut chain) = (append.position, claim.chain);
        let chains = append.events.iter().map(|payload| {
            end += 1;
            chain = chain_of(chain, end, kind, payload);
            chain
        });
        let chains: Vec<i64> = chains.collect();
        let changed = self.db.run(
            "UPDATE stream SET position = ?4, chain = ?5
             WHERE stream = ?1 AND position = ?2 AND token = ?3 AND chain = ?6",
            params![
                append.stream,
                append.position,
                claim.token,
                end,
                chain,
                claim.chain
            ],
        )?;
        if changed == 0 {
            return Ok(None);
        }
        for ((payload, chain), position) in
            append.events.iter().zip(chains).zip(append.position + 1..)
        {
            self.db.run(
                "INSERT INTO event(stream, position, kind, chain, payload)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![append.stream, position, kind, chain, payload],
            )?;
        }
        let token = claim.token;
        Ok(Some(StoreAnswer::Appended(StreamClaim { token, chain })))
    }

    /// Stores a snapshot of this position, instead of an older one.
    pub(crate) fn save(
        &mut self,
        stream: i64,
        token: i64,
        position: i64,
        kind: &str,
        payload: &[u8],
    ) -> Result<StoreAnswer> {
        let head = self.stream_head(stream)?;
        let head = head.filter(|head| head.token == token && head.position == position);
        let Some(head) = head else {
            return Ok(StoreAnswer::Stale);
        };
        let snapshot = RawSnapshot {
            position,
            chain: head.chain,
            kind: kind.to_owned(),
            payload: payload.to_owned(),
        };
        let number = self.kind(kind)?;
        self.db.run(
            "INSERT OR REPLACE INTO snapshot(stream, position, chain, kind, sum, payload)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                stream,
                position,
                head.chain,
                number,
                snapshot_sum(&snapshot),
                payload
            ],
        )?;
        Ok(StoreAnswer::Done)
    }

    /// Returns whether a job or a lease is still in the hands of the one with this token.
    fn holds(&self, fence: &RawFence) -> Result<bool> {
        let held = match fence {
            RawFence::Job { seq, token } => self.db.row(
                "SELECT 1 FROM job WHERE seq = ?1 AND token = ?2 AND state = ?3",
                params![seq, token, RUNNING],
                |_| Ok(()),
            ),
            RawFence::Lease { name, token } => self.db.row(
                "SELECT 1 FROM lease WHERE name = ?1 AND token = ?2 AND until > 0",
                params![name, token],
                |_| Ok(()),
            ),
        };
        Ok(held?.is_some())
    }
}

pub(super) fn snapshot_sum(snapshot: &RawSnapshot) -> i64 {
    Sum::new(snapshot.position)
        .add(&snapshot.chain.to_le_bytes())
        .add(snapshot.kind.as_bytes())
        .add(&snapshot.payload)
        .end()
}
