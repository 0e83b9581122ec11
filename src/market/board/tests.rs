//! Which job is next, which keys are known, and random histories beside a naive board.

mod growth;
mod histories;
mod rules;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::{Board, BoardRules, HashedKey, Instant, JobPlace, JobTicket, KeyTurn};

/// When nothing else is said.
const START: Instant = Instant::ZERO;

/// Returns a moment.
fn at(millis: u64) -> Instant {
    START + Duration::from_millis(millis)
}

thread_local! {
    static IS_LOCKED: Cell<bool> = const { Cell::new(false) };
    static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    /// The comparison that panics, counted from here on; 0 for none.
    static PANICS_AT: Cell<usize> = const { Cell::new(0) };
}

/// Runs code as under the lock of a market, where nothing of the user may be dropped.
fn locked<R>(run: impl FnOnce() -> R) -> R {
    struct Unlock;
    impl Drop for Unlock {
        fn drop(&mut self) {
            IS_LOCKED.set(false);
        }
    }
    let _unlock = Unlock;
    IS_LOCKED.set(true);
    run()
}

/// A key or a job. As a key, it counts comparisons, and may panic in one.
#[derive(Debug, PartialOrd, Ord)]
struct User(u64);

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        COMPARISONS.set(COMPARISONS.get() + 1);
        let left = PANICS_AT.get();
        PANICS_AT.set(left.saturating_sub(1));
        if left == 1 {
            resume_unwind(Box::new("eq"));
        }
        self.0 == other.0
    }
}

impl Eq for User {}

impl Drop for User {
    fn drop(&mut self) {
        assert!(!IS_LOCKED.get(), "{self:?} was dropped under the lock");
    }
}

type Users = Board<User, User>;

/// What a test sees of a key that goes back to it.
fn name(key: Option<HashedKey<User>>) -> Option<u64> {
    key.map(|keyed| keyed.into_inner().0)
}

/// Adds a job whose key is its own hash. Returns its ticket, and whether the key came back.
fn add(board: &mut Users, key: Option<u64>, priority: u32, job: u64) -> (JobTicket, bool) {
    let key = key.map(|key| HashedKey::new(key, User(key)));
    add_keyed(board, key, priority, job)
}

/// Does the same for any hash.
fn add_keyed(
    board: &mut Users,
    mut key: Option<HashedKey<User>>,
    priority: u32,
    job: u64,
) -> (JobTicket, bool) {
    let number = board.number();
    let ticket = locked(|| {
        let found = board.find(&key);
        let place = place(number, priority, START);
        board.add(found, &mut key, place, START, User(job))
    });
    assert_sound(board);
    (ticket, key.is_some())
}

fn place(number: u64, priority: u32, due: Instant) -> JobPlace {
    JobPlace {
        number,
        priority,
        due,
    }
}

fn board(capacity_per_key: usize) -> Users {
    Board::new(BoardRules::plain(capacity_per_key))
}

fn is_admitted(board: &Users, key: Option<u64>) -> bool {
    let key = key.map(|key| HashedKey::new(key, User(key)));
    locked(|| board.is_admitted(board.find(&key)))
}

/// Takes a job. Returns what it is, and its ticket.
fn take(board: &mut Users) -> Option<(u64, JobTicket)> {
    let (ticket, job) = locked(|| board.take(START))?;
    assert_sound(board);
    Some((job.0, ticket))
}

fn done(board: &mut Users, served: JobTicket) -> Option<u64> {
    let key = locked(|| board.done(served, START));
    assert_sound(board);
    name(key)
}

fn remove(board: &mut Users, ticket: JobTicket) -> Option<(u64, Option<u64>)> {
    let (job, key) = locked(|| board.remove(ticket, START))?;
    assert_sound(board);
    Some((job.0, name(key)))
}

/// Takes and ends all jobs, one after the other.
fn drain(board: &mut Users) -> Vec<u64> {
    let mut jobs = Vec::new();
    while let Some((job, served)) = take(board) {
        jobs.push(job);
        done(board, served);
    }
    jobs
}

/// Checks what the module says that always holds. Walks a small board only.
fn assert_sound(board: &Users) {
    if board.len() > 1_000 {
        return;
    }
    let (mut behind, mut later, mut ready) = (0, 0, 0);
    for (slot, known) in board.keys.walk() {
        let own: Vec<_> = board
            .behind
            .keys()
            .filter(|it| it.0.slot == Some(slot))
            .collect();
        assert_eq!(known.behind as usize, own.len());
        behind += own.len();
        let not_due = board
            .later
            .keys()
            .filter(|it| it.slot == Some(slot))
            .count();
        assert_eq!(known.later as usize, not_due);
        later += not_due;
        let moment = board.rates.get(&slot).and_then(|rate| rate.moment);
        if let Some(first) = known.turn.first(slot) {
            assert!(board.ready[board.lane(first)].contains_key(&first));
            assert!(own.iter().all(|other| first < other.0));
            ready += 1;
        }
        let is_idle = matches!(known.turn, KeyTurn::Idle);
        // Only a key that its rate limits leaves jobs behind.
        assert!(!is_idle || own.is_empty() || moment.is_some());
        assert!(is_idle || moment.is_none());
    }
    assert_eq!(behind, board.behind.len());
    let is_keyed = |ticket: &&JobTicket| ticket.slot.is_some();
    assert_eq!(later, board.later.keys().filter(is_keyed).count());
    let all = board.ready.iter().flat_map(|ready| ready.keys());
    assert_eq!(ready, all.filter(is_keyed).count());
    let looked = board.rates.values().filter(|rate| rate.moment.is_some());
    assert_eq!(board.moments.len(), board.later.len() + looked.count());
}

