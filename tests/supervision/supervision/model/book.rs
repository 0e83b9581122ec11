//! What a run of the model has seen of its tree, and the rules that hold at each step.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom::supervise::{Strategy, Supervisor};
use greenroom::{Address, AskCause, AskError};

use super::{Letter, Task};

/// What is known of all children. The number of a child or supervisor is its place in its list.
#[derive(Clone, Default)]
pub struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
pub struct Pages {
    pub trees: Vec<TreePage>,
    pub leaves: Vec<LeafPage>,
    /// The incarnations that are not dropped.
    live: HashSet<Incarnation>,
    /// What became of the messages, as they were received or passed on as undelivered.
    seen: HashMap<usize, Vec<Seen>>,
    /// The supervisor at the top may give up, after which children begin out of order.
    pub may_give_up: bool,
    /// The rules that were broken. A panic would restart the child that breaks one.
    pub broken: Vec<String>,
}

/// A child, and the number of its incarnation.
type Incarnation = (usize, u64);

pub struct TreePage {
    pub parent: Option<usize>,
    /// The place among the children of its parent.
    pub place: u64,
    pub strategy: Strategy,
    pub tree: Option<Supervisor>,
    /// Whether it was told to stop.
    pub is_stopped: bool,
    /// The place of its next child.
    pub next: u64,
}

pub struct LeafPage {
    pub tree: usize,
    pub place: u64,
    pub address: Option<Address<Letter>>,
    begun: u64,
    /// The texts of its panics.
    pub faults: Vec<String>,
    /// Whether it was killed, or told to stop by its supervisor.
    is_ended: bool,
    /// Whether it was ever restarted by hand.
    by_hand: bool,
    /// Whether its context is elsewhere.
    is_escaped: bool,
    /// What has to be dropped before it begins after its last failure.
    before: Vec<Incarnation>,
}

/// A message: of which sender, with which number.
pub type Mark = (usize, u32);

#[derive(Clone, Copy)]
struct Seen {
    mark: Mark,
    by: Option<u64>,
}

