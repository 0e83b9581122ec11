//! What a supervisor and all of its holders share: its inbox, and the list of its children.
//!
//! The inbox is not the mailbox of the supervisor, since children report after a stop, too. No lock
//! of a tree is held while another tree or an actor is called.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

use super::child::{ChildRecord, ChildStatus, ErasedChild};
use super::error::Escalated;
use crate::actor::{BondOrder, BondReport};
use crate::contain::KeptWaker;
use crate::runtime::{CurrentPlace, context};
use crate::sync::{Mutex, MutexGuard};
use crate::task::TaskInfo;

/// One supervisor and its children.
pub(super) struct Tree {
    /// Set as soon as the supervisor is spawned.
    info: OnceLock<TaskInfo>,
    /// The supervisor above, and the number that this one has there.
    parent: Option<(Weak<Tree>, u64)>,
    /// Where children without a place run, whoever starts them, if that is a tokio runtime.
    place: Option<CurrentPlace>,
    shared: Mutex<TreeState>,
}

#[derive(Default)]
struct TreeState {
    events: VecDeque<TreeEvent>,
    /// The waker of the supervisor, while it waits for an event.
    waker: Option<KeptWaker>,
    /// By number, which is the order of their starts.
    children: BTreeMap<u64, ChildRecord>,
    /// The number of each child, by the id of its actor.
    numbers: HashMap<u64, u64>,
    /// The last number.
    last: u64,
    /// How many children are being spawned.
    starting: usize,
    is_stopping: bool,
    has_ended: bool,
    escalated: Option<Escalated>,
    /// The actors that have ended with faults for which this supervisor, or one below, has given up.
    faulted: Vec<Arc<dyn ErasedChild>>,
}

/// What happens to a supervisor. Children have their numbers.
pub(super) enum TreeEvent {
    Start(u64, Arc<dyn ErasedChild>),
    BondReport(u64, BondReport),
    /// From the supervisor above.
    BondOrder(BondOrder),
    Restart(u64),
    StopChild(u64),
}

/// The start of a child, which is being spawned. The supervisor does not end before this is dropped,
/// unless it is killed.
pub(super) struct ChildStart<'a> {
    tree: &'a Tree,
    pub(super) number: u64,
}

impl ChildStart<'_> {
    /// Adds the child, which is killed if the supervisor has ended.
    pub(super) fn add(self, child: Arc<dyn ErasedChild>) {
        if let Some(late) = self.tree.add(self.number, child) {
            late.kill();
        }
    }
}

impl Drop for ChildStart<'_> {
    fn drop(&mut self) {
        self.tree.change(|shared| shared.starting -= 1);
    }
}

impl Tree {
    pub(super) fn new(parent: Option<(Weak<Tree>, u64)>) -> Arc<Self> {
        Arc::new(Tree {
            info: OnceLock::new(),
            parent,
            place: CurrentPlace::of_tokio(),
            shared: Mutex::new(TreeState::default()),
        })
    }

    /// Makes a call that spawns a child, where children without a place run.
    pub(super) fn at_place<R>(&self, spawn: impl FnOnce() -> R) -> R {
        match &self.place {
            Some(place) => place.within(spawn),
            None => spawn(),
        }
    }

    /// Returns the identity of the supervisor, which is set by the first call.
    pub(super) fn info_or(&self, info: impl FnOnce() -> TaskInfo) -> &TaskInfo {
        self.info.get_or_init(info)
    }

    pub(super) fn info(&self) -> &TaskInfo {
        self.info.get().expect("it was spawned")
    }

    pub(super) fn has_parent(&self) -> bool {
        self.parent.is_some()
    }

    /// Reports to the supervisor above, if there is one.
    pub(super) fn report(&self, report: BondReport) {
        if let Some((parent, number)) = &self.parent
            && let Some(parent) = parent.upgrade()
        {
            parent.take_report(*number, report);
        }
    }

    /// Takes the report of a child. The list of the children has it at once, so that it is not older
    /// than what the child itself has said.
    pub(super) fn take_report(&self, child: u64, report: BondReport) {
        self.update(child, |status| match &report {
            BondReport::Starting(number) => status.begin(*number),
            BondReport::Failed(text, _) => status.fail(text.as_ref()),
            _ => {}
        });
        if !matches!(report, BondReport::Starting(_)) {
            self.push(TreeEvent::BondReport(child, report));
        }
    }