#[test]
fn the_oldest_of_the_highest_priority_goes_first() {
    let mut board = board(9);
    let jobs = [
        (None, 1),
        (Some(7), 5),
        (None, u32::MAX),
        (Some(8), 5),
        (None, 0),
        (Some(9), u32::MAX),
    ];
    for (job, (key, priority)) in jobs.into_iter().enumerate() {
        add(&mut board, key, priority, job as u64);
    }
    assert_eq!(drain(&mut board), [2, 5, 1, 3, 0, 4]);
    assert!(take(&mut board).is_none());
}

#[test]
fn two_jobs_of_a_key_are_never_served_at_once() {
    let mut board = board(9);
    add(&mut board, Some(7), 9, 0);
    add(&mut board, Some(7), 9, 1);
    add(&mut board, Some(8), 1, 2);
    let (job, seven) = take(&mut board).unwrap();
    assert_eq!(job, 0);
    add(&mut board, Some(7), 10, 3);
    let (job, eight) = take(&mut board).unwrap();
    assert_eq!((job, board.len(), board.runnable()), (2, 2, 0));
    assert!(take(&mut board).is_none());
    assert_eq!(done(&mut board, seven), None);
    assert_eq!(done(&mut board, eight), Some(8));
    assert_eq!(drain(&mut board), [3, 1]);
}

#[test]
fn jobs_without_a_key_exclude_nothing() {
    let mut board = board(0);
    for job in 0..3 {
        assert!(is_admitted(&board, None));
        add(&mut board, None, 1, job);
    }
    assert_eq!((board.len(), board.runnable()), (3, 3));
    for job in 0..3 {
        let (taken, ticket) = take(&mut board).unwrap();
        assert_eq!((taken, ticket.slot), (job, None));
        assert!(is_admitted(&board, None));
        assert_eq!(done(&mut board, ticket), None);
    }
}

#[test]
fn a_job_of_a_higher_priority_overtakes_the_first_of_its_key() {
    let mut board = board(9);
    let (overtaken, _) = add(&mut board, Some(7), 1, 0);
    add(&mut board, Some(7), 1, 1);
    add(&mut board, None, 2, 2);
    add(&mut board, Some(7), 3, 3);
    assert_eq!((board.len(), board.runnable()), (4, 2));
    assert_eq!(remove(&mut board, overtaken), Some((0, None)));
    assert_eq!(drain(&mut board), [3, 2, 1]);
}

#[test]
fn one_job_of_a_key_is_admitted_until_it_has_ended() {
    let mut board = board(0);
    assert!(is_admitted(&board, Some(7)));
    add(&mut board, Some(7), 1, 0);
    assert!(!is_admitted(&board, Some(7)));
    let (_, served) = take(&mut board).unwrap();
    assert!(!is_admitted(&board, Some(7)));
    assert!(is_admitted(&board, Some(8)));
    done(&mut board, served);
    assert!(is_admitted(&board, Some(7)));
}

#[test]
fn a_queue_of_two_waits_beside_the_job_that_runs() {
    let mut board = board(2);
    for job in 0..3 {
        assert!(is_admitted(&board, Some(7)));
        add(&mut board, Some(7), 1, job);
    }
    assert!(!is_admitted(&board, Some(7)));
    let (_, served) = take(&mut board).unwrap();
    assert!(!is_admitted(&board, Some(7)));
    done(&mut board, served);
    assert!(is_admitted(&board, Some(7)));
    assert!(is_admitted(&board, Some(8)));
}

#[test]
fn a_key_stays_with_the_board_while_a_job_of_it_waits_or_is_served() {
    let mut board = board(9);
    let (first, came_back) = add(&mut board, Some(7), 1, 0);
    assert!(!came_back);
    let (second, came_back) = add(&mut board, Some(7), 1, 1);
    assert!(came_back);
    assert_eq!(remove(&mut board, first), Some((0, None)));
    let (_, served) = take(&mut board).unwrap();
    assert_eq!(remove(&mut board, second), None);
    let (third, came_back) = add(&mut board, Some(7), 1, 2);
    assert!(came_back);
    assert_eq!(remove(&mut board, third), Some((2, None)));
    assert_eq!(done(&mut board, served), Some(7));
    let (fourth, came_back) = add(&mut board, Some(7), 1, 3);
    assert!(!came_back);
    assert_eq!(remove(&mut board, fourth), Some((3, Some(7))));
    assert!(board.keys.walk().is_empty());
}

