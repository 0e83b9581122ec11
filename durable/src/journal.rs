//! Journals: states that are made of their events.

use std::fmt;

use crate::engine::EngineHandle;
use crate::error::{StoreError, StoreProblem};
use crate::fence::Fence;
use crate::records::command::{Append, Command, RawFence, RawStream, StoreAnswer, StreamClaim};
use crate::stored::{Stored, decode, encode, within};

/// The events that are read in one transaction at most.
const PAGE: usize = 1000;

/// A state that follows from its events. Its default is the state before the first one.
///
/// The state itself is [`Stored`] as snapshots. If a snapshot cannot be decoded, the state is made of all
/// events again. An event that cannot be decoded is an error: let [`Stored::upgrade`] decode those of
/// older kinds.
pub trait JournalState: Stored + Default {
    /// What happens to it.
    type Event: Stored;

    /// Changes the state as the event says. The same event always makes the same change.
    fn apply(&mut self, event: &Self::Event);
}

/// How a [`Journal`] is opened.
#[derive(Debug)]
#[must_use = "a journal is opened by `open`"]
pub struct JournalBuilder<S> {
    engine: EngineHandle,
    name: String,
    key: String,
    snapshot_every: u64,
    state: S,
}

impl<S: JournalState> JournalBuilder<S> {
    pub(crate) fn new(engine: EngineHandle, name: &str, key: &str) -> Self {
        JournalBuilder {
            engine,
            name: name.to_owned(),
            key: key.to_owned(),
            snapshot_every: 1000,
            state: S::default(),
        }
    }

    /// Sets after how many events a snapshot is stored, by default 1000. With 0 it is only stored by
    /// [`save`](Journal::save).
    pub fn snapshot_every(mut self, events: u64) -> Self {
        self.snapshot_every = events;
        self
    }

    /// Opens the journal: reads the last snapshot, and applies the events after it.
    ///
    /// # Errors
    /// [`StoreProblem::Corrupt`] if events are missing or damaged,
    /// [`StoreProblem::Undecodable`] if one is not understood, and any other problem of the store.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing that others see.
    pub async fn open(self) -> Result<Journal<S>, StoreError> {
        let name = format!("{}/{}", self.name, self.key);
        let loaded = self.load(name.clone()).await;
        loaded.map_err(|why| StoreError::new(&name, why))
    }

    async fn load(self, full_name: String) -> Result<Journal<S>, StoreProblem> {
        let (engine, name, key) = (self.engine, self.name, self.key);
        within("name", name.len(), engine.limits().name)?;
        within("key", key.len(), engine.limits().key)?;
        let StoreAnswer::Stream(RawStream { stream, snapshot }) =
            engine.call(Command::OpenStream { name, key }).await?
        else {
            return Err(StoreProblem::Missing);
        };
        let (mut state, mut position, mut chain) = (self.state, 0, 0);
        if let Some(snapshot) = snapshot
            && let Ok(saved) = decode(&snapshot.kind, &snapshot.payload)
        {
            (state, position, chain) = (saved, snapshot.position, snapshot.chain);
        }
        let saved = position;
        loop {
            let page = Command::ReadEvents {
                stream,
                after: position,
                chain,
                most: PAGE,
            };
            let StoreAnswer::Events {
                events,
                chain: last,
                is_end,
            } = engine.call(page).await?
            else {
                return Err(StoreProblem::Missing);
            };
            for event in events {
                position += 1;
                let decoded = decode::<S::Event>(&event.kind, &event.payload);
                let event = decoded
                    .map_err(|why| StoreProblem::Undecodable(format!("event {position}: {why}")))?;
                state.apply(&event);
            }
            chain = last;
            if is_end {
                break;
            }
        }
        Ok(Journal {
            engine,
            name: full_name,
            stream,
            state,
            position,
            saved,
            claim: None,
            is_lost: false,
            snapshot_every: self.snapshot_every,
        })
    }
}

/// An open journal: a state, and the events that have made it.
///
/// Any number of handles may be open, but only one of them appends: the first append of a handle
/// claims the journal. From then on, all others are refused with [`StoreProblem::Stale`], also one that is
/// at the right position. Open the journal again to go on from what is stored.
///
/// An actor opens its journal in its first turn, and [saves](Journal::save) a snapshot at its end. The
/// README shows such an actor for each key, which ends when it was idle.
///
/// ```
/// use greenroom_durable::{JournalState, Store, Stored};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Cart {
///     items: Vec<String>,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// enum Event {
///     Added(String),
/// }
///
/// impl Stored for Event {
///     const KIND: &'static str = "cart event/1";
/// }
///
/// impl Stored for Cart {
///     const KIND: &'static str = "cart/1";
/// }
///
/// impl JournalState for Cart {
///     type Event = Event;
///
///     fn apply(&mut self, event: &Event) {
///         match event {
///             Event::Added(item) => self.items.push(item.clone()),
///         }
///     }
/// }
///
/// # async fn program(store: Store) -> Result<(), Box<dyn std::error::Error>> {
/// let mut cart = store.journal::<Cart>("carts", "alice").open().await?;
/// cart.append([Event::Added("rope".into())]).await?;
/// drop(cart);
///
/// let cart = store.journal::<Cart>("carts", "alice").open().await?;
/// assert_eq!(cart.state().items, ["rope"]);
/// # Ok(())
/// # }
/// # greenroom::sim::run(7, async {
/// #     let file = greenroom_durable::SimFile::new();
/// #     program(Store::simulated(&file).open().await.unwrap()).await.unwrap();
/// # });
/// ```
pub struct Journal<S> {
    engine: EngineHandle,
    name: String,
    stream: i64,
    state: S,
    position: i64,
    /// The position of the last snapshot.
    saved: i64,
    /// From the first append.
    claim: Option<StreamClaim>,
    /// Whether the state may differ from what is stored.
    is_lost: bool,
    snapshot_every: u64,
}

