//! The reader of a context, in one word: the batch of taken messages, and the sources.
//!
//! Most actors have no sources, so the word is the batch itself. With sources, it points to a box
//! of both. Bit 0 tells which; bit 1 tells whether `recv` waits.
//!
//! # Invariants
//! - READER-1: without `BOTH` the word is a batch in its raw form; with `BOTH` it is a box with
//!   batch and sources. The reader owns either. Both are aligned so that the two bits are free.
#![expect(unsafe_code, reason = "a tagged pointer; see READER-1")]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::task::{Poll, Waker};

use super::own_sources::SomeSources;
use crate::mailbox::{Batch, Mailbox};

const BOTH: usize = 1;
const WAITS: usize = 2;

pub(super) struct Reader<M> {
    word: *mut (),
    _owns: PhantomData<Both<M>>,
}

struct Both<M> {
    batch: Batch<M>,
    sources: Box<dyn SomeSources<M>>,
}

impl<M> Reader<M> {
    pub(super) const EMPTY: Self = Reader {
        word: std::ptr::null_mut(),
        _owns: PhantomData,
    };

    fn pointer(&self) -> *mut () {
        self.word.map_addr(|addr| addr & !(BOTH | WAITS))
    }

    /// Replaces the pointer and the `BOTH` bit, and keeps the `WAITS` bit.
    #[inline(always)]
    fn point_to(&mut self, pointer: *mut (), both: usize) {
        let waits = self.word.addr() & WAITS;
        self.word = pointer.map_addr(|addr| addr | waits | both);
    }

    fn both(&mut self) -> Option<&mut Both<M>> {
        // SAFETY: (READER-1) the box of both, borrowed as long as `self`.
        self.has_sources()
            .then(|| unsafe { &mut *self.pointer().cast() })
    }

    /// Returns the next message of the batch or the mailbox, as [`Mailbox::receive`] does.
    pub(super) fn receive(&mut self, mailbox: &Mailbox<M>) -> Poll<Option<M>> {
        match self.both() {
            Some(both) => mailbox.receive(&mut both.batch),
            None => self.receive_alone(|batch| mailbox.receive(batch)),
        }
    }

    /// Receives by this function with the batch, for a reader without sources.
    #[inline(always)]
    pub(super) fn receive_alone<R>(&mut self, receive: impl FnOnce(&mut Batch<M>) -> R) -> R {
        let mut batch = self.own_batch();
        let received = receive(&mut batch);
        self.point_to(ManuallyDrop::into_inner(batch).into_raw(), 0);
        received
    }

    /// Returns the batch of a reader without sources. The caller puts it back.
    #[inline(always)]
    fn own_batch(&self) -> ManuallyDrop<Batch<M>> {
        debug_assert!(!self.has_sources());
        // SAFETY: (READER-1) a batch; this second owner is never dropped.
        ManuallyDrop::new(unsafe { Batch::from_raw(self.pointer()) })
    }

    /// Returns whether the reader has neither messages nor sources.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.pointer().is_null()
    }

    /// Takes the messages that the reader has taken and not received.
    pub(super) fn take_batch(&mut self) -> Batch<M> {
        if let Some(both) = self.both() {
            return std::mem::replace(&mut both.batch, Batch::EMPTY);
        }
        let batch = ManuallyDrop::into_inner(self.own_batch());
        self.point_to(std::ptr::null_mut(), 0);
        batch
    }

    /// Puts messages in front of those that the reader has taken and not received.
    pub(super) fn put_front(&mut self, messages: impl IntoIterator<Item = M>) {
        let mut batch = self.take_batch();
        batch.put_front(messages);
        match self.both() {
            Some(both) => both.batch = batch,
            None => self.point_to(batch.into_raw(), 0),
        }
    }

    /// Notes that `recv` waits, so that its end is reported to the mailbox.
    pub(super) fn set_waits(&mut self) {
        self.word = self.word.map_addr(|addr| addr | WAITS);
    }

    /// Clears that note, and returns whether it was set.
    #[inline]
    pub(super) fn take_waits(&mut self) -> bool {
        let waits = self.word.addr() & WAITS != 0;
        if waits {
            self.word = self.word.map_addr(|addr| addr & !WAITS);
        }
        waits
    }

    pub(super) fn has_sources(&self) -> bool {
        self.word.addr() & BOTH != 0
    }

    pub(super) fn sources(&mut self) -> Option<&mut (dyn SomeSources<M> + 'static)> {
        self.both().map(|both| &mut *both.sources)
    }

    /// Returns the sources, for a look.
    pub(super) fn sources_seen(&self) -> Option<&(dyn SomeSources<M> + 'static)> {
        // SAFETY: (READER-1) the box of both, borrowed as long as `self`.
        self.has_sources()
            .then(|| unsafe { &*(*self.pointer().cast::<Both<M>>()).sources })
    }

    /// Lets the sources drop the waker of a task that waited with another one than the actor's own.
    pub(super) fn forget_other(&mut self) {
        if let Some(both) = self.both() {
            both.sources.forget_other();
        }
    }

    /// Returns the waker with which the sources were polled, or this one without sources.
    pub(super) fn waker_or<'a>(&'a self, waker: &'a Waker) -> &'a Waker {
        self.sources_seen().map_or(waker, |sources| sources.waker())
    }

    /// Adds the sources to a reader that has none.
    pub(super) fn put_sources(&mut self, sources: Box<dyn SomeSources<M>>) {
        let batch = ManuallyDrop::into_inner(self.own_batch());
        let both = Box::new(Both { batch, sources });
        self.point_to(Box::into_raw(both).cast(), BOTH);
    }

    pub(super) fn take_sources(&mut self) -> Option<Box<dyn SomeSources<M>>> {
        if !self.has_sources() {
            return None;
        }
        // SAFETY: (READER-1) the box of both; the word is replaced in the next line.
        let both = unsafe { Box::from_raw(self.pointer().cast::<Both<M>>()) };
        self.point_to(both.batch.into_raw(), 0);
        Some(both.sources)
    }
}

impl<M> Drop for Reader<M> {
    fn drop(&mut self) {
        if !self.is_empty() {
            drop(self.take_sources());
            drop(self.take_batch());
        }
    }
}
