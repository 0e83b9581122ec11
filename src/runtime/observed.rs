//! What the observer, the policy and the tracer of a runtime are called for.
//!
//! A note of an actor goes to the tracer of the actor's runtime, any other to that of the current
//! runtime. Both go into the trace of a simulation, too.

use super::context::{self, Role};
use super::faults::{FAULT_CHARACTERS, FAULTS_KEPT, KeptFault};
use super::inner::Inner;
use crate::contain::{Panic, contain};
use crate::error::{Fault, UnhandledFault};
use crate::info::short;
use crate::instant::Instant;
use crate::scheduler::{SchedulerOwner, WorkerLocal};
use crate::task::{Runnable, TaskInfo, run};
use crate::tracer::{self, EventKind, MessageSender, NoteKind, SentSpan, Subject, Tracer};

impl Inner {
    /// Runs a runnable, between the calls of the policy's and the observer's hooks.
    pub(crate) fn run_observed(&self, local: Option<&WorkerLocal<'_>>, runnable: Runnable) {
        let task = runnable.info();
        if let Some(local) = local {
            local.hook(|worker| worker.before_resume(&task));
        }
        let worker = local.map(WorkerLocal::index);
        let turns = self.long_turns.as_ref();
        let turns = turns.filter(|_| local.is_some() || !is_detached());
        let timed = turns.and_then(|turns| Some((turns, turns.begin(worker, &task)?)));
        let begun = self.options.observer.as_ref().map(|observer| {
            if task.is_actor() {
                // Inserted before the run, so that an actor that ends in this run is not inserted
                // again.
                self.busy.with(task.id(), |shard| {
                    shard.entry(task.id()).or_default();
                });
            }
            contain(|| observer.before_run(&task));
            (observer, Instant::now())
        });
        let tracer = self.tracer().filter(|_| task.is_actor());
        if let Some(tracer) = tracer {
            tracer::call(tracer, |tracer| tracer.enter(&task, &task.called()));
        }
        contain(|| runnable.run());
        if let Some(tracer) = tracer {
            tracer::call(tracer, |tracer| tracer.exit(&task));
        }
        if let Some((observer, begun)) = begun {
            let took = begun.elapsed();
            if task.is_actor() {
                self.busy.with(task.id(), |shard| {
                    shard.entry(task.id()).and_modify(|times| times.add(took));
                });
            }
            contain(|| observer.after_run(&task, took));
        }
        if let Some((turns, turn)) = timed
            && !SchedulerOwner::is_displaced(self)
        {
            turns.end(worker, &turn, living_beside);
        }
        if let Some(local) = local {
            local.hook(|worker| worker.after_resume(&task));
        }
    }

    /// Notes that the turn of this worker makes way for others, and is no longer timed.
    pub(super) fn makes_way(&self, worker: usize) {
        if let Some(turns) = &self.long_turns {
            turns.vacate(worker);
        }
    }

    /// Notifies the observer that an actor begins anew.
    pub(crate) fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        if let Some(fault) = fault {
            self.note_fault(actor, fault, true);
        }
        if let Some(observer) = &self.options.observer {
            contain(|| observer.restarted(actor, incarnation, fault));
        }
    }

    /// Notifies policy, engine and observer that a task or actor has ended, before its future is
    /// dropped.
    pub(crate) fn completed(&self, task: &TaskInfo) {
        context::with(|context| {
            if let Some(local) = context.and_then(|context| context.run_of(self)) {
                local.hook(|worker| worker.after_completion(task));
            }
        });
        self.engine().completed(task);
        if let Some(locations) = &self.locations {
            locations.leave(task);
        }
        if let Some(observer) = &self.options.observer {
            if task.is_actor() {
                self.busy.with(task.id(), |shard| shard.remove(&task.id()));
            }
            contain(|| observer.completed(task));
        }
    }
}

impl Inner {
    /// Notes a panic of an actor, which begins anew or ends.
    #[cold]
    pub(super) fn note_fault(&self, actor: &TaskInfo, fault: &Fault, goes_on: bool) {
        let Fault::Panicked(panic) = fault else {
            return;
        };
        self.keep_fault(Some(actor), None, goes_on, panic);
    }

