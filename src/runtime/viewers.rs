//! The viewers of a runtime: what each has not taken yet, and when the next walk is due.
//!
//! A walk serves all viewers. A viewer that takes its items in time is *current*: it needs the
//! changes alone. Any other needs an item with everything, and gets it when it has taken what it has.
//! So a viewer that takes nothing has few items and causes no walk.
//!
//! # Invariants
//! - VIEWER-1: a current viewer has taken, or has in `items`, all changes since its last whole item.
//! - VIEWER-2: one walk is made at a time, by the thread that has the marks meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use slab::Slab;

use super::faults::RecentFault;
use super::live_cells::CellMarks;
use super::status::{Stats, TaskReport};
use crate::contain::KeptWaker;
use crate::directory::{HashSeeds, Registrations};
use crate::instant::Instant;
use crate::sync::{Condvar, Mutex};

/// The most items that a viewer has not taken: one that is just being written, and the next one.
const ITEMS_MAX: usize = 2;

/// The shortest time from walk to walk.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// A pause of a walk's length follows it at least, so that walks take at most half of a core.
const PAUSE: u32 = 2;

/// What has changed in a runtime, as a [`Watch`](crate::Watch) returns it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Changes {
    /// Whether this is everything that there is, so that what the viewer knew before is void.
    ///
    /// So is the first item of a viewer, and the next one of a viewer that was too slow.
    pub is_whole: bool,
    /// When the walk began that has found this.
    pub at: Instant,
    /// The statistics of the runtime; [`actors`](Stats::actors) is empty.
    pub stats: Stats,
    /// The actors that are new or have changed since the item before, with what each waits for. All
    /// live actors if this is whole. They are in no particular order.
    pub changed: Vec<TaskReport>,
    /// The [ids](crate::Address::id) of the actors that have ended since.
    ///
    /// An actor that was spawned and has ended between two walks is in no item.
    pub ended: Vec<u64>,
    /// The [faults](crate::Runtime::faults) since the item before, or all that are kept if this is
    /// whole.
    pub faults: Vec<RecentFault>,
}

pub(crate) struct Viewers {
    list: Mutex<ViewerList>,
    /// Signalled when a viewer comes, goes or has taken its items, and at the end.
    changed: Condvar,
}

#[derive(Default)]
struct ViewerList {
    viewers: Slab<Viewer>,
    /// When the next walk is due, unless a viewer is new.
    next: Option<Instant>,
    /// What the last walk has seen; `None` before the first one, and during one.
    marks: Option<Box<WalkMarks>>,
    is_walking: bool,
    /// A thread makes the walks. Otherwise polls do.
    has_thread: bool,
    is_over: bool,
}

struct Viewer {
    interval: Duration,
    phase: ViewerPhase,
    items: VecDeque<Arc<Changes>>,
    waker: Option<KeptWaker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ViewerPhase {
    /// It had no item yet.
    New,
    Current,
    /// It was too slow.
    Late,
}

/// What walks remember.
pub(super) struct WalkMarks {
    pub(super) seeds: HashSeeds,
    pub(super) workers: CellMarks,
    /// By the keys of the hosts.
    pub(super) hosts: BTreeMap<usize, CellMarks>,
    pub(super) registered: Registrations,
    /// The number of the last fault.
    pub(super) faults: u64,
}

/// A walk that is due.
pub(super) struct WalkPlan {
    pub(super) marks: Box<WalkMarks>,
    /// Whether an item with everything is wanted, and whether one with the changes is.
    pub(super) wants_whole: bool,
    pub(super) wants_changes: bool,
    begun: Instant,
    interval: Duration,
}

/// When a walk is due.
pub(super) enum NextWalk {
    Now(WalkPlan),
    At(Instant),
    /// When a viewer has taken its items, or comes.
    Unknown,
}

/// The items of a walk, as far as they were wanted.
#[derive(Default)]
pub(super) struct WalkItems {
    pub(super) whole: Option<Arc<Changes>>,
    pub(super) changes: Option<Arc<Changes>>,
}

impl Viewers {
    pub(super) fn new() -> Self {
        Viewers {
            list: Mutex::new(ViewerList::default()),
            changed: Condvar::new(),
        }
    }

