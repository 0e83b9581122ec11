//! What a status knows of an actor besides its counts: its owner, its thread, its state, its faults.

use std::future::pending;
use std::time::Duration;

use greenroom::looper::Controller;
use greenroom::machine::{Machine, Next};
use greenroom::registry::Keyed;
use greenroom::supervise::{Restarts, Supervisor};
use greenroom::time::sleep;
use greenroom::{ActorStatus, Changes, Context, Handle, Measure, Reply, Runtime, Watch, actor};

use crate::support::{Gate, Home, WATCH, in_every_home, keep_bombs_quiet, until, within};

in_every_home!(
    the_parent_of_an_actor_is_the_one_that_has_adopted_it,
    the_parent_of_a_child_is_its_supervisor,
    the_parent_of_any_other_actor_is_the_one_that_has_spawned_it,
    a_watch_tells_of_a_new_parent_and_of_a_new_state,
    a_status_has_the_capacity,
    a_status_has_the_state_of_a_machine,
    a_machine_that_begins_anew_has_no_state_of_before,
    a_status_has_the_beginning_of_the_last_panic,
    faults_are_listed_in_their_order,
    a_watch_has_each_fault_once,
    timers_that_wait_are_counted,
);

async fn sink(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

/// Panics with a text of this length.
async fn bomb(mut cx: Context<usize>) {
    while let Some(length) = cx.recv().await {
        assert!(length == 0, "bomb {}", "é".repeat(length));
    }
}

fn status_of(home: &Home, id: u64) -> ActorStatus {
    let actors = home.runtime.stats().actors.into_iter();
    let mut found = actors.filter(|actor| actor.task.id() == id);
    found.next().expect("it has not ended")
}

/// Waits until the actor is dormant, and returns its state.
fn settled(home: &Home, id: u64) -> ActorStatus {
    home.block_on(async {
        while !status_of(home, id).is_dormant {
            greenroom::yield_now().await;
        }
    });
    status_of(home, id)
}

/// Gets a child, which it adopts, or another message.
enum ParentWord {
    Adopt(Handle<u32, ()>, Reply<()>),
    Ended,
}

async fn parent(mut cx: Context<ParentWord>) {
    while let Some(word) = cx.recv().await {
        if let ParentWord::Adopt(child, reply) = word {
            cx.adopt(child, |_| ParentWord::Ended);
            reply.send(());
        }
    }
}

fn the_parent_of_an_actor_is_the_one_that_has_adopted_it(home: &Home) {
    let (owner, child) = (home.spawn(actor(parent)), home.spawn(actor(sink)));
    let id = child.id();
    assert_eq!(status_of(home, id).parent, None);
    home.block_on(owner.ask(|reply| ParentWord::Adopt(child, reply)))
        .unwrap();
    assert_eq!(status_of(home, id).parent, Some(owner.id()));
    assert_eq!(status_of(home, owner.id()).parent, None);
}

fn the_parent_of_a_child_is_its_supervisor(home: &Home) {
    home.block_on(async {
        let upper = Supervisor::builder().name("upper").spawn().unwrap();
        let lower = upper.supervisor(Supervisor::builder().name("lower"));
        let lower = lower.unwrap();
        let child = lower.start(actor(sink)).unwrap();
        let parent_of = |id| status_of(home, id).parent.map(|id| status_of(home, id));
        let parent = parent_of(child.id()).unwrap();
        assert_eq!(parent.task.name(), Some("lower"));
        let above = parent_of(parent.task.id()).unwrap();
        assert_eq!(above.task.name(), Some("upper"));
        upper.stop();
        upper.join().await.unwrap();
    });
}

fn the_parent_of_any_other_actor_is_the_one_that_has_spawned_it(home: &Home) {
    async fn spawner(mut cx: Context<Reply<Handle<u32, ()>>>) {
        while let Some(reply) = cx.recv().await {
            reply.send(actor(sink).spawn());
        }
    }
    let spawner = home.spawn(actor(spawner));
    let child = home.block_on(spawner.ask(|reply| reply)).unwrap();
    let status = status_of(home, child.id());
    let is_known = status.spawned_at.is_some();
    assert_eq!(status.parent, is_known.then(|| spawner.id()));
}

#[test]
fn the_place_of_an_actor_that_greenroom_spawns_is_in_the_program() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).long_turns(WATCH).build();
        let runtime = runtime.unwrap();
        let places = runtime.block_on(async {
            let first = line!() + 1;
            let tree = Supervisor::builder().spawn().unwrap();
            let _child = tree.start(actor(sink)).unwrap();
            let _inner = tree.supervisor(Supervisor::builder()).unwrap();
            let keyed = Keyed::builder(|_: u8| actor(sink)).build().unwrap();
            let _of_key = keyed.get_or_spawn(&1).await.unwrap();
            let _looper = Controller::builder().build().unwrap();
            let places = runtime.stats().actors.into_iter().map(|it| {
                let place = it.spawned_at.unwrap();
                assert_eq!(place.file(), file!());
                place.line() - first
            });
            let mut places: Vec<_> = places.collect();
            places.sort_unstable();
            places
        });
        assert_eq!(places, [0, 1, 2, 3, 5]);
    });
}

