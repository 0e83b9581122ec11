//! Loom models of the executor: the real `Inner` and the real worker loop on a model's threads.
//!
//! The models run [`token`]s, the smallest values that begin with a header. A model needs to know
//! of a runnable only how often it was run and how often it was dropped.
#![expect(unsafe_code, reason = "cells and their runnables are made by hand")]

mod actors;
mod blocking;
mod deadlines;
mod driven;
mod ending;
mod leaving;
mod nested;
mod outside;
mod parking;
mod posts;
mod quiescence;
mod stuck;
mod tasks;
mod waiting;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use ::loom::thread::{JoinHandle, spawn, yield_now};

use super::blocking_pool::BlockingLimits;
use super::driver::Driver;
use super::inner::Inner;
use super::options::RuntimeOptions;
use super::worker_thread::work;
use crate::error::UnhandledFault;
use crate::info::TypeNames;
use crate::scheduler::queues::Queues;
use crate::scheduler::sleep::WATCH;
use crate::scheduler::{PolicyImpl, Scheduler};
use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, Process, UnsafeCell};
use crate::task::{Executor, Header, Label, Runnable, TaskHooks, TaskInfo, VTable};
use crate::tracer::Subject;

/// Returns a runtime whose workers are not started and, once started, do not count as activity. The
/// counting would add to the executions of a model, and would bring fences that must not be relied
/// on.
pub(crate) fn runtime(workers: usize) -> Arc<Inner> {
    runtime_of(Scheduler::uncounted(workers), None)
}

fn runtime_with(workers: usize, policy: PolicyImpl) -> Arc<Inner> {
    runtime_driven(workers, policy, None)
}

fn runtime_driven(
    workers: usize,
    policy: PolicyImpl,
    driver: Option<Arc<dyn Driver>>,
) -> Arc<Inner> {
    let scheduler = Scheduler::new(policy, workers, 0);
    let scheduler = scheduler.expect("the policy goes with any runtime");
    runtime_of(scheduler, driver)
}

fn runtime_of(scheduler: Scheduler, driver: Option<Arc<dyn Driver>>) -> Arc<Inner> {
    let options = RuntimeOptions {
        workers: scheduler.counters.len(),
        batch: 1,
        is_batch_chosen: true,
        priorities: 0,
        thread_name: String::new(),
        stack_size: None,
        blocking: BlockingLimits::default(),
        grace: Duration::ZERO,
        detect_deadlocks: false,
        endless_waits: false,
        counting: true,
        lists_asks: false,
        hidden: false,
        process: Process::current(),
        on_fault: Arc::new(|_| {}),
        around: None,
        observer: None,
        tracer: None,
        is_watched: false,
        is_traced: false,
        on_warning: None,
        long_turns: None,
        driver,
    };
    Arc::new(Inner::new(options, scheduler, None))
}

/// Returns the queues of a runtime with the default policy.
fn queues(inner: &Inner) -> &Queues {
    match &inner.scheduler.policy {
        PolicyImpl::Stealing(stealing) => &stealing.queues,
        PolicyImpl::Other(_) | PolicyImpl::Elsewhere(_) => {
            unreachable!("the models run the default policy")
        }
    }
}

/// Starts all workers of the runtime.
pub(crate) fn start(inner: &Arc<Inner>) -> Vec<JoinHandle<()>> {
    let worker = |index| {
        let inner = inner.clone();
        spawn(move || work(&inner, index))
    };
    (0..inner.options().workers).map(worker).collect()
}

pub(crate) fn join(workers: Vec<JoinHandle<()>>) {
    for worker in workers {
        worker
            .join()
            .expect("a panic of a model's thread ends the model");
    }
}

/// Returns a runtime whose workers all sleep and watch nothing, in one of many possible executions.
fn asleep(workers: usize) -> (Arc<Inner>, Vec<JoinHandle<()>>) {
    lain_down(runtime(workers))
}

fn lain_down(inner: Arc<Inner>) -> (Arc<Inner>, Vec<JoinHandle<()>>) {
    let workers = inner.options().workers;
    let handles = start(&inner);
    let sleep = &queues(&inner).sleep;
    while sleep.audit() < workers || sleep.is_watched() {
        sleep.let_time_pass(1, WATCH);
        yield_now();
    }
    sleep.let_time_pass(0, WATCH);
    (inner, handles)
}

/// Checks a model whose interleavings are explored from its call of `explore` on.
fn model_from_explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.expect_explicit_explore = true;
    // The path to that call counts as well.
    builder.max_branches = 4000;
    builder.check(model);
}

