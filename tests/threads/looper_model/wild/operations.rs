//! What clients and tasks do: they post, cancel, stop the world, lock, unlock, open and close.
//!
//! What is done is entered in the book at once.

use std::future::Future;
use std::task::{Context, Waker};

use greenroom::looper::{self, Claim, Exclusive, Looper, PostProblem, Posted, Shared};

use super::super::Draws;
use super::super::book::{Life, Outcome, Place, Turn, Value, Want};
use super::Run;
use super::task::{Act, Task};
use crate::support::Dropped;

type Sets = (
    Vec<Claim<Shared<Value>>>,
    Vec<Claim<Exclusive<Value>>>,
    Vec<Claim<()>>,
);

impl Run {
    /// Draws the locks of a task.
    fn wants(&self, draws: &mut Draws) -> Vec<Want> {
        let count = self.book.with(|pages| pages.locks.len());
        let may_keep = self.options.is_free;
        let mut wants = Vec::<Want>::new();
        for _ in 0..draws.below(4) {
            let lock = draws.below(count);
            let is_plain = self.is_plain(lock);
            if !wants.iter().any(|want| want.lock == lock) || draws.one_in(20) {
                wants.push(Want {
                    lock,
                    is_exclusive: draws.one_in(2),
                    is_kept: may_keep && draws.one_in(6),
                    is_held: may_keep && !is_plain && draws.one_in(8),
                });
            }
        }
        wants
    }

    pub(super) fn is_plain(&self, lock: usize) -> bool {
        self.book
            .with(|pages| matches!(pages.locks[lock].place, Place::Plain(_)))
    }

    fn sets(&self, wants: &[Want]) -> Sets {
        let mut sets = Sets::default();
        for want in wants {
            fn kept<G>(want: &Want, claim: Claim<G>) -> Claim<G> {
                if want.is_kept { claim.keep() } else { claim }
            }
            match self.book.with(|pages| pages.locks[want.lock].place.clone()) {
                Place::Plain(lock) => sets.2.push(kept(
                    want,
                    match want.is_exclusive {
                        true => lock.exclusive(),
                        false => lock.shared(),
                    },
                )),
                Place::Valued(value) if want.is_exclusive => sets.1.push(match want.is_held {
                    true => value.held_exclusive(),
                    false => kept(want, value.exclusive()),
                }),
                Place::Valued(value) => sets.0.push(match want.is_held {
                    true => value.held_shared(),
                    false => kept(want, value.shared()),
                }),
            }
        }
        sets
    }

    fn act(&self, draws: &mut Draws, wants: &[Want], depth: usize) -> Act {
        let may_await = self.options.is_free || wants.is_empty();
        let may_await = may_await && self.options.has_awaits && depth < 3;
        match draws.below(20) {
            0 | 1 => Act::Panic,
            2..5 if depth < 3 => Act::Operate(draws.below(1 << 30) as u64),
            5..9 => Act::Sleep(draws.millis(500)),
            9..12 => Act::Yield(draws.below(4)),
            12 | 13 if may_await => Act::Await(draws.below(1 << 30) as u64),
            14 | 15 => Act::CarryOut(draws.millis(800)),
            _ => Act::Return,
        }
    }

    fn capture(&self) -> Dropped {
        self.book.with(|pages| {
            pages.made += 1;
            pages.captures.one()
        })
    }

    /// Posts a task to a looper from this one on. Returns its number.
    pub(super) fn post(
        &self,
        draws: &mut Draws,
        from: usize,
        depth: usize,
    ) -> Option<(usize, Posted<()>)> {
        let (at, looper) = self.looper(draws).filter(|it| it.0 >= from)?;
        let wants = self.wants(draws);
        let priority = draws.below(usize::from(self.options.highest) + 1) as u8;
        let act = self.act(draws, &wants, depth);
        let limit = draws.one_in(6).then(|| draws.millis(400));
        let job = self.book.with(|pages| pages.jobs.len());
        let mut posting = looper.priority(priority).with(self.sets(&wants));
        if let Some(limit) = limit {
            posting = posting.lock_timeout(limit);
        }
        let (run, taken, captured) = (self.clone(), wants.clone(), self.capture());
        let is_async = draws.one_in(2);
        let task = Task {
            run,
            job,
            looper: looper.id(),
            priority,
            wants: taken,
            act,
            depth,
            _captured: captured,
        };
        // The number is taken before the post, which may run nothing, and given back if it fails.
        self.book
            .with(|pages| pages.add_job(Some(at), wants, limit.is_some()));
        let posted = match is_async {
            true => posting
                .spawn(move |owned| task.wait(owned))
                .map_err(|error| error.problem()),
            false => posting
                .post(move |given| task.call(given))
                .map_err(|error| error.problem()),
        };
        match posted {
            Ok(posted) => Some((job, posted)),
            Err(problem) => {
                self.book.with(|pages| {
                    pages.jobs.pop();
                    let is_closed = pages.loopers[at].is_closed || pages.is_over;
                    pages.check(problem == PostProblem::Closed && is_closed, || {
                        format!("a post to {at} was refused: {problem}")
                    });
                });
                None
            }
        }
    }

