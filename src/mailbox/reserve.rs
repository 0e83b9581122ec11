//! Places in a mailbox whose messages are still to be made.
//!
//! Room and closing are judged when a place is reserved; from then on it counts as accepted. It is
//! filled once, or given up once. `recv` does not give `None` before that.

use std::task::{Context, Poll};

use super::annex::Rare;
use super::contents::Mailbox;
use super::line::{State, Ticket};
use super::queue::Spare;
use super::state::{Flags, Wake};
use crate::sync::mutant;

/// Why there is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Full,
    Closed,
}

/// What became of the wish for a place.
enum Place {
    Reserved,
    Waiting,
    Refused(Refused),
}

impl<M> Mailbox<M> {
    /// Reserves a place, if there is room now.
    pub(crate) fn reserve(&self) -> Result<(), Refused> {
        match self.reserve_or(&None) {
            Place::Reserved => Ok(()),
            Place::Refused(why) => Err(why),
            Place::Waiting => unreachable!("no ticket was given"),
        }
    }

    /// Reserves a place, or lets the ticket wait for one.
    fn reserve_or(&self, ticket: &Option<Ticket<M>>) -> Place {
        self.lock_rare(|flags, _, rare| {
            if flags.has(Flags::CLOSED) {
                return Place::Refused(Refused::Closed);
            }
            if let Some(bound) = &mut rare.bound {
                match ticket {
                    _ if bound.has_room() => bound.len += 1,
                    Some(ticket) => {
                        bound.line.join(ticket);
                        flags.set(Flags::WAITED_FOR);
                        return Place::Waiting;
                    }
                    None => return Place::Refused(Refused::Full),
                }
            }
            rare.reserved += 1;
            flags.set(Flags::RESERVED);
            Place::Reserved
        })
    }

    /// Reserves a place, waiting in line until there is room; the error is that it is closed.
    pub(crate) fn poll_reserve(
        &self,
        ticket: &mut Option<Ticket<M>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if ticket.is_some() {
            return self.poll_line(ticket, cx).map(|(state, _)| match state {
                State::Accepted => Ok(()),
                _ => Err(Refused::Closed),
            });
        }
        let reserved = self.reserve();
        if reserved != Err(Refused::Full) {
            return Poll::Ready(reserved);
        }
        *ticket = Some(Ticket::new(None, cx.waker().clone()));
        let place = self.reserve_or(ticket);
        if let Place::Waiting = place {
            return Poll::Pending;
        }
        ticket.take().and_then(Ticket::free);
        Poll::Ready(match place {
            Place::Refused(why) => Err(why),
            _ => Ok(()),
        })
    }

    /// Gives up a place in the line, or the place that it came to.
    pub(crate) fn leave_line(&self, ticket: Ticket<M>) -> Wake {
        match self.leave(ticket) {
            (State::Accepted, _) => self.give_up_place(),
            _ => Wake::Nobody,
        }
    }

    /// Puts the message where the place was reserved; given back if nobody will receive it.
    pub(crate) fn fill(&self, message: M) -> Result<Wake, M> {
        let mut message = Some(message);
        let mut spare = Spare::NONE;
        spare.provide(self.peek().has(Flags::FILLED));
        let wake = self.lock(|flags, shared| {
            if flags.has(Flags::DEAF) || !shared.queue.push(&mut message, &mut spare) {
                return Wake::Nobody;
            }
            if let Some(rare) = shared.rare() {
                rare.give_back(flags);
            }
            flags.set(Flags::FILLED);
            shared.arrived(flags)
        });
        let Some(refused) = message else {
            return Ok(wake);
        };
        // Nobody receives any more, so this wakes nobody.
        let _ = self.give_up_place();
        Err(refused)
    }

    /// There will be no message for the place: somebody else may have it.
    pub(crate) fn give_up_place(&self) -> Wake {
        let waited_for = self.lock(|flags, shared| {
            if let Some(rare) = shared.rare() {
                rare.give_back(flags);
                if let Some(bound) = &mut rare.bound {
                    bound.len -= 1;
                }
            }
            flags.has(Flags::WAITED_FOR)
        });
        if waited_for && !mutant("given_up_place_is_not_passed_on") {
            self.promote();
        }
        // The reader hears of what was promoted, or that nothing is to come.
        self.lock(|flags, shared| match flags.has_news() {
            true if !mutant("given_up_place_wakes_nobody") => shared.arrived(flags),
            _ => Wake::Nobody,
        })
    }
}

impl<M> Rare<M> {
    /// One reserved place less.
    fn give_back(&mut self, flags: &mut Flags) {
        self.reserved -= 1;
        if self.reserved == 0 {
            flags.clear(Flags::RESERVED);
        }
    }
}