/// Follows a watch until an item has what is wanted of an actor.
fn follow(home: &Home, watch: &mut Watch, id: u64, is_so: impl Fn(&ActorStatus) -> bool) {
    let has_it = |item: &Changes| {
        let actors = item.changed.iter().filter_map(|it| it.actor.as_ref());
        actors.into_iter().any(|it| it.task.id() == id && is_so(it))
    };
    while !has_it(&home.block_on(watch.next()).unwrap()) {}
}

fn a_watch_tells_of_a_new_parent_and_of_a_new_state(home: &Home) {
    let (owner, child) = (home.spawn(actor(parent)), home.spawn(actor(sink)));
    let door = home.spawn(Door.into_builder(false));
    let (id, mut watch) = (child.id(), home.runtime.watch(Duration::from_millis(1)));
    follow(home, &mut watch, id, |it| it.parent.is_none());
    home.block_on(owner.ask(|reply| ParentWord::Adopt(child, reply)))
        .unwrap();
    follow(home, &mut watch, id, |it| it.parent == Some(owner.id()));
    door.tell(Some(true)).unwrap();
    follow(home, &mut watch, door.id(), |it| it.state == Some("OPEN"));
}

fn a_status_has_the_capacity(home: &Home) {
    let bounded = home.spawn(actor(sink).capacity(7));
    let (unbounded, urgent) = (home.spawn(actor(sink)), home.spawn(actor(sink).urgent(3)));
    assert_eq!(status_of(home, bounded.id()).capacity, Some(7));
    assert_eq!(status_of(home, unbounded.id()).capacity, None);
    assert_eq!(status_of(home, urgent.id()).capacity, None);
}

/// Is open or not, as it is told. It panics if it is told nothing.
#[derive(Clone)]
struct Door;

impl Machine for Door {
    type State = bool;
    type Message = Option<bool>;
    type Value = ();

    async fn on(
        &mut self,
        _state: &bool,
        opens: Option<bool>,
        _cx: &mut Context<Option<bool>>,
    ) -> Next<Self> {
        Next::To(opens.expect("bomb"))
    }

    fn state_name(&is_open: &bool) -> &'static str {
        if is_open { "OPEN" } else { "" }
    }
}

fn a_status_has_the_state_of_a_machine(home: &Home) {
    let door = home.spawn(Door.into_builder(true));
    assert_eq!(settled(home, door.id()).state, Some("OPEN"));
    for (opens, state) in [(false, None), (true, Some("OPEN")), (false, None)] {
        door.tell(Some(opens)).unwrap();
        assert_eq!(settled(home, door.id()).state, state);
    }
}

fn a_machine_that_begins_anew_has_no_state_of_before(home: &Home) {
    keep_bombs_quiet();
    let door = Door.into_builder(false).restart(Restarts::on_fault());
    let door = home.spawn(door);
    door.tell(Some(true)).unwrap();
    assert_eq!(settled(home, door.id()).state, Some("OPEN"));
    door.tell(None).unwrap();
    let status = settled(home, door.id());
    assert_eq!((status.state, status.incarnation), (None, 1));
}

#[test]
fn a_runtime_that_counts_nothing_keeps_no_state() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).counting(false).build();
        let runtime = runtime.unwrap();
        let door = Door.into_builder(true).on(&runtime).spawn();
        runtime.run_until_quiescent();
        assert_eq!(runtime.stats().actors[0].state, None);
        drop(door);
    });
}

fn a_status_has_the_beginning_of_the_last_panic(home: &Home) {
    keep_bombs_quiet();
    let bomb = home.spawn(actor(bomb).restart(Restarts::on_fault()));
    assert_eq!(settled(home, bomb.id()).fault, None);
    bomb.tell(2).unwrap();
    assert_eq!(settled(home, bomb.id()).fault.as_deref(), Some("bomb éé"));
    bomb.tell(500).unwrap();
    let status = settled(home, bomb.id());
    let expected = format!("bomb {}", "é".repeat(195));
    assert_eq!((status.fault, status.incarnation), (Some(expected), 2));
}