    /// Returns any looper that has a handle.
    fn looper(&self, draws: &mut Draws) -> Option<(usize, Looper)> {
        self.book.with(|pages| {
            let at = draws.below(pages.loopers.len());
            Some((at, pages.loopers[at].handle.clone()?))
        })
    }

    pub(super) fn stop_the_world(
        &self,
        draws: &mut Draws,
        depth: usize,
    ) -> Option<(usize, Posted<()>)> {
        let job = self
            .book
            .with(|pages| pages.add_job(None, Vec::new(), false));
        let (run, captured, act) = (self.clone(), self.capture(), draws.below(6));
        let mut draws = Draws::of(job as u64, draws.below(1 << 20) as u64);
        let posted = self.controller.stop_the_world(move |world| {
            let _captured = captured;
            let _turn = Turn::begin(&run.book);
            let _life = Life::begin(&run.book, job);
            let current = looper::current().map(|it| it.looper().is_none());
            run.book.with(|pages| {
                pages.check(current == Some(true), || "the world has a looper".into());
            });
            run.look_at_all(world);
            match act {
                0 => panic!("bomb in the world"),
                1 | 2 if depth < 3 => run.operate(&mut draws, depth + 1),
                _ => {}
            }
        });
        match posted {
            Ok(posted) => {
                if !posted.is_finished() {
                    self.book.with(|pages| pages.world_waits());
                }
                Some((job, posted))
            }
            Err(_) => {
                self.book.with(|pages| {
                    pages.jobs.pop();
                    let is_over = pages.is_over;
                    pages.check(is_over, || "the world was refused".into());
                });
                None
            }
        }
    }

    /// Checks all values in the stopped world, and changes some.
    fn look_at_all(&self, world: &mut looper::World) {
        let places = self.book.with(|pages| {
            let locks = pages.locks.iter();
            locks
                .map(|it| (it.place.clone(), it.writes, it.is_gone))
                .collect::<Vec<_>>()
        });
        for (at, (place, writes, is_gone)) in places.iter().enumerate() {
            let Place::Valued(value) = place else {
                continue;
            };
            let seen = world.get(value).map(|it| it.writes);
            self.book.with(|pages| {
                pages.check(seen.is_err() == *is_gone, || {
                    format!("the world got {seen:?} of {at}")
                });
                let is_so = seen.as_ref().is_ok_and(|seen| seen == writes) || seen.is_err();
                pages.check(is_so, || {
                    format!("the world saw {seen:?} of {writes} of {at}")
                });
            });
            if at % 2 == 0 && seen.is_ok() {
                world.get_mut(value).unwrap().writes += 1;
                self.book.with(|pages| pages.locks[at].writes += 1);
            }
        }
    }

    /// Decides who has the result of a task.
    fn follow(&self, posted: Option<(usize, Posted<()>)>, draws: &mut Draws) {
        let Some((job, posted)) = posted else { return };
        match draws.below(4) {
            0 => drop(posted),
            1 => {
                self.book
                    .with(|pages| pages.jobs[job].posted = Some(posted));
                let run = self.clone();
                greenroom::spawn(async move { run.outcome(job).await }).detach();
            }
            _ => self
                .book
                .with(|pages| pages.jobs[job].posted = Some(posted)),
        }
    }

    /// Awaits the outcome of a task whose result the book has.
    pub(super) async fn outcome(&self, job: usize) {
        std::future::poll_fn(|cx| {
            self.book.with(|pages| {
                let page = &mut pages.jobs[job];
                let Some(posted) = &mut page.posted else {
                    return std::task::Poll::Ready(());
                };
                let outcome = std::task::ready!(std::pin::Pin::new(posted).poll(cx));
                page.outcomes
                    .push(outcome.map_or_else(|it| Outcome::of(&it), |()| Outcome::Done));
                page.posted = None;
                std::task::Poll::Ready(())
            })
        })
        .await;
    }

