//! The list of asks, and the texts that the walk over it produces.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::{AskList, Edge, Listing, deadlocked, end};
use crate::info::{TaskInfo, TypeNames};
use crate::runtime::deadlock::Who;

/// The type of actors without a name.
struct Unnamed;

/// Returns the actor with this number. All have names except those from 100 to 199.
fn info(id: u64) -> TaskInfo {
    let name = match id {
        0..26 => Some(char::from(b'a' + id as u8).to_string()),
        100..200 => None,
        _ => Some(format!("n{id}")),
    };
    let name = name.map(|name| Arc::new(name.into()));
    TaskInfo::of_actor(id, name, TypeNames::of::<Unnamed, Unnamed>, 0)
}

const TASK: u64 = u64::MAX;

fn listed(asks: &AskList, edge: (u64, u64)) -> Listing {
    listed_with(asks, edge, false)
}

fn listed_with(asks: &AskList, (asker, asked): (u64, u64), is_timed: bool) -> Listing {
    let from = match asker {
        TASK => Who::Other("a task"),
        actor => Who::Task(info(actor)),
    };
    let to = info(asked);
    asks.list(Edge::of_ask(from, to), None, is_timed)
}

/// Returns the text with each `"a" #0` as `a`.
fn names(text: &str) -> String {
    let mut parts = text.split('"');
    let mut names = parts.next().unwrap().to_owned();
    while let (Some(name), Some(after)) = (parts.next(), parts.next()) {
        let numbered = after.strip_prefix(" #").expect("a number follows a name");
        names.push_str(name);
        names.push_str(numbered.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    names
}

/// Ends these asks, and returns the texts of their deadlocks.
fn texts(edges: &[(u64, u64)]) -> Vec<String> {
    let asks = AskList::alone();
    let listings: Vec<Listing> = edges.iter().map(|&edge| listed(&asks, edge)).collect();
    assert_eq!(end(&asks.waiting(), &[]), edges.len());
    let text = |listing: &Listing| names(listing.swap_waker(&mut None).unwrap().as_str());
    listings.iter().map(text).collect()
}

fn error_of(edges: &[(u64, u64)]) -> String {
    let asks = AskList::alone();
    let listings: Vec<Listing> = edges.iter().map(|&edge| listed(&asks, edge)).collect();
    end(&asks.waiting(), &[]);
    let deadlock = listings[0].swap_waker(&mut None).unwrap();
    names(&crate::AskError::Deadlock(deadlock).to_string())
}

#[test]
fn a_cycle_of_two_is_named_from_the_side_of_each_asker() {
    assert_eq!(texts(&[(0, 1), (1, 0)]), ["a → b → a", "b → a → b"]);
}

#[test]
fn cycles_of_three_actors_and_of_one_are_named() {
    let ring = texts(&[(0, 1), (1, 2), (2, 0)]);
    assert_eq!(ring, ["a → b → c → a", "b → c → a → b", "c → a → b → c"]);
    assert_eq!(texts(&[(4, 4)]), ["e → e"]);
}

#[test]
fn a_chain_is_named_from_the_asker_to_the_last_actor() {
    let chain = texts(&[(TASK, 0), (0, 1), (1, 102)]);
    let whole = "a task → a → b → Unnamed #102";
    assert_eq!(chain, [whole, "a → b → Unnamed #102", "b → Unnamed #102"]);
}

#[test]
fn actors_of_one_name_are_told_apart_by_their_numbers() {
    let of = |id| {
        let name = Some(Arc::new("a".into()));
        TaskInfo::of_actor(id, name, TypeNames::of::<Unnamed, Unnamed>, 0)
    };
    let asks = AskList::alone();
    let list = |from, to| asks.list(Edge::of_ask(Who::Task(of(from)), of(to)), None, false);
    let listings = [list(3, 4), list(4, 3)];
    end(&asks.waiting(), &[]);
    let found = listings[0].swap_waker(&mut None).unwrap();
    assert_eq!(found.as_str(), r#""a" #3 → "a" #4 → "a" #3"#);
}

#[test]
fn the_error_text_distinguishes_a_cycle_from_a_chain() {
    assert_eq!(
        error_of(&[(0, 1), (1, 0)]),
        "the actors wait for each other: a → b → a"
    );
    assert_eq!(
        error_of(&[(TASK, 1), (1, 0)]),
        "no answer can come: a task → b → a"
    );
}

#[test]
fn an_ask_that_leads_to_a_cycle_reports_the_cycle() {
    let edges = [(TASK, 0), (0, 1), (1, 2), (2, 3), (3, 2)];
    let cycle = "c → d → c";
    assert_eq!(texts(&edges), [cycle, cycle, cycle, cycle, "d → c → d"]);
}

#[test]
fn the_walk_follows_the_ask_that_closes_a_cycle() {
    let edges = [(TASK, 0), (0, 1), (0, 2), (2, 0), (1, 3)];
    let expected = ["a → c → a", "a → b → d", "a → c → a", "c → a → c", "b → d"];
    assert_eq!(texts(&edges), expected);
}

#[test]
fn each_ask_reports_its_own_path_back_to_the_asker() {
    let edges = [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 2)];
    let texts = texts(&edges);
    assert_eq!(texts[..3], ["a → b → a", "a → c → a", "a → d → c → a"]);
    // The actors that ask `a` wait for the actor that it asked first.
    assert_eq!(texts[3..], ["b → a → b", "a → b → a", "a → b → a"]);
}

#[test]
fn an_actor_that_is_asked_twice_is_named_once() {
    assert_eq!(texts(&[(0, 1), (0, 1)]), ["a → b", "a → b"]);
    let cycle = "a → b → a";
    assert_eq!(texts(&[(0, 1), (0, 1), (1, 0)])[..2], [cycle, cycle]);
}

#[test]
fn a_long_chain_is_shortened_before_its_last_name() {
    let ids: Vec<u64> = (1000..10_999).collect();
    let mut edges = vec![(TASK, ids[0])];
    edges.extend(ids.windows(2).map(|pair| (pair[0], pair[1])));
    let texts = texts(&edges);
    let between: String = (1000..1014).map(|id| format!("n{id} → ")).collect();
    assert_eq!(
        texts[0],
        format!("a task → {between}… (9984 more) → n10998")
    );
    let short = &texts[edges.len() - 15];
    assert_eq!(short.split(" → ").count(), 16);
    assert!(!short.contains("more"), "{short}");
    assert!(texts[edges.len() - 16].contains(" → … (1 more) → n10998"));
}

#[test]
fn each_text_of_a_long_cycle_begins_with_its_asker() {
    let ids: Vec<u64> = (1000..11_000).collect();
    let ring = |at: usize| (ids[at], ids[(at + 1) % ids.len()]);
    let edges: Vec<_> = (0..ids.len()).map(ring).collect();
    for (text, id) in texts(&edges).iter().zip(&ids) {
        assert!(text.starts_with(&format!("n{id} → ")), "{text}");
        let end = format!(" → … ({} more) → n{id}", ids.len() + 1 - 16);
        assert!(text.ends_with(&end), "{text}");
    }
}

#[test]
fn ten_thousand_mutual_asks_are_ten_thousand_cycles() {
    let there = (1000..11_000).map(|id| (0, id));
    let back = (1000..11_000).map(|id| (id, 0));
    let edges: Vec<_> = there.chain(back).collect();
    let texts = texts(&edges);
    assert_eq!(texts[9_999], "a → n10999 → a");
    assert_eq!(texts[10_000], "n1000 → a → n1000");
    assert_eq!(texts[19_999], "a → n1000 → a");
}

/// Returns which of these asks are deadlocked when only timeouts are left. The third field says
/// whether an ask has a timeout.
fn in_deadlock(asks_of: &[(u64, u64, bool)]) -> Option<Vec<usize>> {
    let asks = AskList::alone();
    let list = |&(asker, asked, is_timed)| listed_with(&asks, (asker, asked), is_timed);
    let listings: Vec<Listing> = asks_of.iter().map(list).collect();
    end(&deadlocked(asks.waiting(), &[])?, &[]);
    let is_ended = |at: &usize| !listings[*at].is_waiting();
    Some((0..listings.len()).filter(is_ended).collect())
}

#[test]
fn with_only_timeouts_left_asks_that_lead_to_a_cycle_are_deadlocked() {
    assert_eq!(in_deadlock(&[(0, 0, true)]), Some(vec![0]));
    assert_eq!(in_deadlock(&[(0, 1, true), (1, 0, true)]), Some(vec![0, 1]));
    let led_to = [(TASK, 0, true), (0, 1, false), (1, 0, false)];
    assert_eq!(in_deadlock(&led_to), Some(vec![0, 1, 2]));
    let beside = [(2, 3, false), (0, 1, true), (1, 0, false)];
    assert_eq!(in_deadlock(&beside), Some(vec![1, 2]));
}

#[test]
fn a_timeout_of_an_ask_outside_a_cycle_delays_the_detection() {
    assert_eq!(in_deadlock(&[(0, 1, true)]), None);
    assert_eq!(in_deadlock(&[(0, 1, false)]), None);
    assert_eq!(in_deadlock(&[]), None);
    let beside = [(0, 1, false), (1, 0, false), (2, 3, true)];
    assert_eq!(in_deadlock(&beside), None);
}

#[test]
fn an_unlisted_ask_is_neither_ended_nor_part_of_a_path() {
    let asks = AskList::alone();
    let one = listed(&asks, (0, 1));
    let two = listed(&asks, (1, 0));
    drop(two);
    let three = listed(&asks, (2, 0));
    let _ = three.finish();
    assert!(!three.is_waiting());
    assert_eq!(end(&asks.waiting(), &[]), 1);
    assert!(three.swap_waker(&mut None).is_none());
    let found = one.swap_waker(&mut None).unwrap();
    assert_eq!(names(found.as_str()), "a → b");
    assert_eq!(end(&asks.waiting(), &[]), 0, "it is ended once");
    drop((one, three));
    assert!(asks.list.lock().is_empty());
}

/// A waker that counts, when it is called, how many asks have ended.
struct Looks {
    listings: [Listing; 2],
    ended: AtomicUsize,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let ended = |listing: &&Listing| !listing.is_waiting();
        let ended = self.listings.iter().filter(ended).count();
        self.ended.fetch_add(ended, Ordering::Relaxed);
    }
}

#[test]
fn all_asks_are_ended_before_the_first_asker_is_woken() {
    let asks = AskList::alone();
    let looks = Arc::new(Looks {
        listings: [listed(&asks, (0, 1)), listed(&asks, (1, 0))],
        ended: AtomicUsize::new(0),
    });
    for listing in &looks.listings {
        assert!(
            listing
                .swap_waker(&mut Some(Waker::from(looks.clone()).into()))
                .is_none()
        );
    }
    assert_eq!(end(&asks.waiting(), &[]), 2);
    assert_eq!(looks.ended.load(Ordering::Relaxed), 4);
}

#[test]
fn a_listing_outlives_its_list() {
    let asks = AskList::alone();
    let one = listed(&asks, (0, 1));
    drop(asks);
    assert!(one.is_waiting());
}