#[test]
fn the_next_job_of_a_key_is_ready_when_the_first_is_removed() {
    let mut board = board(9);
    let (first, _) = add(&mut board, Some(7), 1, 0);
    add(&mut board, Some(7), 0, 1);
    add(&mut board, Some(7), 1, 2);
    assert_eq!(remove(&mut board, first), Some((0, None)));
    assert_eq!((board.len(), board.runnable()), (2, 1));
    assert_eq!(drain(&mut board), [2, 1]);
}

#[test]
fn a_ticket_of_a_job_that_is_gone_removes_nothing() {
    let mut board = board(9);
    let gone = [(); 3].map(|()| add(&mut board, Some(7), 1, 0).0);
    assert!(remove(&mut board, gone[1]).is_some());
    drain(&mut board);
    let (keyless, _) = add(&mut board, None, 1, 0);
    assert_eq!(remove(&mut board, keyless), Some((0, None)));
    // These take the slot of the key that was forgotten.
    let waiting = [(); 2].map(|()| add(&mut board, Some(8), 1, 1).0);
    assert_eq!(waiting[0].slot, gone[0].slot);
    for ticket in gone.into_iter().chain([keyless]) {
        assert_eq!(remove(&mut board, ticket), None);
    }
    assert_eq!(board.len(), 2);
    assert_eq!(remove(&mut board, waiting[0]), Some((1, None)));
    assert_eq!(remove(&mut board, waiting[1]), Some((1, Some(8))));
}

#[test]
fn keys_with_equal_hashes_are_different() {
    let mut board = board(0);
    for hash in [0, 1, u64::from(u32::MAX), u64::MAX] {
        for number in [7, 8, 9] {
            let key = Some(HashedKey::new(hash, User(number)));
            assert!(board.is_admitted(board.find(&key)));
            assert!(!add_keyed(&mut board, key, 1, number).1);
            let key = Some(HashedKey::new(hash, User(number)));
            assert!(!board.is_admitted(board.find(&key)));
        }
        let taken = [(); 3].map(|()| take(&mut board).unwrap());
        let keys = taken.map(|(job, served)| (job, done(&mut board, served)));
        assert_eq!(keys, [7, 8, 9].map(|number| (number, Some(number))));
    }
}

#[test]
fn a_panic_of_eq_changes_nothing() {
    let mut board = board(9);
    for number in 0..3 {
        let key = Some(HashedKey::new(0, User(number)));
        add_keyed(&mut board, key, 1, number);
    }
    for at in 1..=3 {
        let mut key = Some(HashedKey::new(0, User(2)));
        PANICS_AT.set(at);
        let added = catch_unwind(AssertUnwindSafe(|| {
            locked(|| {
                let found = board.find(&key);
                board.add(found, &mut key, place(9, 9, START), START, User(9))
            })
        }));
        assert!(added.is_err());
        assert_eq!(name(key), Some(2));
        assert_sound(&board);
        assert_eq!((board.len(), board.runnable()), (3, 3));
    }
    assert_eq!(drain(&mut board), [0, 1, 2]);
}

#[test]
fn a_cleared_board_knows_only_the_keys_that_are_served() {
    let mut board = board(9);
    add(&mut board, Some(7), 9, 0);
    let (_, served) = take(&mut board).unwrap();
    for (job, key) in [Some(7), Some(8), Some(8), None].into_iter().enumerate() {
        add(&mut board, key, job as u32, job as u64 + 1);
    }
    let (jobs, keys) = locked(|| board.clear());
    assert_sound(&board);
    let jobs: Vec<_> = jobs.iter().map(|job| job.0).collect();
    assert_eq!(jobs, [4, 3, 1, 2]);
    let keys: Vec<_> = keys.into_iter().map(|key| name(Some(key))).collect();
    assert_eq!(keys, [Some(8)]);
    assert_eq!((board.len(), board.runnable()), (0, 0));
    let (_, came_back) = add(&mut board, Some(7), 1, 5);
    assert!(came_back && take(&mut board).is_none());
    assert_eq!(done(&mut board, served), None);
    assert_eq!(drain(&mut board), [5]);
}

#[test]
fn ten_thousand_jobs_of_a_key_cost_one_comparison_each() {
    let mut board = board(usize::MAX);
    COMPARISONS.set(0);
    let tickets: Vec<_> = (0..10_000)
        .map(|job| add(&mut board, Some(7), 1, job).0)
        .collect();
    assert_eq!(COMPARISONS.get(), 9_999);
    assert_eq!((board.len(), board.runnable()), (10_000, 1));
    for ticket in tickets.into_iter().step_by(2) {
        assert!(remove(&mut board, ticket).is_some());
    }
    let odd: Vec<_> = (1..10_000).step_by(2).collect();
    assert_eq!(drain(&mut board), odd);
    assert_eq!(COMPARISONS.get(), 9_999);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn a_key_is_known_by_32_bytes_and_each_index_takes_24() {
    use std::mem::size_of;
    assert_eq!(size_of::<super::KnownKey>(), 32);
    assert_eq!(
        (size_of::<JobTicket>(), size_of::<super::Behind>()),
        (24, 24)
    );
}