    /// Keeps a fault, and forgets the oldest one if there are too many.
    fn keep_fault(
        &self,
        actor: Option<&TaskInfo>,
        subject: Option<String>,
        goes_on: bool,
        panic: &Panic,
    ) {
        let text = panic.text().unwrap_or_default();
        let mut fault = KeptFault {
            number: 1,
            at: Instant::now(),
            actor: actor.cloned(),
            subject,
            goes_on,
            text: text.chars().take(FAULT_CHARACTERS).collect(),
        };
        let mut faults = match self.faults.0.try_lock() {
            Some(faults) => faults,
            // A thread of the parent process may have held the lock at a fork.
            None if !self.is_here() => return,
            None => self.faults.0.lock(),
        };
        fault.number += faults.back().map_or(0, |last| last.number);
        let oldest = match faults.len() {
            FAULTS_KEPT => faults.pop_front(),
            _ => None,
        };
        faults.push_back(fault);
        drop(faults);
        drop(oldest);
    }

    /// Notes a fault that was reported, unless it is that of a whole actor, which was noted.
    pub(super) fn note_reported(&self, unhandled: &UnhandledFault<'_>) {
        let Fault::Panicked(panic) = unhandled.fault else {
            return;
        };
        let (part, subject) = (unhandled.part(), unhandled.subject());
        if unhandled.actor.is_none() || !part.is_empty() {
            let subject = format!("{part}{subject}");
            self.keep_fault(unhandled.actor, Some(subject), !part.is_empty(), panic);
        }
    }
}

/// Returns whether this is the thread of one actor, which may block it.
fn is_detached() -> bool {
    context::with(|context| {
        let role = context.map(|context| context.role.get());
        matches!(role, Some(Role::Pinned(host)) if host.is_detached())
    })
}

/// Returns how many actors, tasks and hosted values live on this thread, if it is a pinned one that
/// no foreign loop drives.
fn living_beside() -> Option<usize> {
    context::with(|context| match context.map(|context| context.role.get()) {
        Some(Role::Pinned(host)) if !host.is_stage() => Some(host.living()),
        _ => None,
    })
}

impl Inner {
    /// Returns the tracer of the user, if there is one and this is the process of the threads.
    pub(crate) fn tracer(&self) -> Option<&dyn Tracer> {
        let tracer = self.options.tracer.as_deref();
        tracer.filter(|_| self.is_here())
    }

    /// Traces that the runtime has shut down.
    pub(crate) fn trace_end(&self) {
        self.trace_own(EventKind::Ended);
        if let Some(tracer) = self.tracer() {
            tracer::call(tracer, Tracer::flush);
        }
    }

    /// Traces an event of the runtime itself.
    pub(super) fn trace_own(&self, kind: EventKind<'_>) {
        if let Some(tracer) = self.tracer() {
            let subject = || Subject {
                called: self.options.thread_name.clone().into(),
                ..Subject::default()
            };
            tracer::trace(tracer, subject, kind);
        }
    }
}

/// Calls `f` with the tracer to which a note of this thread goes, if there is one.
pub(super) fn with_tracer(f: &mut dyn FnMut(&dyn Tracer)) {
    if !run::with_tracer(f) {
        context::with_runtime(|runtime| {
            if let Some(tracer) = runtime.and_then(|runtime| runtime.tracer()) {
                f(tracer);
            }
        });
    }
}

/// Returns who sends on this thread, with the span if the tracer of this thread lets messages carry
/// it.
pub(crate) fn sender_of_current() -> MessageSender {
    MessageSender {
        id: run::actor_id(),
        span: span_of_current(),
    }
}

/// Returns the span that is current on this thread, if the tracer of this thread lets jobs carry it.
pub(crate) fn span_of_current() -> SentSpan {
    let mut span = SentSpan::NONE;
    with_tracer(&mut |tracer| span = tracer::current_span(tracer));
    span
}

/// Traces that this thread has sent an answer, given the name of its type and the actor that has
/// asked.
pub(crate) fn trace_answer((name, to): (&'static str, u64)) {
    let message = &*short(name);
    with_tracer(&mut |tracer| {
        tracer::trace(tracer, run::subject, EventKind::Sent { message, to });
    });
}

/// Returns whether a note of this kind goes anywhere.
#[doc(hidden)]
pub fn is_noted(kind: NoteKind) -> bool {
    let mut is_noted = context::simulated(|_, _| ()).is_some();
    let level = kind.event("").level();
    with_tracer(&mut |tracer| is_noted |= tracer::wants(tracer, level));
    is_noted
}

/// Writes a note.
#[doc(hidden)]
pub fn write_note(kind: NoteKind, text: &str) {
    let _ = context::simulated(|engine, _| engine.note(text));
    with_tracer(&mut |tracer| tracer::trace(tracer, run::subject, kind.event(text)));
}