    /// Adds a viewer. Returns its key, and whether the caller must start a thread for the walks.
    pub(super) fn enter(&self, interval: Duration, may_start: bool) -> (usize, bool) {
        let mut list = self.list.lock();
        let key = list.viewers.insert(Viewer {
            interval: interval.max(INTERVAL_MIN),
            phase: ViewerPhase::New,
            items: VecDeque::new(),
            waker: None,
        });
        let starts = may_start && !list.has_thread && !list.is_over;
        list.has_thread |= starts;
        drop(list);
        self.changed.notify_one();
        (key, starts)
    }

    /// Removes a viewer. The last one frees the marks.
    pub(super) fn leave(&self, key: usize) {
        let mut list = self.list.lock();
        let viewer = list.viewers.try_remove(key);
        let is_last = list.viewers.is_empty();
        let marks = list.marks.take_if(|_| is_last);
        drop(list);
        self.changed.notify_one();
        drop((viewer, marks));
    }

    /// Notes that no thread was started for the walks, so that polls make them.
    pub(super) fn has_no_thread(&self) {
        let mut list = self.list.lock();
        list.has_thread = false;
        let wakers = list.take_wakers();
        drop(list);
        wakers.into_iter().for_each(KeptWaker::wake);
    }

    pub(super) fn has_thread(&self) -> bool {
        self.list.lock().has_thread
    }

    /// Ends all watches: each viewer takes the items that it has.
    pub(super) fn end(&self) {
        let mut list = self.list.lock();
        list.is_over = true;
        let wakers = list.take_wakers();
        drop(list);
        self.changed.notify_one();
        wakers.into_iter().for_each(KeptWaker::wake);
    }

    /// Takes the next item of a viewer. `None` is the end.
    pub(super) fn poll(&self, key: usize, cx: &mut Context<'_>) -> Poll<Option<Arc<Changes>>> {
        let mut list = self.list.lock();
        if let Some(taken) = list.take(key) {
            drop(list);
            self.changed.notify_one();
            return Poll::Ready(taken);
        }
        drop(list);
        let waker = KeptWaker::new(cx.waker());
        let mut list = self.list.lock();
        // Looked at again: an item that came meanwhile has woken nobody.
        let taken = list.take(key);
        let viewer = &mut list.viewers[key];
        let waker = match taken {
            Some(_) => Some(waker),
            None => viewer.waker.replace(waker),
        };
        drop(list);
        drop(waker);
        taken.map_or(Poll::Pending, Poll::Ready)
    }

    /// Forgets the waker of a viewer.
    pub(super) fn forget(&self, key: usize) {
        let waker = self.list.lock().viewers[key].waker.take();
        drop(waker);
    }

    /// Begins a walk if one is due and polls make the walks.
    pub(super) fn begin_in_poll(&self) -> NextWalk {
        let mut list = self.list.lock();
        match list.has_thread {
            true => NextWalk::Unknown,
            false => list.begin(Instant::now()),
        }
    }

    /// Waits on the thread for the walks until one is due. Returns `None` when there are no viewers
    /// any more, or at the end; then it has called `leave`.
    pub(super) fn wait_for_walk(&self, leave: impl FnOnce()) -> Option<WalkPlan> {
        let mut list = self.list.lock();
        loop {
            if list.is_over || list.viewers.is_empty() {
                // Before the thread is known to be gone: who sees that may join it.
                leave();
                list.has_thread = false;
                return None;
            }
            let now = Instant::now();
            let wait = match list.begin(now) {
                NextWalk::Now(plan) => return Some(plan),
                NextWalk::At(next) => Some(next.duration_since(now)),
                NextWalk::Unknown => None,
            };
            list = self.changed.wait(list, wait);
        }
    }