fn faults_are_listed_in_their_order(home: &Home) {
    keep_bombs_quiet();
    let once = home.spawn(actor(bomb).name("once"));
    let restarts = Restarts::on_fault().intensity(100, Duration::from_secs(1));
    let often = home.spawn(actor(bomb).name("often").restart(restarts));
    for _ in 0..70 {
        often.tell(1).unwrap();
        settled(home, often.id());
    }
    let id = once.id();
    once.tell(1).unwrap();
    assert!(home.block_on(once.join()).is_err());
    let faults = home.runtime.faults();
    let numbers: Vec<u64> = faults.iter().map(|fault| fault.number).collect();
    assert_eq!(numbers, (8..=71).collect::<Vec<_>>());
    let last = faults.last().unwrap();
    assert_eq!(last.text, format!("\"once\" #{id} panicked: bomb é"));
    assert_eq!(
        (last.actor.as_ref().unwrap().id(), last.goes_on),
        (id, false)
    );
    let text = format!(
        "\"often\" #{} panicked: bomb é, and begins anew",
        often.id()
    );
    assert!(
        faults[..63]
            .iter()
            .all(|fault| fault.goes_on && fault.text == text)
    );
}

fn a_watch_has_each_fault_once(home: &Home) {
    keep_bombs_quiet();
    let bomb = home.spawn(actor(bomb).restart(Restarts::on_fault()));
    bomb.tell(1).unwrap();
    settled(home, bomb.id());
    let mut watch = home.runtime.watch(Duration::from_millis(1));
    let first = home.block_on(watch.next()).unwrap();
    assert_eq!((first.is_whole, first.faults.len()), (true, 1));
    let mut numbers = Vec::new();
    for told in 1..=3 {
        bomb.tell(1).unwrap();
        while numbers.len() < told {
            let item = home.block_on(watch.next()).unwrap();
            numbers.extend(item.faults.iter().map(|fault| fault.number));
        }
    }
    assert_eq!(numbers, [2, 3, 4]);
}

fn timers_that_wait_are_counted(home: &Home) {
    assert_eq!(home.runtime.stats().timers, 0);
    let sleeps: Vec<_> = (0..3)
        .map(|_| home.spawn_task(sleep(Duration::from_secs(3600))))
        .collect();
    home.block_on(async {
        while home.runtime.stats().tasks < 3 {
            greenroom::yield_now().await;
        }
    });
    assert_eq!(home.runtime.stats().timers, 3);
    drop(sleeps);
}

#[test]
fn the_thread_of_an_actor_has_a_name_if_it_is_bound_to_it() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("needle").unwrap();
        let on_it = actor(sink).on(&pinned).spawn();
        let free = actor(sink).on(&runtime).spawn();
        runtime.run_until_quiescent();
        let stats = runtime.stats();
        let thread = |id| {
            let mut actors = stats.actors.iter().filter(|it| it.task.id() == id);
            actors.next().unwrap().thread.as_deref()
        };
        assert_eq!(
            (thread(on_it.id()), thread(free.id())),
            (Some("needle"), None)
        );
        assert_eq!((stats.pinned, stats.running.len()), (1, 1));
        drop(on_it);
        drop(pinned);
        until(|| runtime.stats().pinned == 0);
        drop(free);
    });
}

#[test]
fn a_worker_that_is_held_says_by_whom() {
    within(WATCH, || {
        let limit = Duration::from_secs(3600);
        let builder = Runtime::builder().workers(1).thread_name("pool");
        let runtime = builder.long_turns(limit).observer(Measure).build().unwrap();
        let (begun, held) = (Gate::default(), Gate::default());
        let (begins, waits) = (begun.clone(), held.clone());
        let holder = |_cx: Context<()>| async move {
            begins.open();
            waits.pass();
            pending::<()>().await;
        };
        let holder = actor(holder).on(&runtime).spawn();
        begun.pass();
        let stats = runtime.stats();
        let turn = stats.running[0].as_ref().unwrap();
        assert_eq!(turn.task.id(), holder.id());
        assert_eq!(stats.actors[0].thread.as_deref(), Some("pool-0"));
        held.open();
        until(|| runtime.stats().running[0].is_none());
        let status = &runtime.stats().actors[0];
        assert_eq!(status.thread, None);
        assert_eq!((status.longest, status.turns), (status.busy, 1));
    });
}
