use std::time::Instant;

use greenroom::{Context, Handle, Runtime};

use super::*;
use crate::view::actors::look::{ActorsLook, SharedLook};

/// A runtime with idle actors, which have handled as many messages as is said.
struct Idle {
    runtime: Runtime,
    actors: Vec<Handle<u32, ()>>,
}

impl Idle {
    fn new(actors: &[(&str, u32)]) -> Idle {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let actors = actors.iter().map(|(name, messages)| {
            let idle = |mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} };
            let actor = greenroom::actor(idle).name(*name).on(&runtime).spawn();
            for message in 0..*messages {
                actor.tell(message).unwrap();
            }
            actor
        });
        let actors = actors.collect();
        runtime.run_until_quiescent();
        Idle { runtime, actors }
    }

    fn look(&self) -> std::sync::Arc<ActorsLook> {
        SharedLook::default().get(&self.runtime)
    }
}

/// Returns the names, and how many actors each row has.
fn names(look: &ActorsLook, query: &str, most: usize) -> Vec<(String, usize)> {
    let list = rows_of(look.actors(), &PageQuery::of(query), most);
    let rows = list.rows.iter();
    rows.map(|row| (row.name().into_owned(), row.actors))
        .collect()
}

fn one_each(expected: &[&str]) -> Vec<(String, usize)> {
    expected
        .iter()
        .map(|name| ((*name).to_owned(), 1))
        .collect()
}

#[test]
fn rows_are_sorted_by_a_column_and_equal_ones_by_their_age() {
    let idle = Idle::new(&[("b", 2), ("c", 9), ("a", 5), ("d", 5)]);
    let look = idle.look();
    for (query, expected) in [
        ("sort=messages", ["c", "a", "d", "b"]),
        ("sort=messages&order=asc", ["b", "a", "d", "c"]),
        ("sort=name", ["a", "b", "c", "d"]),
        ("sort=name&order=desc", ["d", "c", "b", "a"]),
        ("sort=id", ["b", "c", "a", "d"]),
        // Those that are equal, as all are in this column: those with the most messages.
        ("sort=restarts", ["c", "a", "d", "b"]),
        ("sort=restarts&order=asc", ["c", "a", "d", "b"]),
    ] {
        assert_eq!(names(&look, query, 10), one_each(&expected), "{query}");
    }
}

#[test]
fn the_rows_that_are_shown_are_the_first_ones_of_all() {
    let idle = Idle::new(&[("b", 2), ("c", 9), ("a", 5), ("d", 5)]);
    let look = idle.look();
    assert_eq!(names(&look, "sort=messages", 2), one_each(&["c", "a"]));
    assert_eq!(names(&look, "sort=name", 3), one_each(&["a", "b", "c"]));
    assert_eq!(names(&look, "sort=name", 4).len(), 4);
    let list = rows_of(look.actors(), &PageQuery::of("filter=A"), 0);
    assert_eq!((list.rows.len(), list.actors, list.all), (0, 1, 1));
}

#[test]
fn a_filter_finds_a_part_of_a_name_in_letters_of_any_size() {
    let idle = Idle::new(&[("Cart of Ann", 1), ("cart of Bob", 1), ("till", 1)]);
    let look = idle.look();
    let carts = one_each(&["Cart of Ann", "cart of Bob"]);
    assert_eq!(names(&look, "sort=id&filter=CART", 10), carts);
    assert_eq!(
        names(&look, "sort=id&filter=of+B", 10),
        one_each(&["cart of Bob"])
    );
    assert!(names(&look, "filter=%3Cscript%3E", 10).is_empty());
}

#[test]
fn a_group_has_the_sums_and_the_highest_of_its_actors() {
    let idle = Idle::new(&[("cart", 2), ("till", 1), ("cart", 7), ("cart", 0)]);
    let look = idle.look();
    let groups = [("cart".to_owned(), 3), ("till".to_owned(), 1)];
    assert_eq!(names(&look, "group=1&sort=id", 10), groups);
    let fewest_first = names(&look, "group=1&sort=id&order=asc", 10);
    assert_eq!(fewest_first[1], groups[0]);
    let list = rows_of(look.actors(), &PageQuery::of("group=1&filter=cart"), 10);
    let cart = &list.rows[0];
    assert_eq!((cart.messages, cart.turns > 0, cart.ready), (9, true, 0));
    assert_eq!((cart.mailbox, cart.restarts), (0, 0));
    // No mailbox has had more than the messages of its actor.
    assert!((1..=7).contains(&cart.highest), "{cart:?}");
    // The first look knows no rates.
    assert_eq!((cart.rate, cart.busy), (None, None));
    assert_eq!((list.actors, list.all), (3, 1));
}