/// Makes the workers end, without the other steps of a shutdown.
pub(crate) fn end(inner: &Inner) {
    inner.shutdown.finish();
    inner.scheduler.interrupt();
}

/// A gate that is opened once; waiting for it blocks the thread, as user code may.
pub(crate) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Arc<Gate> {
        Arc::new(Gate {
            open: Mutex::new(false),
            opened: Condvar::new(),
        })
    }

    fn is_open(&self) -> bool {
        *self.open.lock()
    }

    pub(crate) fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }

    pub(crate) fn wait(&self) {
        let mut open = self.open.lock();
        while !*open {
            open = self.opened.wait(open, None);
        }
    }
}

/// Calls a closure when it is dropped.
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// How often a token was run, and how often dropped.
#[derive(Default)]
pub(crate) struct Fate {
    runs: AtomicU64,
    drops: AtomicU64,
}

impl Fate {
    pub(crate) fn of(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.runs), read(&self.drops))
    }
}

#[repr(C)]
struct Token {
    header: Header,
    /// Fails the model if the thread that runs the token does not see what the creating thread
    /// wrote.
    body: UnsafeCell<Option<Box<dyn FnOnce()>>>,
    fate: Arc<Fate>,
}

static TOKEN: VTable = VTable {
    run: |cell| {
        let (body, fate) = take(cell);
        fate.runs.fetch_add(1, Ordering::Relaxed);
        body();
    },
    discard: |cell| {
        let (body, fate) = take(cell);
        fate.drops.fetch_add(1, Ordering::Relaxed);
        drop(body);
    },
    schedule: |_| unreachable!("a token is never scheduled"),
    wake: |_| unreachable!("a token has no waker"),
    end: |_, _| unreachable!("a token is not registered"),
    free: |_| unreachable!("a token has no references"),
    take_result: |_, _| unreachable!("a token has no result"),
    info: |_| TaskInfo::of_actor(0, None, TypeNames::of::<(), ()>, 0),
    types: TypeNames::of::<(), ()>,
    subject: |_| Subject::default(),
    look: |_| unreachable!("a token is not registered"),
    hooks: |_| NonNull::from(&NO_HOOKS),
    reader: |_| unreachable!("a token has no messages"),
    delivery: |_, _| unreachable!("a token has no messages"),
};

/// The hooks of tokens, which have no executor.
struct NoHooks;

static NO_HOOKS: NoHooks = NoHooks;

impl TaskHooks for NoHooks {
    fn report(&self, unhandled: &UnhandledFault<'_>) {
        unreachable!("a token has no fault: {unhandled}")
    }
}

/// Creates a runnable that runs `body` once.
pub(crate) fn token(body: impl FnOnce() + 'static) -> (Runnable, Arc<Fate>) {
    let fate = Arc::new(Fate::default());
    let token = Box::new(Token {
        header: Header::new(&TOKEN, Label::new(0, 0, 0), 1),
        body: UnsafeCell::new(Some(Box::new(body))),
        fate: fate.clone(),
    });
    let cell = NonNull::from(Box::leak(token)).cast();
    // SAFETY: (RUNNABLE-1) the only runnable of this token, which (RUNNABLE-3) frees it.
    (unsafe { Runnable::from_cell(cell) }, fate)
}

/// Takes the body of a token, once. Keeps the token's memory for a while, so that a second take
/// fails in the `expect` below and not otherwise.
fn take(cell: NonNull<Header>) -> (Box<dyn FnOnce()>, Arc<Fate>) {
    std::thread_local! {
        static TAKEN: RefCell<VecDeque<Box<Token>>> = const { RefCell::new(VecDeque::new()) };
    }
    /// More than the tokens of any model.
    const KEPT: usize = 64;
    // SAFETY: it was made by `token`, and its memory is kept.
    let token = unsafe { cell.cast::<Token>().as_ref() };
    // SAFETY: (RUNNABLE-1) called by the only runnable of the token.
    let body = token.body.with_mut(|body| unsafe { (*body).take() });
    let taken = (body.expect("a token is run once"), token.fate.clone());
    // SAFETY: it was made by `Box` in `token`, and is converted back once.
    let token = unsafe { Box::from_raw(cell.cast::<Token>().as_ptr()) };
    TAKEN.with_borrow_mut(|tokens| {
        tokens.push_back(token);
        if tokens.len() > KEPT {
            tokens.pop_front();
        }
    });
    taken
}

/// Schedules a runnable that runs `body`, on whatever thread this is called.
pub(crate) fn push(inner: &Arc<Inner>, body: impl FnOnce() + 'static) -> Arc<Fate> {
    let (runnable, fate) = token(body);
    inner.schedule(runnable, false);
    fate
}