impl<S: JournalState> Journal<S> {
    /// Returns the state after the last event that was read or appended here.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Returns how many events have made the state.
    pub fn position(&self) -> u64 {
        self.position as u64
    }

    /// Appends events: stores all of them or none, and applies them to the state. Without events it only
    /// claims the journal.
    ///
    /// They survive a crash of the machine when this returns. So an actor that answers after it has
    /// appended answers with what stays true.
    ///
    /// # Errors
    /// An [`AppendError`] with the events and the reason. After [`StoreProblem::Unknown`] the handle is
    /// stale: open the journal again to see what is stored.
    ///
    /// # Cancel safety
    /// If the future is dropped after its first poll, the events may be stored, and the handle is stale.
    pub async fn append(
        &mut self,
        events: impl IntoIterator<Item = S::Event>,
    ) -> Result<(), AppendError<S::Event>> {
        self.append_as(None, events.into_iter().collect()).await
    }

    /// Appends events as [`append`](Journal::append) does, unless the job or the lease of the fence is in
    /// other hands by now.
    ///
    /// # Errors
    /// As [`append`](Journal::append), with [`StoreProblem::Stale`] also for the fence.
    ///
    /// # Cancel safety
    /// As [`append`](Journal::append).
    pub async fn append_fenced(
        &mut self,
        fence: &Fence,
        events: impl IntoIterator<Item = S::Event>,
    ) -> Result<(), AppendError<S::Event>> {
        let fence = Some(fence.0.clone());
        self.append_as(fence, events.into_iter().collect()).await
    }

    async fn append_as(
        &mut self,
        fence: Option<RawFence>,
        events: Vec<S::Event>,
    ) -> Result<(), AppendError<S::Event>> {
        let limits = self.engine.limits();
        let encoded = events.iter().map(|event| encode(event, limits)).collect();
        let stored = match encoded {
            Ok(encoded) => self.store(fence, encoded).await,
            Err(why) => Err(why),
        };
        if let Err(why) = stored {
            return Err(AppendError { events, why });
        }
        self.position += events.len() as i64;
        events.iter().for_each(|event| self.state.apply(event));
        let unsaved = (self.position - self.saved) as u64;
        if self.snapshot_every > 0 && unsaved >= self.snapshot_every {
            // The events are stored, and a snapshot only saves time. The next append tries again.
            let _ = self.save().await;
        }
        Ok(())
    }

    async fn store(
        &mut self,
        fence: Option<RawFence>,
        events: Vec<Vec<u8>>,
    ) -> Result<(), StoreProblem> {
        if self.is_lost {
            return Err(StoreProblem::Stale);
        }
        let append = Append {
            stream: self.stream,
            position: self.position,
            claim: self.claim,
            fence,
            kind: S::Event::KIND,
            events,
        };
        // Also if this future is dropped here.
        self.is_lost = true;
        let answer = self.engine.call(Command::Append(append)).await;
        self.is_lost = matches!(answer, Err(StoreProblem::Unknown(_)));
        if let StoreAnswer::Appended(claim) = answer? {
            self.claim = Some(claim);
        }
        Ok(())
    }

    /// Stores a snapshot, so that the next open begins from here. It does nothing before the first append,
    /// or if there are no new events.
    ///
    /// # Errors
    /// [`StoreProblem::Stale`] if another handle has claimed the journal,
    /// [`Unencodable`](StoreProblem::Unencodable), [`TooLarge`](StoreProblem::TooLarge), and any other
    /// problem of the store.
    ///
    /// # Cancel safety
    /// It is done also if the future is dropped after its first poll.
    pub async fn save(&mut self) -> Result<(), StoreError> {
        let Some(claim) = self.claim.filter(|_| self.saved < self.position) else {
            return Ok(());
        };
        let error = |why| StoreError::new(&self.name, why);
        let payload = encode(&self.state, self.engine.limits()).map_err(error)?;
        let command = Command::Save {
            stream: self.stream,
            token: claim.token,
            position: self.position,
            kind: S::KIND,
            payload,
        };
        self.engine.call(command).await.map_err(error)?;
        self.saved = self.position;
        Ok(())
    }
}

impl<S> fmt::Debug for Journal<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("name", &self.name)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// Events that were not appended, and the reason.
#[derive(Clone)]
pub struct AppendError<E> {
    /// The events, as they were.
    pub events: Vec<E>,
    /// The reason.
    pub why: StoreProblem,
}

impl<E> fmt::Display for AppendError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} events were not appended: {}",
            self.events.len(),
            self.why
        )
    }
}

impl<E> fmt::Debug for AppendError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendError")
            .field("events", &self.events.len())
            .field("why", &self.why)
            .finish()
    }
}

impl<E> std::error::Error for AppendError<E> {}
