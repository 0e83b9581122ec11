//! What the actors and tasks of a runtime wait for, at a moment, and what has failed.

use std::fmt;
use std::task::Waker;

use super::engine::DueEffects;
use super::faults::RecentFault;
use super::handle::Runtime;
use super::live_cells::SeenActor;
use super::status::{ActorWait, TaskReport};
use super::warning::write_task;
use crate::directory::Registrations;
use crate::task::run::note_wait_for;
use crate::task::{TaskInfo, WaitsFor};
use crate::tracer;

impl Runtime {
    /// Returns what each live actor waits for, the oldest actor first, and then the plain tasks that
    /// [`tasks`](Runtime::tasks) returns, by their numbers.
    ///
    /// Only a runtime with the option [`endless_waits`](crate::Builder::endless_waits), the default
    /// in debug builds, knows for whom an actor waits. Any other knows whether an actor waits for a
    /// message, and gives [`ActorWait::Other`] otherwise.
    ///
    /// The actors are looked at one after the other while they go on. So the report of an actor is
    /// right for a moment during this call, and not for the same moment as that of another one.
    ///
    /// # Blocking
    /// As [`tasks`](Runtime::tasks).
    ///
    /// ```
    /// use greenroom::{ActorWait, Context, Runtime, spawn};
    /// use std::future::pending;
    ///
    /// async fn sink(mut cx: Context<u32>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// let runtime = Runtime::new()?;
    /// let sink = spawn!(sink(_), on = &runtime);
    /// let reader = greenroom::task("reader").spawn_on(&runtime, pending::<()>());
    /// runtime.run_until_quiescent();
    /// let report = runtime.report();
    /// assert_eq!(report[0].waits, [ActorWait::Message]);
    /// println!("{}", report[0]); // sink #1 (src/main.rs:8) waits for a message
    /// assert_eq!(report[1].task.name(), Some("reader"));
    /// # drop((sink, reader));
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn report(&self) -> Vec<TaskReport> {
        self.inner.check_process();
        // In a simulation, effects of turns may be deferred, and would be missed here (SIM-4).
        self.inner.engine().apply(&self.inner, DueEffects::All);
        let seen = self.inner.see_actors();
        let who = |id| Some(seen.actors.get(&id)?.info.clone());
        let turns = self.inner.running();
        let registered = Registrations::of(self.inner.directory());
        let actor = |actor: &SeenActor| {
            let mut status = self.inner.status_of(actor);
            self.inner.place(&mut status, &turns);
            status.name(&registered);
            TaskReport {
                task: actor.info.clone(),
                actor: Some(status),
                waits: waits_of(actor, who),
            }
        };
        let task = |task| TaskReport {
            task,
            actor: None,
            waits: vec![ActorWait::Other],
        };
        let mut tasks = self.tasks();
        tasks.sort_unstable_by_key(TaskInfo::id);
        let tasks = tasks.into_iter().map(task);
        seen.actors.values().map(actor).chain(tasks).collect()
    }
}

impl Runtime {
    /// Returns the last faults of this runtime, at most 64, the oldest first.
    ///
    /// These are the panics of actors, whether an actor was restarted, has ended, or was joined. Panics
    /// of plain tasks are among them if they were reported to [`on_fault`](crate::Builder::on_fault).
    ///
    /// # Blocking
    /// Only for a short critical section.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn divider(mut cx: Context<u32>) {
    ///     while let Some(number) = cx.recv().await {
    ///         println!("{}", 1 / number);
    ///     }
    /// }
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let divider = spawn!(divider(_), on = &runtime);
    /// divider.tell(0).unwrap();
    /// let id = divider.id();
    /// assert!(runtime.block_on(divider.join()).is_err());
    /// let faults = runtime.faults();
    /// assert_eq!(faults[0].actor.as_ref().unwrap().id(), id);
    /// assert!(faults[0].text.ends_with("panicked: attempt to divide by zero") && !faults[0].goes_on);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn faults(&self) -> Vec<RecentFault> {
        self.inner.check_process();
        self.inner.faults.after(0)
    }

    /// Returns the last lines of the trace that are about the actor with this
    /// [id](crate::Address::id), the oldest first, as far as the [tracer](crate::Builder::tracer) keeps
    /// them. The actor may have ended.
    ///
    /// ```
    /// use greenroom::trace::{Level, Lines};
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn sink(mut cx: Context<u32>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// let lines = Lines::to(std::io::sink(), Level::Debug).keep(1000);
    /// let runtime = Runtime::builder().tracer(lines).build()?;
    /// let sink = spawn!(sink(_), on = &runtime);
    /// sink.tell(7).unwrap();
    /// runtime.run_until_quiescent();
    /// assert!(runtime.trace_of(sink.id()).iter().any(|line| line.contains("Received u32")));
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn trace_of(&self, actor: u64) -> Vec<String> {
        self.inner.check_process();
        let mut lines = Vec::new();
        if let Some(tracer) = self.inner.tracer() {
            tracer::call(tracer, |tracer| lines = tracer.lines_of(actor));
        }
        lines
    }
}