    /// Ends a walk, and wakes the viewers that it has items for.
    pub(super) fn end_walk(&self, plan: WalkPlan, items: &WalkItems) {
        let took = plan.begun.elapsed();
        let mut list = self.list.lock();
        list.is_walking = false;
        list.next = Some(plan.begun + plan.interval.max(took * PAUSE));
        let unneeded = match list.viewers.is_empty() {
            true => Some(plan.marks),
            false => list.marks.replace(plan.marks),
        };
        let viewers = list.viewers.iter_mut();
        let wakers = viewers.filter_map(|(_, viewer)| viewer.give(items));
        let wakers: Vec<KeptWaker> = wakers.collect();
        drop(list);
        drop(unneeded);
        wakers.into_iter().for_each(KeptWaker::wake);
    }
}

impl ViewerList {
    fn take_wakers(&mut self) -> Vec<KeptWaker> {
        let viewers = self.viewers.iter_mut();
        viewers.filter_map(|(_, it)| it.waker.take()).collect()
    }

    /// Takes the next item of a viewer or the end, if there is one.
    fn take(&mut self, key: usize) -> Option<Option<Arc<Changes>>> {
        let viewer = self.viewers.get_mut(key)?;
        match viewer.items.pop_front() {
            Some(item) => Some(Some(item)),
            None => self.is_over.then_some(None),
        }
    }

    fn begin(&mut self, now: Instant) -> NextWalk {
        if self.is_walking || self.is_over {
            return NextWalk::Unknown;
        }
        let waiting = self.viewers.iter().map(|(_, viewer)| viewer);
        let waiting = waiting.filter(|viewer| viewer.has_room());
        let (mut interval, mut is_due) = (None::<Duration>, false);
        for viewer in waiting {
            let shortest = interval.unwrap_or(viewer.interval);
            interval = Some(shortest.min(viewer.interval));
            is_due |= viewer.phase == ViewerPhase::New;
        }
        let Some(interval) = interval else {
            return NextWalk::Unknown;
        };
        // A moment of another clock is over.
        let next = self
            .next
            .filter(|next| next.is_comparable(now) && *next > now);
        if let Some(next) = next
            && !is_due
        {
            return NextWalk::At(next);
        }
        let (mut wants_whole, mut wants_changes) = (false, false);
        for (_, viewer) in &mut self.viewers {
            match (viewer.phase, viewer.has_room()) {
                // (VIEWER-1) It will miss what this walk finds.
                (ViewerPhase::Current, false) => viewer.phase = ViewerPhase::Late,
                (ViewerPhase::Current, true) => wants_changes = true,
                (_, has_room) => wants_whole |= has_room,
            }
        }
        self.is_walking = true;
        let marks = self.marks.take().unwrap_or_else(|| {
            Box::new(WalkMarks {
                seeds: HashSeeds::new(),
                workers: CellMarks::default(),
                hosts: BTreeMap::new(),
                registered: Registrations::default(),
                faults: 0,
            })
        });
        NextWalk::Now(WalkPlan {
            marks,
            wants_whole,
            wants_changes,
            begun: now,
            interval,
        })
    }
}

impl Viewer {
    /// Returns whether an item may be given to it.
    fn has_room(&self) -> bool {
        match self.phase {
            ViewerPhase::Current => self.items.len() < ITEMS_MAX,
            ViewerPhase::New | ViewerPhase::Late => self.items.is_empty(),
        }
    }

    /// Adds the item that it needs. Returns its waker if it waits for one.
    fn give(&mut self, items: &WalkItems) -> Option<KeptWaker> {
        let item = match (self.phase, self.has_room()) {
            (_, false) => None,
            (ViewerPhase::Current, true) => items.changes.as_ref(),
            (ViewerPhase::New | ViewerPhase::Late, true) => items.whole.as_ref(),
        };
        self.items.push_back(item?.clone());
        self.phase = ViewerPhase::Current;
        self.waker.take()
    }
}