    /// Locks what is shared. Earlier effects of a simulated turn come first.
    fn shared(&self) -> MutexGuard<'_, TreeState> {
        context::apply_effects();
        self.shared.lock()
    }

    /// Adds an event, and wakes the supervisor.
    pub(super) fn push(&self, event: TreeEvent) {
        self.change(|shared| shared.events.push_back(event));
    }

    /// Changes what is shared, and wakes the supervisor.
    fn change<R>(&self, change: impl FnOnce(&mut TreeState) -> R) -> R {
        let mut shared = self.shared();
        let result = change(&mut shared);
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Takes the next event. If there is none, the next one wakes `waker`.
    pub(super) fn pop(&self, waker: &Waker) -> Option<TreeEvent> {
        let mut waker = Some(KeptWaker::new(waker));
        let mut shared = self.shared();
        let event = shared.events.pop_front();
        if event.is_none() {
            std::mem::swap(&mut shared.waker, &mut waker);
        }
        drop(shared);
        event
    }

    // -- starts -----------------------------------------------------------------------------------

    /// Begins to start a child, unless the supervisor stops.
    pub(super) fn begin_start(&self) -> Option<ChildStart<'_>> {
        let mut shared = self.shared();
        if shared.is_stopping {
            return None;
        }
        shared.starting += 1;
        shared.last += 1;
        Some(ChildStart {
            tree: self,
            number: shared.last,
        })
    }

    /// Adds a child. Returns it if the supervisor has ended.
    fn add(&self, number: u64, child: Arc<dyn ErasedChild>) -> Option<Arc<dyn ErasedChild>> {
        self.change(|shared| {
            if shared.has_ended {
                return Some(child);
            }
            let info = child.info();
            shared.numbers.insert(info.id(), number);
            let record = ChildRecord::new(info, self.info().id());
            shared.children.insert(number, record);
            shared.events.push_back(TreeEvent::Start(number, child));
            None
        })
    }

    /// Returns whether no child is being spawned and no event is left, if children are refused.
    pub(super) fn is_quiet(&self) -> bool {
        let shared = self.shared();
        shared.starting == 0 && shared.events.is_empty()
    }

    /// Refuses further children.
    pub(super) fn refuse(&self) {
        self.shared().is_stopping = true;
    }

    /// Ends the tree, and returns the children that the supervisor did not take.
    pub(super) fn end(&self) -> Vec<Arc<dyn ErasedChild>> {
        let mut shared = self.shared();
        (shared.is_stopping, shared.has_ended) = (true, true);
        shared.children.clear();
        shared.numbers.clear();
        let events = std::mem::take(&mut shared.events);
        drop(shared);
        let late = events.into_iter().filter_map(|event| match event {
            TreeEvent::Start(_, child) => Some(child),
            _ => None,
        });
        late.collect()
    }

    // -- the list ---------------------------------------------------------------------------------

    /// Returns the number of the child with this id.
    pub(super) fn number_of(&self, id: u64) -> Option<u64> {
        self.shared().numbers.get(&id).copied()
    }

    pub(super) fn list(&self) -> Vec<ChildStatus> {
        let shared = self.shared();
        shared.children.values().map(ChildRecord::public).collect()
    }

    pub(super) fn update(&self, child: u64, change: impl FnOnce(&mut ChildRecord)) {
        if let Some(status) = self.shared().children.get_mut(&child) {
            change(status);
        }
    }

    /// Removes a child. Returns whether it has reported a failure, and has not begun since.
    pub(super) fn remove(&self, child: u64) -> bool {
        let mut shared = self.shared();
        let Some(status) = shared.children.remove(&child) else {
            return false;
        };
        shared.numbers.remove(&status.info.id());
        status.has_failed
    }

    // -- the outcome ------------------------------------------------------------------------------

    pub(super) fn escalate(&self, why: Escalated) {
        self.shared().escalated = Some(why);
    }

    /// Keeps a child whose fault is joined when the escalation is received.
    pub(super) fn keep(&self, child: Arc<dyn ErasedChild>) {
        let faulted = child.faulted();
        self.shared().faulted.extend(faulted);
    }

    pub(super) fn faulted(&self) -> Vec<Arc<dyn ErasedChild>> {
        self.shared().faulted.clone()
    }

    /// Joins the actors for whose faults this supervisor has given up.
    pub(super) fn take_faults(&self) {
        let children = std::mem::take(&mut self.shared().faulted);
        children.iter().for_each(|child| child.take_fault());
    }

    pub(super) fn escalated(&self) -> Option<Escalated> {
        self.shared().escalated.clone()
    }
}
