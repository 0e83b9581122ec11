//! The end of each chain of waits: one walk over all asks produces the text of each.
//!
//! Actors are nodes and asks are edges. Other waits count as asks here. An actor that asks none ends
//! a chain. Going back, so does an actor that asks only such actors. All other actors lead to a
//! cycle, and each of them continues with the first actor it asks that does so too. So every actor
//! has a single successor, and the walk takes time in proportion to the number of actors and asks.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Display, Write};

use super::{Edge, WaitsFor, Who};
use crate::error::Deadlock;
use crate::task::TaskInfo;

/// The largest number of names in a text. Of a longer path the names before the last are counted.
pub(super) const NAMES_MAX: usize = 16;

/// Returns the texts, in the order of the asks.
pub(crate) fn name_all(asks: &[&Edge]) -> Vec<Deadlock> {
    let graph = Graph::new(asks);
    asks.iter().map(|ask| graph.name(ask)).collect()
}

/// Returns whether each ask leads to a cycle, in the order of the asks.
pub(crate) fn lead_to_cycles(asks: &[&Edge]) -> Vec<bool> {
    let graph = Graph::new(asks);
    let asked = asks.iter().map(|ask| graph.index[&ask.to.id()]);
    asked
        .map(|at| matches!(graph.nodes[at].goal, Goal::Cycle { .. }))
        .collect()
}

/// Returns the text of each cycle, from its oldest actor on, and which of these waits it consists of,
/// by position.
pub(crate) fn wait_cycles(waits: &[&Edge]) -> Vec<(Deadlock, Vec<usize>)> {
    let graph = Graph::new(waits);
    let mut cycles: BTreeMap<usize, (usize, Vec<usize>)> = BTreeMap::new();
    for (position, wait) in waits.iter().enumerate() {
        let Who::Task(waiter) = &wait.from else {
            continue;
        };
        let waiter = graph.index[&waiter.id()];
        let Goal::Cycle { first, len } = graph.nodes[waiter].goal else {
            continue;
        };
        let leads_on = graph.next_of(waiter) == Some(graph.index[&wait.to.id()]);
        if first == waiter && leads_on {
            let own = std::iter::successors(Some(first), |&at| graph.next_of(at)).take(len);
            // Each of its waits finds the same actor first.
            let oldest = own.min_by_key(|&at| graph.nodes[at].task.id());
            let cycle = cycles
                .entry(oldest.unwrap_or(first))
                .or_insert((len, Vec::new()));
            cycle.1.push(position);
        }
    }
    let cycles = cycles.into_iter();
    let named = cycles.map(|(first, (len, own))| (graph.whole_cycle(first, len), own));
    named.collect()
}

#[derive(Default)]
struct Graph<'a> {
    nodes: Vec<GraphNode<'a>>,
    /// By the id of the actor.
    index: HashMap<u64, usize>,
}

struct GraphNode<'a> {
    task: &'a TaskInfo,
    asks: Vec<(usize, WaitsFor)>,
    asked_by: Vec<usize>,
    /// The successor among `asks`.
    next: Option<(usize, WaitsFor)>,
    goal: Goal,
}

/// Where the path from an actor leads.
#[derive(Clone, Copy)]
enum Goal {
    Unknown,
    /// The actor is on the path that is being followed, at this distance from its start.
    OnTheWay(usize),
    End {
        last: usize,
        steps: usize,
    },
    /// A cycle of `len` actors, which the path enters at `first`.
    Cycle {
        first: usize,
        len: usize,
    },
}