/// Notes what the actor of this waker waits for, such as "a lock of the table".
///
/// [`Runtime::report`] shows it, and the search for
/// [endless waits](crate::Builder::endless_waits) knows the waker by it. The futures of greenroom
/// that wait for an actor, a timer, a task, a name or a job of a looper do this themselves.
///
/// A future calls this in each poll that is pending, when it has left one clone of the waker where
/// it will be woken. At the end of a turn the notes of that turn are what the actor waits for. With
/// another waker than that of an actor, nothing is noted. The same holds if no runtime of this
/// process has that option, which is the default in debug builds.
///
/// ```
/// use std::future::poll_fn;
/// use std::sync::Mutex;
/// use std::task::{Poll, Waker};
/// use greenroom::{ActorWait, Context, Runtime, note_wait, spawn};
///
/// static SWITCH: Mutex<(bool, Option<Waker>)> = Mutex::new((false, None));
///
/// async fn lamp(_cx: Context<()>) {
///     poll_fn(|cx| {
///         let mut switch = SWITCH.lock().unwrap();
///         if switch.0 {
///             return Poll::Ready(());
///         }
///         switch.1 = Some(cx.waker().clone());
///         note_wait(cx.waker(), "the switch");
///         Poll::Pending
///     })
///     .await;
/// }
///
/// let runtime = Runtime::builder().endless_waits(true).build()?;
/// let lamp = spawn!(lamp(_), on = &runtime);
/// runtime.run_until_quiescent();
/// assert_eq!(runtime.report()[0].waits, [ActorWait::Noted("the switch")]);
/// # drop(lamp);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[inline]
pub fn note_wait(waker: &Waker, what: &'static str) {
    note_wait_for(waker, WaitsFor::Other(what), || 0);
}

impl fmt::Display for ActorWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActorWait::Message => f.write_str("a message"),
            ActorWait::Answer(of) => write!(f, "the answer of {of}"),
            ActorWait::Room(of) => write!(f, "room in the mailbox of {of}"),
            ActorWait::End(of) => write!(f, "the end of {of}"),
            ActorWait::Noted(what) => f.write_str(what),
            ActorWait::Other => f.write_str("something that nothing has noted"),
        }
    }
}

impl fmt::Display for TaskReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.actor {
            Some(actor) => write_task(f, &self.task, actor.spawned_at)?,
            None if self.task.name().is_some() => self.task.fmt(f)?,
            None => write!(f, "{} #{}", self.task.called(), self.task.id())?,
        }
        for (index, wait) in self.waits.iter().enumerate() {
            let before = if index == 0 { " waits for" } else { " or" };
            write!(f, "{before} {wait}")?;
        }
        match self.actor.as_ref().map_or(0, |actor| actor.mailbox) {
            _ if self.waits.is_empty() => f.write_str(" runs")?,
            0 => {}
            1 => f.write_str(", with 1 message")?,
            messages => write!(f, ", with {messages} messages")?,
        }
        Ok(())
    }
}

/// Returns what an actor waits for. `who` returns the live actor with a number.
pub(super) fn waits_of(actor: &SeenActor, who: impl Fn(u64) -> Option<TaskInfo>) -> Vec<ActorWait> {
    let SeenActor { look, waits, .. } = actor;
    if !look.is_dormant {
        return Vec::new();
    }
    let noted = match look.is_receiving {
        true => &[],
        false => waits.as_slice(),
    };
    let known = noted.iter().filter_map(|wait| {
        Some(match wait.for_what {
            WaitsFor::Answer => ActorWait::Answer(who(wait.to)?),
            WaitsFor::Room => ActorWait::Room(who(wait.to)?),
            WaitsFor::End => ActorWait::End(who(wait.to)?),
            WaitsFor::Other(what) => ActorWait::Noted(what),
        })
    });
    let mut all: Vec<ActorWait> = known.collect();
    // The look itself holds a reference.
    let has_others = look.others as usize > all.len() + 1;
    if look.is_receiving {
        all.push(ActorWait::Message);
    } else if has_others || all.is_empty() {
        all.push(ActorWait::Other);
    }
    all
}