#[test]
fn rates_are_those_since_the_look_before() {
    let idle = Idle::new(&[("cart", 4), ("cart", 0)]);
    let (shared, begun) = (SharedLook::default(), Instant::now());
    let look_at = |seconds| {
        let now = begun + Duration::from_secs(seconds);
        shared.get_at(now, || idle.runtime.stats())
    };
    look_at(0);
    for actor in &idle.actors {
        for message in 0..10 {
            actor.tell(message).unwrap();
        }
    }
    idle.runtime.run_until_quiescent();
    let look = look_at(5);
    let rates: Vec<_> = look.actors().map(|seen| seen.rate()).collect();
    assert_eq!(rates, [Some(2.0), Some(2.0)]);
    let list = rows_of(look.actors(), &PageQuery::of("group=1&sort=rate"), 10);
    assert_eq!(list.rows[0].rate, Some(4.0));
    let shares = look.actors().filter_map(|seen| seen.busy());
    assert!(shares.into_iter().all(|share| (0.0..=1.0).contains(&share)));
    // Nothing has happened since.
    let list = look_at(7);
    assert!(
        list.actors()
            .all(|seen| seen.rate() == Some(0.0) && seen.busy() == Some(0.0))
    );
}

#[test]
fn a_wait_is_the_mailbox_divided_by_the_messages_a_second() {
    let idle = Idle::new(&[("calm", 0), ("held", 0), ("late", 0), ("fresh", 0)]);
    let (shared, begun) = (SharedLook::default(), Instant::now());
    let of = |look: &ActorsLook, query: &str| {
        let rows = rows_of(look.actors(), &PageQuery::of(query), 10).rows;
        let rows = rows.iter().map(|row| (row.name().into_owned(), row.wait()));
        rows.collect::<Vec<_>>()
    };
    let filled = |fresh: usize| {
        let mut stats = idle.runtime.stats();
        for actor in &mut stats.actors {
            actor.mailbox = match &*actor.task.called() {
                "held" => 7,
                "late" => 20,
                "fresh" => fresh,
                _ => 0,
            };
        }
        stats
    };
    // The first look knows no rates.
    let first = shared.get_at(begun, || filled(0));
    assert!(of(&first, "").iter().all(|(_, wait)| wait.is_none()));
    for actor in [&idle.actors[0], &idle.actors[2]] {
        for message in 0..10 {
            actor.tell(message).unwrap();
        }
    }
    idle.runtime.run_until_quiescent();
    let look = shared.get_at(begun + Duration::from_secs(5), || filled(1));
    let [calm, fresh, held, late] = [
        ("calm".to_owned(), None),
        // Its message has just come.
        ("fresh".to_owned(), None),
        ("held".to_owned(), Some(f64::INFINITY)),
        // Two messages a second are handled.
        ("late".to_owned(), Some(10.0)),
    ];
    assert_eq!(of(&look, "sort=wait")[..2], [held, late]);
    assert_eq!(of(&look, "sort=name")[..2], [calm, fresh]);
}

#[test]
fn a_tree_has_each_row_once_also_if_parents_form_a_cycle() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let idle = Idle::new(&names.map(|name| (name, 0)));
    let mut stats = idle.runtime.stats();
    let id = |name: &str| {
        let at = names.iter().position(|other| *other == name).unwrap();
        idle.actors[at].id()
    };
    for (child, parent) in [("a", "d"), ("b", "d"), ("c", "f"), ("f", "e"), ("e", "f")] {
        let mut actors = stats.actors.iter_mut();
        let child = actors.find(|actor| actor.task.id() == id(child)).unwrap();
        child.parent = Some(id(parent));
    }
    let look = SharedLook::default().get_at(Instant::now(), || stats);
    let tree = |query: &str, most: usize| {
        let list = rows_of(look.actors(), &PageQuery::of(query), most);
        let rows = list.rows.iter();
        let rows = rows.map(|row| format!("{}{}", row.name(), row.depth));
        rows.collect::<Vec<_>>()
    };
    let all = tree("tree&sort=name", 9);
    assert_eq!(all, ["d0", "a1", "b1", "f0", "c1", "e1"]);
    assert_eq!(tree("tree&sort=name", 3), all[..3]);
    let turned = tree("tree&sort=name&order=desc", 9);
    assert_eq!(turned, ["d0", "b1", "a1", "f0", "e1", "c1"]);
}
