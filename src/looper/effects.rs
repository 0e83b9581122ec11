//! What follows from a change of the table, and is done when the table's lock is free.
//!
//! Jobs and wakers may be the last pointers to values of users, so they are dropped here too.

use std::sync::Arc;

use super::job::Job;
use super::place::Place;
use crate::contain::contain;
use crate::waiters::Waiters;
use crate::waker::KeptWaker;

#[derive(Default)]
pub(super) struct Effects {
    waker: Option<KeptWaker>,
    /// The controller has ended, or the world has.
    wakes_waiters: bool,
    /// What few changes have.
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    wakers: Vec<KeptWaker>,
    waiters: Vec<Arc<Waiters>>,
    jobs: Vec<Arc<Job>>,
    over: Vec<Arc<Job>>,
    places: Vec<Arc<Place>>,
}

impl Effects {
    #[inline]
    pub(super) fn wake(&mut self, waker: Option<KeptWaker>) {
        if self.waker.is_none() {
            self.waker = waker;
        } else if let Some(waker) = waker {
            self.more().wakers.push(waker);
        }
    }

    /// Wakes all in a list.
    pub(super) fn wake_all(&mut self, waiters: Option<Arc<Waiters>>) {
        if let Some(waiters) = waiters {
            self.more().waiters.push(waiters);
        }
    }

    /// Wakes those that wait for the end of the controller or of the world.
    pub(super) fn wake_waiters(&mut self) {
        self.wakes_waiters = true;
    }

    /// Drops a job to which the table may have the last pointer.
    pub(super) fn release(&mut self, job: Arc<Job>) {
        self.more().jobs.push(job);
    }

    /// Shows the outcome of a job.
    pub(super) fn over(&mut self, job: Arc<Job>) {
        self.more().over.push(job);
    }

    /// Drops a lock.
    pub(super) fn release_place(&mut self, place: Arc<Place>) {
        self.more().places.push(place);
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    #[inline]
    pub(super) fn carry_out(self, waiters: &Waiters) {
        if let Some(more) = self.more {
            more.carry_out();
        }
        if self.wakes_waiters {
            waiters.wake_all();
        }
        if let Some(waker) = self.waker {
            waker.wake();
        }
    }
}

impl More {
    #[cold]
    fn carry_out(self) {
        for job in self.over {
            job.body.show(&job.origin);
            contain(|| drop(job));
        }
        for waker in self.wakers {
            waker.wake();
        }
        for waiters in self.waiters {
            waiters.wake_all();
        }
        // One at a time: a second panic while the first one unwinds would end the process.
        for job in self.jobs {
            contain(|| drop(job));
        }
        for place in self.places {
            contain(|| drop(place));
        }
    }
}
