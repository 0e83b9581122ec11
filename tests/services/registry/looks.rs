//! What those who look at an actor see of its names, groups and key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::registry::{Group, Keyed, Name};
use greenroom::{ActorStatus, Address, Changes, Watch, actor};

use super::idle;
use crate::support::{Home, in_every_home, keep_bombs_quiet};

in_every_home!(
    a_status_has_the_names_and_groups_of_the_actor,
    a_watch_sees_a_name_taken_and_given_up,
    a_watch_sees_an_actor_join_and_leave_a_group,
    a_name_that_goes_to_another_actor_is_seen_at_both,
    a_watch_after_another_one_begins_with_the_names_of_now,
    a_status_has_the_text_of_a_key,
    a_watch_makes_the_text_of_a_key_once,
    a_key_whose_text_panics_is_a_question_mark,
    a_set_without_a_label_shows_no_keys,
);

const A: Name<u32> = Name::new("a");
const B: Name<u32> = Name::new("b");
const X: Group<u32> = Group::new("x");
const Y: Group<u32> = Group::new("y");

/// What is seen of an actor: its names, its groups and its key.
type Seen = (Vec<Arc<str>>, Vec<Arc<str>>, Option<Arc<str>>);

fn seen(status: &ActorStatus) -> Seen {
    let status = status.clone();
    (status.names, status.groups, status.key)
}

fn is(names: &[&str], groups: &[&str], key: Option<&str>) -> Seen {
    let texts = |all: &[&str]| all.iter().map(|&text| text.into()).collect();
    (texts(names), texts(groups), key.map(Into::into))
}

fn looked_at(home: &Home, id: u64) -> Seen {
    let stats = home.runtime.stats();
    let reports = home.runtime.report();
    let of_report = reports.iter().filter_map(|report| report.actor.as_ref());
    let [one, other] =
        [stats.actors.iter().collect(), of_report.collect()].map(|actors: Vec<&ActorStatus>| {
            let actor = actors.into_iter().find(|actor| actor.task.id() == id);
            seen(actor.expect("it has not ended"))
        });
    assert_eq!(one, other);
    one
}

/// Follows a watch until an item has the actor as it is meant.
fn follow(home: &Home, watch: &mut Watch, id: u64, meant: Seen) {
    let has_it = |item: &Changes| {
        let actors = item.changed.iter().filter_map(|it| it.actor.as_ref());
        actors
            .into_iter()
            .any(|it| it.task.id() == id && seen(it) == meant)
    };
    while !has_it(&home.block_on(watch.next()).unwrap()) {}
}

fn watch(home: &Home) -> Watch {
    home.runtime.watch(Duration::from_millis(1))
}

fn a_status_has_the_names_and_groups_of_the_actor(home: &Home) {
    let [one, other] = [0; 2].map(|_| home.spawn(actor(idle::<u32>)));
    assert_eq!(looked_at(home, one.id()), is(&[], &[], None));
    home.block_on(async {
        B.register(&one).unwrap();
        A.register(&one).unwrap();
        Y.join(&one).unwrap();
        X.join(&one).unwrap();
        X.join(&other).unwrap();
    });
    assert_eq!(
        looked_at(home, one.id()),
        is(&["a", "b"], &["x", "y"], None)
    );
    assert_eq!(looked_at(home, other.id()), is(&[], &["x"], None));
}

fn a_watch_sees_a_name_taken_and_given_up(home: &Home) {
    let [named, other] = [0; 2].map(|_| home.spawn(actor(idle::<u32>)));
    home.block_on(async { B.register(&other).unwrap() });
    let mut watch = watch(home);
    follow(home, &mut watch, named.id(), is(&[], &[], None));
    home.block_on(async { A.register(&named).unwrap() });
    follow(home, &mut watch, named.id(), is(&["a"], &[], None));
    home.block_on(async { assert!(A.unregister()) });
    follow(home, &mut watch, named.id(), is(&[], &[], None));
}

