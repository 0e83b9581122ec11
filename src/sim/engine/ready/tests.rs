//! The numbers that are drawn, and the order of entries.

use super::{CHANGED, Draw, Ready, Schedule};

const PRIORITIES: Schedule = Schedule::Priorities {
    changes: 3,
    within: 50,
    keeps: false,
};

#[test]
fn draw_returns_the_published_numbers() {
    let mut draw = Draw::new(1_234_567);
    let first = [draw.next(), draw.next(), draw.next()];
    let published = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
    ];
    assert_eq!(first, published);
}

#[test]
fn below_returns_every_number_below_its_end() {
    let mut draw = Draw::new(1);
    let mut seen = [0; 7];
    for _ in 0..7000 {
        seen[draw.below(7) as usize] += 1;
    }
    assert!(
        seen.iter().all(|&count| (800..1200).contains(&count)),
        "{seen:?}"
    );
    assert_eq!(draw.below(0), 0);
    assert_eq!(draw.below(1), 0);
}

#[test]
fn pop_takes_the_highest_rank_and_the_oldest_of_equals() {
    let schedule = Schedule::Priorities {
        changes: 0,
        within: 50,
        keeps: false,
    };
    let mut ready = Ready::new(schedule, Draw::new(1));
    for (item, rank) in [(1, 5), (2, 9), (3, 5), (4, 7)] {
        ready.push(item, rank);
    }
    let order: Vec<i32> = std::iter::from_fn(|| ready.pop().map(|(item, _)| item)).collect();
    assert_eq!(order, [2, 4, 1, 3]);
}

#[test]
fn priorities_lower_as_many_entries_as_there_are_changes() {
    for seed in 0..100 {
        let mut ready = Ready::new(PRIORITIES, Draw::new(seed));
        let mut lowered = Vec::new();
        for step in 0..60 {
            ready.push((), step);
            if ready.pop().unwrap().1 {
                lowered.push(step);
            }
        }
        assert!(
            lowered.len() == 3 && lowered.iter().all(|&step| step < 50),
            "{lowered:?}"
        );
    }
}

#[test]
fn lowered_ranks_are_below_new_ranks_and_yielded_ranks_below_lowered() {
    let mut ready = Ready::<()>::new(PRIORITIES, Draw::new(1));
    let changed: Vec<u64> = (0..100).map(|_| ready.changed()).collect();
    assert!(!changed.is_sorted() && !changed.iter().rev().is_sorted());
    let (first, second) = (ready.yielded().unwrap(), ready.yielded().unwrap());
    assert!(second < first);
    assert!(changed.iter().all(|&rank| first < rank && rank < CHANGED));
    assert!((0..1000).all(|_| ready.rank() >= CHANGED));
}

#[test]
fn priorities_end_after_their_steps() {
    let first = |seed| {
        let mut ready = Ready::new(
            Schedule::Priorities {
                changes: 0,
                within: 2,
                keeps: false,
            },
            Draw::new(seed),
        );
        (0..6).for_each(|item| ready.push(item, item));
        assert_eq!(ready.pop(), Some((5, false)));
        assert_eq!(ready.pop(), Some((4, false)));
        assert_eq!(ready.count(|_| true), 4);
        ready.pop().unwrap().0
    };
    let found: std::collections::HashSet<u64> = (0..100).map(first).collect();
    assert_eq!(found.len(), 4);
}

#[test]
fn take_all_returns_every_entry() {
    for schedule in [PRIORITIES, Schedule::Random] {
        let mut ready = Ready::new(schedule, Draw::new(1));
        (0..5).for_each(|item| ready.push(item, item % 2));
        let mut all = ready.take_all();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        assert_eq!(ready.pop(), None);
    }
}
