//! A task of a looper, which enters in the book what it sees.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use greenroom::looper::{self, Exclusive, Shared};
use greenroom::time::sleep;
use greenroom::{Runtime, yield_now};

use super::super::Draws;
use super::super::book::{Life, LooperPage, Outcome, Turn, Use, Value, Want};
use super::Run;
use crate::support::Dropped;

/// What a task does.
#[derive(Clone, Copy)]
pub(super) enum Act {
    Return,
    Panic,
    /// Do anything else that a client does.
    Operate(u64),
    /// Block the thread, or wait, for this time.
    Sleep(Duration),
    Yield(usize),
    /// Post a task and await its result.
    Await(u64),
    /// Let the guards live elsewhere for this time.
    CarryOut(Duration),
}

/// The guards of a task, which are not seen in the book when they are dropped.
struct Held {
    _used: Use,
    _shared: Vec<Shared<Value>>,
    exclusive: Vec<Exclusive<Value>>,
}

/// A task of a looper.
pub(super) struct Task {
    pub(super) run: Run,
    pub(super) job: usize,
    pub(super) looper: u64,
    pub(super) priority: u8,
    pub(super) wants: Vec<Want>,
    pub(super) act: Act,
    pub(super) depth: usize,
    pub(super) _captured: Dropped,
}

impl Task {
    /// Checks that this is the task that runs here.
    fn check(&self) {
        let current = looper::current();
        let current = current.map(|it| (it.looper().map(|it| it.id()), it.priority()));
        let is_so = current == Some((Some(self.looper), self.priority));
        self.run.book.with(|pages| {
            pages.check(is_so, || format!("{} runs as {current:?}", self.job));
        });
    }

    /// Returns the first looper whose results this task may await.
    fn least_awaited(&self) -> usize {
        let is_it = |it: &LooperPage| it.id == self.looper;
        let own = self
            .run
            .book
            .with(|pages| pages.loopers.iter().position(is_it));
        match self.run.options.is_free {
            true => 0,
            false => own.unwrap() + 1,
        }
    }

    fn operate(&self, seed: u64) {
        self.run.operate(&mut Draws::of(seed, 0), self.depth + 1);
    }

    pub(super) fn call(self, (shared, exclusive, _): (Vec<&Value>, Vec<&mut Value>, Vec<()>)) {
        let book = &self.run.book;
        let _turn = Turn::begin(book);
        let _life = Life::begin(book, self.job);
        let _used = Use::begin(book, self.job, &self.wants);
        let before: Vec<_> = shared.iter().map(|it| it.writes).collect();
        exclusive.into_iter().for_each(|it| it.writes += 1);
        self.check();
        match self.act {
            Act::Panic => panic!("bomb {}", self.job),
            Act::Operate(seed) => self.operate(seed),
            Act::Sleep(time) => Runtime::current().block_on(sleep(time)),
            _ => {}
        }
        self.check();
        let is_same = shared.iter().map(|it| it.writes).eq(before);
        book.with(|pages| pages.check(is_same, || format!("{} saw a change", self.job)));
    }

    pub(super) fn wait(
        self,
        (shared, exclusive, _): (Vec<Shared<Value>>, Vec<Exclusive<Value>>, Vec<()>),
    ) -> impl Future<Output = ()> + Send {
        let book = self.run.book.clone();
        let life = Life::begin(&book, self.job);
        let is_plain = |want: &Want| self.run.is_plain(want.lock);
        let (plain, valued): (Vec<_>, Vec<_>) = self.wants.iter().copied().partition(is_plain);
        let plain = Use::begin(&book, self.job, &plain);
        let held = Held {
            _used: Use::begin(&book, self.job, &valued),
            _shared: shared,
            exclusive,
        };
        let works = async move {
            let _life = life;
            let _plain = plain;
            self.work(held).await;
            self.check();
        };
        async move {
            let mut works = pin!(works);
            std::future::poll_fn(|cx| {
                let _turn = Turn::begin(&book);
                works.as_mut().poll(cx)
            })
            .await;
        }
    }

    async fn work(&self, mut held: Held) {
        held.exclusive.iter_mut().for_each(|it| it.writes += 1);
        self.check();
        match self.act {
            Act::Return => {}
            Act::Panic => panic!("bomb {}", self.job),
            Act::Operate(seed) => self.operate(seed),
            Act::Sleep(time) => sleep(time).await,
            Act::Yield(times) => {
                for _ in 0..times {
                    yield_now().await;
                }
            }
            Act::CarryOut(time) => {
                let carries = async move {
                    sleep(time).await;
                    drop(held);
                };
                greenroom::spawn(carries).detach();
            }
            Act::Await(seed) => {
                let mut draws = Draws::of(seed, 1);
                let posted = match draws.one_in(8) && self.run.options.has_worlds {
                    true => self.run.stop_the_world(&mut draws, self.depth + 1),
                    false => self
                        .run
                        .post(&mut draws, self.least_awaited(), self.depth + 1),
                };
                let Some((job, posted)) = posted else { return };
                let outcome = posted
                    .await
                    .map_or_else(|it| Outcome::of(&it), |()| Outcome::Done);
                // After a deadlock of this wait the task goes on, and its result is dropped.
                if outcome != Outcome::Deadlock {
                    self.run
                        .book
                        .with(|pages| pages.jobs[job].outcomes.push(outcome));
                }
            }
        }
    }
}
