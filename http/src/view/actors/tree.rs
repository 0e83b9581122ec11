//! Rows as a tree: each actor below its parent.
//!
//! Each row is there once. One whose parent has no row begins a tree. So does one of those that are
//! their own ancestors: an actor may be adopted by one that it has spawned.

use std::collections::{HashMap, HashSet};

use super::rows::ActorRow;

/// Orders rows so that each is behind its parent, which is at most that deep. Those with the same parent
/// stay in their order.
pub(super) fn in_tree(rows: Vec<ActorRow<'_>>) -> Vec<ActorRow<'_>> {
    let at: HashMap<u64, usize> = rows.iter().map(|row| row.task.id()).zip(0..).collect();
    let parent = |row: &ActorRow<'_>| row.parent.and_then(|id| at.get(&id).copied());
    let parents: Vec<Option<usize>> = rows.iter().map(parent).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    for (row, parent) in parents.iter().enumerate() {
        if let Some(parent) = *parent {
            children[parent].push(row);
        }
    }
    let mut left: Vec<Option<ActorRow<'_>>> = rows.into_iter().map(Some).collect();
    let mut tree = Vec::with_capacity(left.len());
    let roots = (0..left.len()).filter(|&row| parents[row].is_none());
    // Those of a cycle and below one come last: all others are taken by then.
    for row in roots.chain(0..parents.len()) {
        let is_left = left[row].is_some();
        let mut open = Vec::from_iter(is_left.then(|| (top(&parents, row), 0)));
        while let Some((row, depth)) = open.pop() {
            let Some(taken) = left[row].take() else {
                continue;
            };
            tree.push(ActorRow { depth, ..taken });
            let below = children[row].iter().rev();
            open.extend(below.map(|&child| (child, depth + 1)));
        }
    }
    tree
}

/// Returns the first ancestor of a row or, if it is in a cycle or below one, one of that.
fn top(parents: &[Option<usize>], mut row: usize) -> usize {
    let mut passed = HashSet::new();
    while passed.insert(row)
        && let Some(parent) = parents[row]
    {
        row = parent;
    }
    row
}
