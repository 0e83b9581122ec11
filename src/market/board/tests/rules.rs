//! What the rules of a board change: the order of jobs, and which keys are limited.

use super::*;

#[test]
fn a_job_that_waits_gains_a_priority_in_each_step() {
    let rules = BoardRules {
        aging: Some(Duration::from_millis(10)),
        ..BoardRules::plain(9)
    };
    let mut board: Users = Board::new(rules);
    // The jobs are due at these moments, and have these priorities.
    let jobs = [
        (0, 0),
        (19, 2),
        (20, 2),
        (21, 2),
        (10, 1),
        (10, 0),
        (0, u32::MAX),
    ];
    for (job, (due, priority)) in jobs.into_iter().enumerate() {
        let number = board.number();
        let due = place(number, priority, at(due));
        board.add(None, &mut None, due, START, User(job as u64));
    }
    board.release(at(21), &mut Vec::new());
    assert_eq!(drain(&mut board), [6, 1, 2, 4, 0, 3, 5]);
}

#[test]
fn a_lead_of_centuries_leaves_the_order_of_the_priorities() {
    let rules = BoardRules {
        aging: Some(Duration::MAX),
        ..BoardRules::plain(9)
    };
    let mut board: Users = Board::new(rules);
    for (job, priority) in [1, u32::MAX, 0, 2, u32::MAX - 1].into_iter().enumerate() {
        add(&mut board, None, priority, job as u64);
    }
    assert_eq!(drain(&mut board), [1, 4, 3, 0, 2]);
}

#[test]
fn a_key_is_forgotten_when_its_last_start_counts_no_more() {
    let rules = BoardRules {
        rate: Some((1, Duration::from_millis(10))),
        ..BoardRules::plain(9)
    };
    let mut board: Users = Board::new(rules);
    add(&mut board, Some(7), 1, 0);
    let (_, served) = take(&mut board).unwrap();
    assert_eq!(done(&mut board, served), None, "its start counts");
    assert!(!is_known_after(&mut board, 10) && board.next_moment().is_none());
    add(&mut board, Some(7), 1, 1);
    let (_, served) = take(&mut board).unwrap();
    add(&mut board, Some(7), 1, 2);
    done(&mut board, served);
    assert!(take(&mut board).is_none(), "its rate limits the key");
    assert!(is_known_after(&mut board, 10));
    assert_eq!(drain(&mut board), [2]);
}

#[test]
fn a_start_counts_from_the_moment_at_which_the_job_begins() {
    let rules = BoardRules {
        rate: Some((1, Duration::from_millis(10))),
        ..BoardRules::plain(9)
    };
    let mut board: Users = Board::new(rules);
    add(&mut board, Some(7), 1, 0);
    add(&mut board, Some(7), 1, 1);
    let (_, served) = take(&mut board).unwrap();
    locked(|| board.begins(served, at(8)));
    let unused = locked(|| board.done(served, at(9)));
    assert!(unused.is_none() && take(&mut board).is_none());
    assert!(is_known_after(&mut board, 18));
    assert_eq!(drain(&mut board), [1]);
}

/// Lets the moments pass until this one, and says whether a key is known then.
fn is_known_after(board: &mut Users, millis: u64) -> bool {
    assert_eq!(board.next_moment(), Some(at(millis)));
    let mut unused = Vec::new();
    locked(|| board.release(at(millis - 1), &mut unused));
    assert!(unused.is_empty());
    locked(|| board.release(at(millis), &mut unused));
    assert_sound(board);
    unused.is_empty()
}

#[test]
fn moments_that_are_due_at_once_pass_in_several_steps() {
    let mut board = board(0);
    for job in 0..100 {
        let due = place(job, 0, at(1));
        board.add(None, &mut None, due, START, User(job));
    }
    board.release(at(1), &mut Vec::new());
    assert_eq!((board.runnable(), board.later()), (64, 36));
    board.release(at(1), &mut Vec::new());
    assert_eq!((board.runnable(), board.later()), (100, 0));
}