    /// Does anything that takes no time.
    pub(super) fn operate(&self, draws: &mut Draws, depth: usize) {
        match draws.below(40) {
            0..22 => {
                let posted = self.post(draws, 0, depth);
                self.follow(posted, draws);
            }
            22 | 23 if self.options.has_worlds => {
                let posted = self.stop_the_world(draws, depth);
                self.follow(posted, draws);
            }
            24..28 => self.cancel(draws),
            38 | 39 if self.options.is_free => self.attempt(draws),
            28..32 => self.unlock(draws),
            32 => self.book.with(|pages| {
                if pages.loopers.len() < 12 {
                    pages.add_looper(self.controller.looper());
                }
            }),
            33 => self.drop_looper(draws),
            34 if draws.one_in(2) => self.close_looper(draws),
            35 if draws.one_in(3) => self.close_lock(draws),
            36 => drop(self.controller.status()),
            37 => drop(self.book.with(|pages| {
                let job = pages.jobs.len().checked_sub(1)?;
                pages.jobs[job].posted.take()
            })),
            _ => {}
        }
    }

    fn cancel(&self, draws: &mut Draws) {
        self.book.with(|pages| {
            let Some(last) = pages.jobs.len().checked_sub(1) else {
                return;
            };
            let job = last - draws.below(last.min(8) + 1);
            let posted = pages.jobs[job].posted.as_ref();
            if posted.is_some_and(Posted::cancel) {
                pages.cancel(job);
            }
        });
    }

    fn attempt(&self, draws: &mut Draws) {
        let Some((at, looper)) = self.looper(draws) else {
            return;
        };
        let lock = draws.below(self.book.with(|pages| pages.locks.len()));
        let is_exclusive = draws.one_in(2);
        let place = self.book.with(|pages| pages.locks[lock].place.clone());
        let got = match (place, is_exclusive) {
            (Place::Plain(lock), true) => looper.attempt(lock.exclusive()),
            (Place::Plain(lock), false) => looper.attempt(lock.shared()),
            (Place::Valued(value), true) => looper.attempt(value.exclusive()),
            (Place::Valued(value), false) => looper.attempt(value.shared()),
        };
        if got == Ok(true) {
            self.book
                .with(|pages| pages.attempt(at, lock, is_exclusive));
        }
    }

    fn unlock(&self, draws: &mut Draws) {
        let Some((at, looper)) = self.looper(draws) else {
            return;
        };
        let lock = draws.below(self.book.with(|pages| pages.locks.len()));
        self.give_up(at, &looper, lock);
    }

    pub(super) fn give_up(&self, at: usize, looper: &Looper, lock: usize) {
        let (is_kept, place) = self
            .book
            .with(|pages| (pages.unlock(at, lock), pages.locks[lock].place.clone()));
        if !is_kept {
            return;
        }
        let outcome = match place {
            Place::Plain(lock) => looper.unlock(&lock),
            Place::Valued(value) => looper.unlock(&value),
        };
        self.book.with(|pages| {
            pages.check(outcome.is_ok(), || {
                format!("{at} did not unlock {lock}: {outcome:?}")
            });
        });
    }

    fn drop_looper(&self, draws: &mut Draws) {
        let handle = self.book.with(|pages| {
            let at = draws.below(pages.loopers.len());
            let handle = pages.loopers[at].handle.take()?;
            pages.close(at);
            Some(handle)
        });
        drop(handle);
    }

    fn close_looper(&self, draws: &mut Draws) {
        let Some((at, looper)) = self.looper(draws) else {
            return;
        };
        self.book.with(|pages| pages.close(at));
        let book = self.book.clone();
        let is_same = |own: looper::WeakLooper| own.id() == looper.id();
        let is_own = looper::current().is_some_and(|it| it.looper().is_none_or(is_same));
        let close = async move {
            looper.close().await;
            if is_own {
                return;
            }
            book.with(|pages| {
                let (is_empty, runs) = (looper.is_empty(), pages.loopers[at].running);
                pages.check(is_empty && runs.is_none(), || {
                    format!("{at} was closed early")
                });
            });
        };
        let mut close = Box::pin(close);
        let is_over = close.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if is_over.is_pending() {
            greenroom::spawn(close).detach();
        }
    }

    fn close_lock(&self, draws: &mut Draws) {
        let lock = draws.below(self.book.with(|pages| pages.locks.len()));
        let place = self.book.with(|pages| {
            pages.locks[lock].is_closed = true;
            pages.locks[lock].place.clone()
        });
        let book = self.book.clone();
        greenroom::spawn(async move {
            let value = match place {
                Place::Plain(lock) => return lock.close().await,
                Place::Valued(value) => value.close().await,
            };
            book.with(|pages| {
                let page = &mut pages.locks[lock];
                let Ok(value) = &value else { return };
                let (seen, writes) = (value.writes, page.writes);
                page.is_gone = true;
                let users = page.users.len();
                pages.check(seen == writes && users == 0, || {
                    format!("{lock} was closed with {seen} of {writes}, {users} users")
                });
            });
        })
        .detach();
    }
}
