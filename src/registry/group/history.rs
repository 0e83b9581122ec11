//! The last messages to a group, which late members receive when they join.
//!
//! A broadcast adds its message, and takes the members, in one critical section. A join takes the
//! messages, and adds the member, in another one. So each message comes to a late member once: from
//! the history, or from its broadcast. A broadcast that comes while the member is told the history
//! queues its message, which is told next.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::late::LateMessages;
use super::super::member::observe;
use super::Group;
use crate::actor::Address;
use crate::contain::OnDrop;
use crate::directory::{GroupEntry, Members};

/// A kept message, which makes copies of itself.
pub(super) type KeptMessage<M> = Arc<dyn Fn() -> M + Send + Sync>;

/// The last messages to a group.
struct KeptMessages<M> {
    limit: usize,
    /// Known where the messages are known to be shareable.
    keep: fn(M) -> KeptMessage<M>,
    messages: VecDeque<KeptMessage<M>>,
}

impl<M: Send + 'static> Group<M> {
    /// Keeps the last messages that are [broadcast](Group::broadcast) from now on, at most
    /// `messages`, for actors that join later. 0 keeps none, and drops the kept messages.
    ///
    /// An actor that [joins](Group::join) receives the kept messages first, the oldest one first, and
    /// then those that are broadcast since. It misses none and receives none twice, also if it
    /// joins during a broadcast. It receives them as [`tell`](Address::tell) sends them: if its
    /// mailbox has no room for all, it misses the last ones. An actor that has left and joins again
    /// receives all that are kept. Messages of [`send_all`](Group::send_all) are kept as well, those
    /// of [`broadcast_to`](Group::broadcast_to) are not.
    ///
    /// The messages are kept for all that use this group, until the runtime shuts down. A program
    /// that makes groups at run time calls `replay(0)` for one that it needs no more.
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on).
    ///
    /// ```
    /// use greenroom::registry::Group;
    /// use greenroom::{Context, spawn};
    ///
    /// const PRICES: Group<u32> = Group::new("prices");
    ///
    /// async fn first_two(mut cx: Context<u32>) -> [Option<u32>; 2] {
    ///     PRICES.join(&cx.address()).unwrap();
    ///     [cx.recv().await, cx.recv().await]
    /// }
    ///
    /// greenroom::run(async {
    ///     PRICES.replay(2);
    ///     for price in [10, 11, 12] {
    ///         PRICES.broadcast(price);
    ///     }
    ///     let late = spawn!(first_two(_));
    ///     assert_eq!(late.join().await.unwrap(), [Some(11), Some(12)]);
    /// });
    /// ```
    #[doc(alias("history", "rewind", "last value"))]
    #[track_caller]
    pub fn replay(&self, messages: usize)
    where
        M: Clone + Sync,
    {
        let set = |entry: &mut GroupEntry| {
            let excess = match kept_by(entry) {
                Some(kept) if messages > 0 => {
                    kept.limit = messages;
                    let excess = kept.messages.len().saturating_sub(messages);
                    return (kept.messages.drain(..excess).collect(), None);
                }
                _ => Vec::<KeptMessage<M>>::new(),
            };
            let before = entry.history.take();
            if messages > 0 {
                entry.history = Some(Box::new(KeptMessages::<M> {
                    limit: messages,
                    keep: |message| Arc::new(move || message.clone()),
                    messages: VecDeque::new(),
                }));
            }
            (excess, before)
        };
        let dropped = self.on_runtime(|runtime| {
            observe(|| None);
            let groups = &runtime.directory_made().groups;
            groups.change(&self.name, set)
        });
        drop(dropped);
    }

    /// Returns the members, who get this message. It is kept if the group keeps messages.
    #[track_caller]
    pub(super) fn publish(&self, message: &M) -> Arc<Members>
    where
        M: Clone,
    {
        let found = self.with(|directory| {
            self.observe(directory);
            let look = |entry: &GroupEntry| {
                let kept = entry.history.as_ref()?.downcast_ref::<KeptMessages<M>>();
                Some(kept?.keep)
            };
            let look = |entry: Option<&GroupEntry>| {
                let entry = entry?;
                Some((entry.members().clone(), look(entry)))
            };
            directory.groups.look(&self.name, look)?
        });
        let (members, keep) = match found {
            None => return Arc::default(),
            Some((members, None)) => return members,
            Some((members, Some(keep))) => (members, keep),
        };
        // The user's `clone` runs without the lock. A group that keeps no messages any more does not
        // need it.
        let copy = keep(message.clone());
        let published = self.with(|directory| {
            directory.groups.change(&self.name, |entry| {
                // What is not kept is dropped without the lock.
                let left = match kept_by(entry) {
                    Some(kept) => kept.push(copy),
                    None => Some(copy),
                };
                (entry.members().clone(), left)
            })
        });
        published.map_or(members, |(members, _left)| members)
    }
}

impl<M> KeptMessages<M> {
    /// Keeps a message. Returns the oldest one if that is not kept any more.
    fn push(&mut self, message: KeptMessage<M>) -> Option<KeptMessage<M>> {
        let full = self.messages.len() >= self.limit;
        let oldest = full.then(|| self.messages.pop_front()).flatten();
        self.messages.push_back(message);
        oldest
    }
}

fn kept_by<M: 'static>(entry: &mut GroupEntry) -> Option<&mut KeptMessages<M>> {
    entry.history.as_mut()?.downcast_mut()
}

/// Returns the messages that a new member receives first, and where others wait meanwhile.
pub(super) fn history<M: 'static>(
    entry: &mut GroupEntry,
) -> (Option<Arc<LateMessages<M>>>, Vec<KeptMessage<M>>) {
    let kept = kept_by::<M>(entry);
    let kept = kept.map_or_else(Vec::new, |kept| kept.messages.iter().cloned().collect());
    let late = (!kept.is_empty()).then(|| Arc::new(LateMessages::new()));
    (late, kept)
}

/// Tells a new member the history, and then what was broadcast meanwhile.
///
/// A panic of the user's `clone` is passed on. The member misses the rest of the history then.
pub(super) fn tell_history<M>(
    actor: &Address<M>,
    history: Vec<KeptMessage<M>>,
    late: &LateMessages<M>,
) {
    let _meanwhile = OnDrop(|| {
        loop {
            // In a simulation, what this thread has told takes effect before others tell as well.
            observe(|| None);
            match late.pop() {
                // Without room it is missed.
                Some(message) => drop(actor.tell(message)),
                None => return,
            }
        }
    });
    for kept in history {
        drop(actor.tell(kept()));
    }
}
