//! An actor under a name or in a group.
//!
//! It is known by a weak address, so it is not kept open. The place is given up when the actor
//! ends.

use std::any::type_name;
use std::task::Waker;

use crate::actor::{Address, WeakAddress};
use crate::directory::Listed;
use crate::task::TaskInfo;
use crate::waiters::Ticket;

/// An actor that receives messages of type `M`, by a name or in a group.
pub(super) struct Member<M> {
    pub(super) address: WeakAddress<M>,
    ticket: Ticket,
}

impl<M> Member<M> {
    /// Creates a member. `removal` is woken when the actor ends, unless the member is dropped
    /// before.
    pub(super) fn new(address: &Address<M>, removal: &Waker) -> Self {
        let mut member = Member {
            address: address.downgrade(),
            ticket: Ticket::default(),
        };
        member.address.wake_at_end(&mut member.ticket, removal);
        member
    }
}

impl<M> Drop for Member<M> {
    fn drop(&mut self) {
        self.address.forget_end(&mut self.ticket);
    }
}

impl<M: Send + 'static> Listed for Member<M> {
    fn id(&self) -> u64 {
        self.address.id()
    }

    fn info(&self) -> TaskInfo {
        self.address.info()
    }

    fn has_ended(&self) -> bool {
        self.address.has_ended_now()
    }

    fn message_type(&self) -> &'static str {
        type_name::<M>()
    }
}