impl Book {
    pub fn with<R>(&self, f: impl FnOnce(&mut Pages) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Pages {
    pub fn add_tree(&mut self, parent: Option<usize>, strategy: Strategy) -> usize {
        let place = parent.map_or(0, |parent| self.take_place(parent));
        self.trees.push(TreePage {
            parent,
            place,
            strategy,
            tree: None,
            is_stopped: false,
            next: 0,
        });
        self.trees.len() - 1
    }

    pub fn add_leaf(&mut self, tree: usize) -> usize {
        let place = self.take_place(tree);
        self.leaves.push(LeafPage {
            tree,
            place,
            address: None,
            begun: 0,
            faults: Vec::new(),
            is_ended: false,
            by_hand: false,
            is_escaped: false,
            before: Vec::new(),
        });
        self.leaves.len() - 1
    }

    fn take_place(&mut self, tree: usize) -> u64 {
        let next = &mut self.trees[tree].next;
        *next += 1;
        *next
    }

    pub fn end(&mut self, leaf: usize) {
        self.leaves[leaf].is_ended = true;
    }

    pub fn restart(&mut self, leaf: usize) {
        self.leaves[leaf].by_hand = true;
    }

    pub fn escape(&mut self, leaf: usize) {
        self.leaves[leaf].is_escaped = true;
    }

    /// Returns whether this supervisor or one above it was told to stop.
    fn is_stopping(&self, tree: usize) -> bool {
        let mut above = Some(tree);
        while let Some(tree) = above {
            if self.trees[tree].is_stopped {
                return true;
            }
            above = self.trees[tree].parent;
        }
        false
    }

    /// Returns the place of a leaf among the children of `tree`, if it is below that supervisor.
    fn place_below(&self, leaf: usize, tree: usize) -> Option<u64> {
        let (mut above, mut place) = (self.leaves[leaf].tree, self.leaves[leaf].place);
        while above != tree {
            place = self.trees[above].place;
            above = self.trees[above].parent?;
        }
        Some(place)
    }

    /// Returns the incarnations below a supervisor whose place there meets the condition. A context
    /// that has left an actor does not count if the actor may have been killed.
    fn live_below(&self, tree: usize, has: impl Fn(u64) -> bool) -> Vec<Incarnation> {
        let live = self.live.iter().filter(|(leaf, _)| {
            let page = &self.leaves[*leaf];
            let is_own = self.place_below(*leaf, tree).is_some_and(&has);
            let may_be_killed = page.is_ended || self.is_stopping(page.tree);
            is_own && !(page.is_escaped && may_be_killed)
        });
        live.copied().collect()
    }

    /// Enters the begin of an incarnation, which may not overlap others.
    pub fn begin(&mut self, leaf: usize, incarnation: u64) {
        let page = &self.leaves[leaf];
        let (tree, place) = (page.tree, page.place);
        let is_live = self.live.iter().any(|(other, _)| *other == leaf);
        self.check(!is_live, || format!("leaf {leaf} begins while it is live"));
        let is_new = incarnation >= self.leaves[leaf].begun;
        self.check(is_new, || format!("leaf {leaf} begins {incarnation} again"));
        let page = &self.leaves[leaf];
        let is_alone = page.by_hand || page.is_ended || self.is_stopping(tree);
        if page.begun == 0 {
            self.check_elders(leaf);
        }
        if !is_alone && !self.may_give_up && self.trees[tree].strategy != Strategy::OneForOne {
            let before = &self.leaves[leaf].before;
            let mut live = self.live_below(tree, |_| true);
            live.retain(|it| self.place_below(it.0, tree) > Some(place) || before.contains(it));
            self.check(live.is_empty(), || {
                format!("{live:?} as leaf {leaf} begins")
            });
        }
        let page = &mut self.leaves[leaf];
        page.begun = incarnation + 1;
        page.is_escaped = false;
        page.before.clear();
        self.live.insert((leaf, incarnation));
    }

    /// A child begins for the first time after those that were started before it.
    fn check_elders(&mut self, leaf: usize) {
        let tree = self.leaves[leaf].tree;
        let elders = self.leaves[..leaf].iter().enumerate();
        let late = elders.filter(|(_, elder)| {
            let has_begun = elder.begun > 0 || elder.is_ended || elder.address.is_none();
            elder.tree == tree && !has_begun
        });
        let late: Vec<usize> = late.map(|(number, _)| number).collect();
        self.check(late.is_empty(), || {
            format!("leaf {leaf} begins before {late:?}")
        });
    }

    fn check(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(text());
        }
    }

    /// Enters that an incarnation fails. Its round first drops what is live now.
    pub fn fail(&mut self, leaf: usize, text: &str) {
        self.leaves[leaf].faults.push(text.to_owned());
        let (tree, place) = (self.leaves[leaf].tree, self.leaves[leaf].place);
        self.leaves[leaf].before = match self.trees[tree].strategy {
            Strategy::OneForAll => self.live_below(tree, |_| true),
            Strategy::RestForOne => self.live_below(tree, |other| other >= place),
            _ => Vec::new(),
        };
    }

    pub fn drop(&mut self, leaf: usize, incarnation: u64) {
        let was_live = self.live.remove(&(leaf, incarnation));
        self.check(was_live, || format!("leaf {leaf} was dropped twice"));
    }

    pub fn receive(&mut self, leaf: usize, mark: Mark, incarnation: u64) {
        let by = Some(incarnation);
        self.seen.entry(leaf).or_default().push(Seen { mark, by });
    }

    pub fn undelivered(&mut self, leaf: usize, mark: Mark) {
        let seen = Seen { mark, by: None };
        self.seen.entry(leaf).or_default().push(seen);
    }

    /// Everything was dropped in the end.
    pub fn check_end(&self) {
        assert_eq!(self.broken, [""; 0]);
        assert!(self.live.is_empty(), "live in the end: {:?}", self.live);
        for (number, page) in self.trees.iter().enumerate() {
            let left = page.tree.as_ref().map_or(0, |tree| tree.children().len());
            assert_eq!(left, 0, "children of tree {number}");
        }
    }

    /// What a sender knows agrees with what became of its messages.
    pub fn check_sender(&self, sender: usize, sent: &[Sent]) {
        for leaf in 0..self.leaves.len() {
            let seen = self.seen.get(&leaf).map_or(&[][..], Vec::as_slice);
            let seen = seen.iter().filter(|seen| seen.mark.0 == sender);
            let seen: Vec<u32> = seen.map(|seen| seen.mark.1).collect();
            let accepted = sent.iter().filter(|it| it.leaf == leaf && it.is_accepted());
            let accepted: Vec<u32> = accepted.map(|it| it.number).collect();
            assert_eq!(seen, accepted, "of sender {sender} to leaf {leaf}");
        }
        for it in sent {
            if let Outcome::Asked(answer) = &it.outcome {
                self.check_answer((sender, it.number), it, answer);
            }
        }
    }

    fn check_answer(&self, mark: Mark, sent: &Sent, answer: &Result<(), AskError>) {
        let leaf = sent.leaf;
        let seen = self.seen.get(&leaf).map_or(&[][..], Vec::as_slice);
        let seen = seen.iter().find(|seen| seen.mark == mark);
        let by = seen.and_then(|seen| seen.by);
        match answer {
            Ok(()) => assert!(by.is_some(), "{mark:?} was answered"),
            Err(AskError::Closed(_)) => assert!(seen.is_none(), "{mark:?} was refused"),
            Err(AskError::NoReply(detail)) => match detail.why() {
                AskCause::Panicked(text) => {
                    let faults = &self.leaves[leaf].faults;
                    assert!(faults.contains(text), "{mark:?}: {text} of {faults:?}");
                }
                AskCause::Restarted => assert!(by.is_some(), "{mark:?} was in hand"),
                AskCause::Killed | AskCause::Ended => {}
                // The function for undelivered messages drops them.
                AskCause::ReplyDropped => {
                    let is_dropped = by.is_none() || matches!(sent.task, Task::Return);
                    assert!(is_dropped, "{mark:?} was lost by its incarnation");
                }
                other => panic!("{mark:?}: {other:?}"),
            },
            Err(other) => panic!("{mark:?}: {other}"),
        }
    }
}

/// A message as its sender knows it.
pub struct Sent {
    pub leaf: usize,
    pub number: u32,
    pub task: Task,
    pub outcome: Outcome,
}

pub enum Outcome {
    Accepted,
    Refused,
    Asked(Result<(), AskError>),
}

impl Sent {
    fn is_accepted(&self) -> bool {
        match &self.outcome {
            Outcome::Accepted => true,
            Outcome::Refused => false,
            Outcome::Asked(answer) => !matches!(answer, Err(AskError::Closed(_))),
        }
    }
}