fn a_watch_sees_an_actor_join_and_leave_a_group(home: &Home) {
    let member = home.spawn(actor(idle::<u32>));
    let mut watch = watch(home);
    home.block_on(async { X.join(&member).unwrap() });
    follow(home, &mut watch, member.id(), is(&[], &["x"], None));
    home.block_on(async { X.leave(&member) });
    follow(home, &mut watch, member.id(), is(&[], &[], None));
}

fn a_name_that_goes_to_another_actor_is_seen_at_both(home: &Home) {
    let [one, other] = [0; 2].map(|_| home.spawn(actor(idle::<u32>)));
    home.block_on(async { A.register(&one).unwrap() });
    let mut watch = watch(home);
    follow(home, &mut watch, one.id(), is(&["a"], &[], None));
    let register = |at: &Address<u32>| {
        A.unregister();
        A.register(at).unwrap();
    };
    home.block_on(async { register(&other) });
    follow(home, &mut watch, other.id(), is(&["a"], &[], None));
    assert_eq!(looked_at(home, one.id()), is(&[], &[], None));
    home.block_on(async { register(&one) });
    follow(home, &mut watch, other.id(), is(&[], &[], None));
}

fn a_watch_after_another_one_begins_with_the_names_of_now(home: &Home) {
    let named = home.spawn(actor(idle::<u32>));
    home.block_on(async { A.register(&named).unwrap() });
    let mut first = watch(home);
    follow(home, &mut first, named.id(), is(&["a"], &[], None));
    drop(first);
    home.block_on(async { X.join(&named).unwrap() });
    let mut second = watch(home);
    follow(home, &mut second, named.id(), is(&["a"], &["x"], None));
}

/// Returns a set whose keys have texts, and how often one was made.
fn labelled(home: &Home) -> (Keyed<u32, u32>, Arc<AtomicUsize>) {
    let counted = Arc::new(AtomicUsize::new(0));
    let made = counted.clone();
    let set = Keyed::builder(|_| actor(idle::<u32>)).on(&home.runtime);
    let set = set.label(move |key| {
        made.fetch_add(1, Ordering::SeqCst);
        assert!(*key != 0, "a key without a text");
        format!("number {key}")
    });
    (set.build().unwrap(), counted)
}

fn id_of(home: &Home, set: &Keyed<u32, u32>, key: u32) -> u64 {
    home.block_on(set.get_or_spawn(&key)).unwrap().id()
}

fn a_status_has_the_text_of_a_key(home: &Home) {
    let (set, _) = labelled(home);
    let [one, two] = [1, 2].map(|key| id_of(home, &set, key));
    assert_eq!(looked_at(home, one), is(&[], &[], Some("number 1")));
    assert_eq!(looked_at(home, two), is(&[], &[], Some("number 2")));
}

fn a_watch_makes_the_text_of_a_key_once(home: &Home) {
    let (set, made) = labelled(home);
    let one = id_of(home, &set, 1);
    let mut watch = watch(home);
    follow(home, &mut watch, one, is(&[], &[], Some("number 1")));
    // An actor that comes later is seen with its key, also if it was seen without.
    let two = id_of(home, &set, 2);
    follow(home, &mut watch, two, is(&[], &[], Some("number 2")));
    for _ in 0..3 {
        home.block_on(watch.next()).unwrap();
    }
    assert_eq!(made.load(Ordering::SeqCst), 2);
    // The next actor of a key is another one.
    set.remove(&1);
    let next = id_of(home, &set, 1);
    follow(home, &mut watch, next, is(&[], &[], Some("number 1")));
    assert_eq!(made.load(Ordering::SeqCst), 3);
}

fn a_key_whose_text_panics_is_a_question_mark(home: &Home) {
    keep_bombs_quiet();
    let (set, _) = labelled(home);
    let [zero, one] = [0, 1].map(|key| id_of(home, &set, key));
    assert_eq!(looked_at(home, zero), is(&[], &[], Some("?")));
    assert_eq!(looked_at(home, one), is(&[], &[], Some("number 1")));
}

fn a_set_without_a_label_shows_no_keys(home: &Home) {
    let set = Keyed::builder(|_| actor(idle::<u32>)).on(&home.runtime);
    let set = set.build().unwrap();
    let one = id_of(home, &set, 1);
    assert_eq!(looked_at(home, one), is(&[], &[], None));
}
