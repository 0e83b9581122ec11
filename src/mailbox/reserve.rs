//! Places in a mailbox whose messages are still to be made.
//!
//! Room and closing are judged when a place is reserved; from then on it counts as accepted. It is
//! filled once, or given up once. `recv` does not give `None` before that.

use std::task::{Context, Poll};

use super::contents::Mailbox;
use super::extras::MailboxExtras;
use super::line::{PlaceInLine, SenderState};
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
enum Reservation {
    Reserved,
    Waiting,
    Refused(Refused),
}

impl<M> Mailbox<M> {
    /// Reserves a place, if there is room now.
    pub(crate) fn reserve(&self) -> Result<(), Refused> {
        match self.reserve_or(&None) {
            Reservation::Reserved => Ok(()),
            Reservation::Refused(why) => Err(why),
            Reservation::Waiting => unreachable!("nothing was given to wait in line"),
        }
    }

    /// Reserves a place in the queue, or joins the line with `place`.
    fn reserve_or(&self, place: &Option<PlaceInLine<M>>) -> Reservation {
        self.lock_extras(|flags, _, extras| {
            if flags.has(Flags::CLOSED) {
                return Reservation::Refused(Refused::Closed);
            }
            if let Some(bound) = &mut extras.bound {
                match place {
                    _ if bound.has_room() => bound.len += 1,
                    Some(place) => {
                        bound.line.join(place);
                        flags.set(Flags::WAITED_FOR);
                        return Reservation::Waiting;
                    }
                    None => return Reservation::Refused(Refused::Full),
                }
            }
            extras.reserved += 1;
            flags.set(Flags::RESERVED);
            Reservation::Reserved
        })
    }

    /// Reserves a place, waiting in line until there is room; the error is that it is closed.
    pub(crate) fn poll_reserve(
        &self,
        place: &mut Option<PlaceInLine<M>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if place.is_some() {
            return self.poll_line(place, cx).map(|(state, _)| match state {
                SenderState::Accepted => Ok(()),
                _ => Err(Refused::Closed),
            });
        }
        let reserved = self.reserve();
        if reserved != Err(Refused::Full) {
            return Poll::Ready(reserved);
        }
        *place = Some(PlaceInLine::new(None, cx.waker().clone()));
        let reservation = self.reserve_or(place);
        if let Reservation::Waiting = reservation {
            return Poll::Pending;
        }
        place.take().and_then(PlaceInLine::free);
        Poll::Ready(match reservation {
            Reservation::Refused(why) => Err(why),
            _ => Ok(()),
        })
    }

    /// Gives up a place in the line, or the place that it came to.
    pub(crate) fn leave_line(&self, place: PlaceInLine<M>) -> Wake {
        match self.leave(place) {
            (SenderState::Accepted, _) => self.give_up_place(),
            _ => Wake::Nobody,
        }
    }

    /// Puts the message where the place was reserved; given back if nobody will receive it.
    pub(crate) fn fill(&self, message: M) -> Result<Wake, M> {
        let mut message = Some(message);
        let mut spare = Spare::NONE;
        spare.provide(self.state.peek().has(Flags::FILLED));
        let wake = self.lock(|flags, contents| {
            if flags.has(Flags::DEAF) || !contents.queue.push(&mut message, &mut spare) {
                return Wake::Nobody;
            }
            if let Some(extras) = contents.extras() {
                extras.give_back(flags);
            }
            flags.set(Flags::FILLED);
            contents.arrived(flags)
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
        let waited_for = self.lock(|flags, contents| {
            if let Some(extras) = contents.extras() {
                extras.give_back(flags);
                if let Some(bound) = &mut extras.bound {
                    bound.len -= 1;
                }
            }
            flags.has(Flags::WAITED_FOR)
        });
        if waited_for && !mutant("given_up_place_is_not_passed_on") {
            self.promote();
        }
        // The reader hears of what was promoted, or that nothing is to come.
        self.lock(|flags, contents| match flags.has_news() {
            true if !mutant("given_up_place_wakes_nobody") => contents.arrived(flags),
            _ => Wake::Nobody,
        })
    }
}

impl<M> MailboxExtras<M> {
    /// One reserved place less.
    fn give_back(&mut self, flags: &mut Flags) {
        self.reserved -= 1;
        if self.reserved == 0 {
            flags.clear(Flags::RESERVED);
        }
    }
}