impl<'a> Graph<'a> {
    fn new(asks: &[&'a Edge]) -> Self {
        let mut graph = Graph::default();
        for ask in asks {
            let asked = graph.node(&ask.to);
            if let Who::Task(label) = &ask.from {
                let asker = graph.node(label);
                graph.nodes[asker].asks.push((asked, ask.for_what));
                graph.nodes[asked].asked_by.push(asker);
            }
        }
        graph.find_ends();
        graph.find_cycles();
        graph
    }

    fn node(&mut self, task: &'a TaskInfo) -> usize {
        *self.index.entry(task.id()).or_insert_with(|| {
            self.nodes.push(GraphNode {
                task,
                asks: Vec::new(),
                asked_by: Vec::new(),
                next: None,
                goal: Goal::Unknown,
            });
            self.nodes.len() - 1
        })
    }

    /// Sets the goals of all actors that reach no cycle, from the ends backwards.
    fn find_ends(&mut self) {
        let mut open: Vec<usize> = self.nodes.iter().map(|node| node.asks.len()).collect();
        let is_end = |&at: &usize| open[at] == 0;
        let mut ready: Vec<usize> = (0..self.nodes.len()).filter(is_end).collect();
        while let Some(at) = ready.pop() {
            // All actors that it asks have their goals. So its path continues with any of them.
            let next = self.nodes[at].asks.first().copied();
            let goal = match next.map(|(next, _)| self.nodes[next].goal) {
                Some(Goal::End { last, steps }) => Goal::End {
                    last,
                    steps: steps + 1,
                },
                _ => Goal::End { last: at, steps: 0 },
            };
            self.nodes[at].next = next;
            self.nodes[at].goal = goal;
            for &asker in &self.nodes[at].asked_by {
                open[asker] -= 1;
                if open[asker] == 0 {
                    ready.push(asker);
                }
            }
        }
    }

    /// Sets the goals of the remaining actors: each of them asks another of them, so no path has an
    /// end.
    fn find_cycles(&mut self) {
        let without = |node: &GraphNode<'_>| matches!(node.goal, Goal::Unknown);
        for at in 0..self.nodes.len() {
            if without(&self.nodes[at]) {
                let mut asks = self.nodes[at].asks.iter();
                self.nodes[at].next = asks.find(|&&(to, _)| without(&self.nodes[to])).copied();
            }
        }
        // Each path is followed to an actor that has a goal, or to one that is on the path itself. From
        // that one on the path is a cycle, and what comes before leads there.
        for start in 0..self.nodes.len() {
            let (mut at, mut way) = (start, Vec::new());
            while let (Goal::Unknown, Some((next, _))) = (self.nodes[at].goal, self.nodes[at].next)
            {
                self.nodes[at].goal = Goal::OnTheWay(way.len());
                way.push(at);
                at = next;
            }
            if let Goal::OnTheWay(begin) = self.nodes[at].goal {
                let cycle = way.split_off(begin);
                let len = cycle.len();
                for first in cycle {
                    self.nodes[first].goal = Goal::Cycle { first, len };
                }
            }
            for before in way {
                self.nodes[before].goal = self.nodes[at].goal;
            }
        }
    }

    fn name(&self, ask: &Edge) -> Deadlock {
        let asked = self.index[&ask.to.id()];
        let (mut first, len) = match self.nodes[asked].goal {
            Goal::Cycle { first, len } => (first, len),
            Goal::End { last, steps } => return self.chain(ask, asked, last, steps + 2),
            Goal::Unknown | Goal::OnTheWay(_) => unreachable!("every actor was given a goal"),
        };
        if let Who::Task(label) = &ask.from {
            let asker = self.index[&label.id()];
            // A short way back to the asker is a cycle of its own, even if the asker has another
            // successor.
            if let Some(steps) = self.steps_between(asked, asker) {
                return self.cycle(asker, (asked, ask.for_what), steps + 2);
            }
            if self.next_of(asker) == Some(asked)
                && let Goal::Cycle { first: own, .. } = self.nodes[asker].goal
            {
                first = own;
            }
        }
        self.whole_cycle(first, len)
    }

    /// Returns the number of steps from one node to the other, if a text has room for them.
    fn steps_between(&self, from: usize, to: usize) -> Option<usize> {
        let way = std::iter::successors(Some(from), |&at| self.next_of(at));
        way.take(NAMES_MAX - 1).position(|at| at == to)
    }

    fn next_of(&self, at: usize) -> Option<usize> {
        self.nodes[at].next.map(|(next, _)| next)
    }

    fn chain(&self, ask: &Edge, second: usize, last: usize, names: usize) -> Deadlock {
        let second = (second, ask.for_what);
        Deadlock::new(self.path(&ask.from, second, last, names), false)
    }

    /// Returns the text of the cycle of `len` actors from `first` back to it.
    fn whole_cycle(&self, first: usize, len: usize) -> Deadlock {
        let second = self.nodes[first].next.unwrap_or((first, WaitsFor::Answer));
        self.cycle(first, second, len + 1)
    }

    fn cycle(&self, first: usize, second: (usize, WaitsFor), names: usize) -> Deadlock {
        let path = self.path(self.nodes[first].task, second, first, names);
        Deadlock::new(path, true)
    }

    /// Returns the text of a path with `names` names.
    fn path(
        &self,
        first: &dyn Display,
        second: (usize, WaitsFor),
        last: usize,
        names: usize,
    ) -> String {
        let mut text = first.to_string();
        let mut add = |name: &dyn Display, for_what: WaitsFor| {
            // Writing to a string does not fail.
            let _ = write!(text, " → {name}{for_what}");
        };
        let mut next = Some(second);
        for _ in 2..names.min(NAMES_MAX) {
            if let Some((at, for_what)) = next {
                add(self.nodes[at].task, for_what);
                next = self.nodes[at].next;
            }
        }
        let mut into_last = next.map_or(WaitsFor::Answer, |(_, for_what)| for_what);
        if names > NAMES_MAX {
            let left = names - NAMES_MAX;
            add(&format_args!("… ({left} more)"), WaitsFor::Answer);
            into_last = WaitsFor::Answer;
        }
        add(self.nodes[last].task, into_last);
        text
    }
}
