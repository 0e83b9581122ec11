//! The members of a group, and what they are sent.

use std::pin::pin;

use greenroom::registry::{Broadcast, Group, JoinError};
use greenroom::{Address, Context, Handle, actor, yield_now};

use super::idle;
use crate::support::{Gate, Home, Log, in_every_home, keep_bombs_quiet, panic_of};

const TOPIC: Group<u32> = Group::new("topic");

in_every_home!(
    members_join_and_leave,
    a_member_leaves_when_it_ends,
    a_group_keeps_no_actor_open,
    a_broadcast_reaches_every_member_in_order,
    a_broadcast_counts_full_and_closed_members,
    send_all_waits_for_room_of_all_at_once,
    a_dropped_send_all_sends_no_more,
    next_takes_each_open_member_in_turn,
    a_member_may_join_through_a_map,
    a_group_has_one_type,
    a_closed_actor_cannot_join,
    a_clone_that_panics_loses_nothing_that_was_sent,
    an_actor_may_join_several_groups,
    members_that_are_stopped_at_once_receive_nothing_more,
    a_message_goes_to_members_with_a_tag,
    a_filter_that_panics_leaves_the_group_as_it_is,
);

/// Logs what it receives.
async fn reader(mut cx: Context<u32>, log: Log<u32>) {
    while let Some(number) = cx.recv().await {
        log.add(number);
    }
}

/// Waits for the gate before it receives.
async fn gated(mut cx: Context<u32>, gate: Gate) -> Vec<u32> {
    gate.wait().await;
    let mut all = Vec::new();
    while let Some(number) = cx.recv().await {
        all.push(number);
    }
    all
}

fn idles(home: &Home) -> [Handle<u32, ()>; 3] {
    [0; 3].map(|_| home.spawn(actor(idle::<u32>)))
}

fn sorted(mut members: Vec<Address<u32>>) -> Vec<u64> {
    assert!(members.is_sorted_by_key(Address::id));
    members.drain(..).map(|it| it.id()).collect()
}

fn ids(members: &[&Handle<u32, ()>]) -> Vec<u64> {
    let mut ids: Vec<_> = members.iter().map(|it| it.id()).collect();
    ids.sort_unstable();
    ids
}

fn counts(sent: usize, full: usize, closed: usize) -> Broadcast {
    let mut counts = Broadcast::default();
    (counts.sent, counts.full, counts.closed) = (sent, full, closed);
    counts
}

fn members_join_and_leave(home: &Home) {
    let [a, b, c] = idles(home);
    home.block_on(async {
        assert_eq!(TOPIC.members(), []);
        assert!(!TOPIC.leave(&a));
        for member in [&b, &a, &c, &a] {
            TOPIC.join(member).unwrap();
        }
        assert_eq!(sorted(TOPIC.members()), ids(&[&a, &b, &c]));
        assert!(TOPIC.leave(&b));
        assert!(!TOPIC.leave(&b));
        assert_eq!(sorted(TOPIC.members()), ids(&[&a, &c]));
        assert_eq!(Group::<u32>::owned("topic").members(), TOPIC.members());
    });
}

fn a_member_leaves_when_it_ends(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for end in [Address::stop, Address::kill] {
            let [a, b, c] = idles(home);
            for member in [&a, &b, &c] {
                TOPIC.join(member).unwrap();
            }
            end(&b);
            b.closed().await;
            assert_eq!(sorted(TOPIC.members()), ids(&[&a, &c]));
            assert_eq!(TOPIC.broadcast(1), counts(2, 0, 0));
            assert!(!TOPIC.leave(&b));
            for member in [a, c] {
                member.kill();
                member.closed().await;
            }
            assert_eq!((TOPIC.members(), TOPIC.next()), (vec![], None));
        }
    });
}

fn a_group_keeps_no_actor_open(home: &Home) {
    let [a, ..] = idles(home);
    home.block_on(async {
        TOPIC.join(&a).unwrap();
        a.join().await.unwrap();
        assert_eq!(TOPIC.members(), []);
    });
}

fn a_broadcast_reaches_every_member_in_order(home: &Home) {
    let logs = [(); 3].map(|()| Log::default());
    let readers = logs
        .clone()
        .map(|log| home.spawn(actor(|cx| reader(cx, log))));
    home.block_on(async {
        assert_eq!(TOPIC.broadcast(0), counts(0, 0, 0));
        for reader in &readers {
            TOPIC.join(reader).unwrap();
        }
        for number in 1..=50 {
            assert_eq!(TOPIC.broadcast(number), counts(3, 0, 0));
        }
        for reader in readers {
            reader.join().await.unwrap();
        }
    });
    for log in logs {
        assert!(log.take().into_iter().eq(1..=50));
    }
}

fn a_broadcast_counts_full_and_closed_members(home: &Home) {
    let gate = Gate::default();
    let limited = |capacity| {
        let gate = gate.clone();
        home.spawn(actor(|cx| gated(cx, gate)).capacity(capacity))
    };
    let (one, two, stopped) = (limited(1), limited(2), limited(1));
    home.block_on(async {
        for member in [&one, &two, &stopped] {
            TOPIC.join(member).unwrap();
        }
        stopped.stop();
        assert_eq!(TOPIC.broadcast(1), counts(2, 0, 1));
        assert_eq!(TOPIC.broadcast(2), counts(1, 1, 1));
        assert_eq!(TOPIC.broadcast(3), counts(0, 2, 1));
        gate.open();
        assert_eq!(one.join().await.unwrap(), [1]);
        assert_eq!(two.join().await.unwrap(), [1, 2]);
    });
}

fn send_all_waits_for_room_of_all_at_once(home: &Home) {
    let gates = [(); 3].map(|()| Gate::default());
    let logs = [(); 3].map(|()| Log::default());
    let [first, second, last] = [0, 1, 2].map(|at| {
        let (gate, log) = (gates[at].clone(), logs[at].clone());
        let gated = async move |cx| {
            gate.wait().await;
            reader(cx, log).await;
        };
        home.spawn(actor(gated).capacity(1))
    });
    home.block_on(async {
        for member in [&first, &second, &last] {
            TOPIC.join(member).unwrap();
        }
        assert_eq!(TOPIC.send_all(1).await, counts(3, 0, 0));
        let mut sends = pin!(TOPIC.send_all(2));
        assert!(futures::poll!(&mut sends).is_pending());
        // The last member gets its message while the first one has no room.
        gates[2].open();
        while logs[2].len() < 2 {
            yield_now().await;
        }
        second.kill();
        second.closed().await;
        assert!(futures::poll!(&mut sends).is_pending());
        gates[0].open();
        assert_eq!(sends.await, counts(2, 0, 1));
        first.join().await.unwrap();
        last.join().await.unwrap();
    });
    assert_eq!(logs.map(|log| log.take()), [vec![1, 2], vec![], vec![1, 2]]);
}

fn a_dropped_send_all_sends_no_more(home: &Home) {
    let gate = Gate::default();
    let (until, log) = (gate.clone(), Log::default());
    let full = home.spawn(actor(|cx| gated(cx, until)).capacity(1));
    let has_room = home.spawn(actor({
        let log = log.clone();
        |cx| reader(cx, log)
    }));
    home.block_on(async {
        TOPIC.join(&full).unwrap();
        TOPIC.join(&has_room).unwrap();
        full.tell(1).unwrap();
        let mut sends = Box::pin(TOPIC.send_all(2));
        assert!(futures::poll!(&mut sends).is_pending());
        drop(sends);
        gate.open();
        has_room.join().await.unwrap();
        assert_eq!((full.join().await.unwrap(), log.take()), (vec![1], vec![2]));
    });
}

fn next_takes_each_open_member_in_turn(home: &Home) {
    let [a, b, c] = idles(home);
    home.block_on(async {
        assert_eq!(TOPIC.next(), None);
        for member in [&a, &b, &c] {
            TOPIC.join(member).unwrap();
        }
        let turns = |count| (0..count).map(|_| TOPIC.next().unwrap().id());
        let twice: Vec<_> = turns(6).collect();
        assert_eq!(twice, [ids(&[&a, &b, &c]), ids(&[&a, &b, &c])].concat());
        let first = [&a, &b, &c].into_iter().min_by_key(|it| it.id()).unwrap();
        first.stop();
        let rest: Vec<_> = turns(4).collect();
        assert_eq!(rest, [&twice[1..3], &twice[1..3]].concat());
    });
}

fn a_member_may_join_through_a_map(home: &Home) {
    const TEXTS: Group<&str> = Group::new("texts");
    let log = Log::default();
    let logs = log.clone();
    let reader = home.spawn(actor(|cx| reader(cx, logs)));
    home.block_on(async {
        let length = |text: &str| text.len() as u32;
        TEXTS.join(&reader.map(length)).unwrap();
        assert_eq!(TEXTS.broadcast("four"), counts(1, 0, 0));
        TEXTS.next().unwrap().tell("seven..").unwrap();
        assert_eq!(TEXTS.send_all("").await, counts(1, 0, 0));
        reader.join().await.unwrap();
        assert_eq!(TEXTS.members(), []);
    });
    assert_eq!(log.take(), [4, 7, 0]);
}

fn a_group_has_one_type(home: &Home) {
    const OTHER: Group<String> = Group::new("topic");
    let [a, ..] = idles(home);
    let texts = home.spawn(actor(idle::<String>));
    home.block_on(async {
        TOPIC.join(&a).unwrap();
        let refused = OTHER.join(&texts).unwrap_err();
        let says =
            r#""topic" is registered for messages of type `u32`, not `alloc::string::String`"#;
        assert_eq!(refused.to_string(), says);
        assert_eq!((OTHER.members(), OTHER.next()), (vec![], None));
        assert_eq!(OTHER.broadcast("lost".into()), counts(0, 0, 0));
        assert!(!OTHER.leave(&a.map(|text: String| text.len() as u32)));
        assert_eq!(TOPIC.members(), [a.address()]);
        a.kill();
        a.closed().await;
        OTHER.join(&texts).unwrap();
        assert_eq!(OTHER.members(), [texts.address()]);
    });
}

fn a_closed_actor_cannot_join(home: &Home) {
    let [a, b, _] = idles(home);
    home.block_on(async {
        a.stop();
        b.kill();
        b.closed().await;
        assert_eq!(TOPIC.join(&a), Err(JoinError::Closed));
        assert_eq!(TOPIC.join(&b), Err(JoinError::Closed));
    });
}

/// A message of which the second copy panics.
struct Fragile(Log<()>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        self.0.add(());
        assert!(self.0.len() < 2, "bomb");
        Fragile(self.0.clone())
    }
}

fn a_clone_that_panics_loses_nothing_that_was_sent(home: &Home) {
    keep_bombs_quiet();
    const FRAGILE: Group<Fragile> = Group::new("fragile");
    let gate = Gate::default();
    let members = [(); 3].map(|()| {
        let gate = gate.clone();
        home.spawn(actor(|mut cx: Context<Fragile>| async move {
            gate.wait().await;
            let mut count = 0;
            while cx.recv().await.is_some() {
                count += 1;
            }
            count
        }))
    });
    home.block_on(async {
        for member in &members {
            FRAGILE.join(member).unwrap();
        }
        let (text, ..) = panic_of(|| FRAGILE.broadcast(Fragile(Log::default())));
        assert_eq!(text, "bomb");
        // The group still works.
        assert_eq!(FRAGILE.members().len(), 3);
        gate.open();
        let mut sum = 0;
        for member in members {
            sum += member.join().await.unwrap();
        }
        assert_eq!(sum, 1);
    });
}

fn an_actor_may_join_several_groups(home: &Home) {
    let [a, ..] = idles(home);
    let groups = ["a", "b", ""].map(Group::new);
    home.block_on(async {
        for group in &groups {
            group.join(&a).unwrap();
        }
        assert!(groups[0].leave(&a));
        assert_eq!(
            groups.each_ref().map(|group| group.members().len()),
            [0, 1, 1]
        );
        a.kill();
        a.closed().await;
        assert_eq!(groups.each_ref().map(|group| group.members().len()), [0; 3]);
    });
}

fn members_that_are_stopped_at_once_receive_nothing_more(home: &Home) {
    home.block_on(async {
        let gate = Gate::default();
        let members = [0; 3].map(|_| {
            let own = gate.clone();
            home.spawn(actor(move |cx| gated(cx, own)))
        });
        for member in &members {
            TOPIC.on(&home.runtime).join(member).unwrap();
        }
        assert_eq!(TOPIC.on(&home.runtime).broadcast(1).sent, 3);
        // One that was stopped before is a member as well until it ends.
        members[0].stop();
        TOPIC.on(&home.runtime).stop_now();
        gate.open();
        for member in members {
            assert_eq!(member.join().await.unwrap(), []);
        }
    });
}

fn a_message_goes_to_members_with_a_tag(home: &Home) {
    let logs = [(); 3].map(|()| Log::default());
    let readers = logs
        .clone()
        .map(|log| home.spawn(actor(|cx| reader(cx, log))));
    home.block_on(async {
        TOPIC.join_tagged(&readers[0], 0_u8).unwrap();
        TOPIC.join_tagged(&readers[1], 1_u8).unwrap();
        TOPIC.join(&readers[2]).unwrap();
        let told = TOPIC.broadcast_to(1, |tag: &u8| *tag == 1);
        assert_eq!(told, counts(1, 0, 0));
        assert_eq!(TOPIC.broadcast_to(2, |_: &u8| true), counts(2, 0, 0));
        assert_eq!(TOPIC.broadcast_to(3, |_: &u16| true), counts(0, 0, 0));
        assert_eq!(TOPIC.broadcast(4), counts(3, 0, 0));
        // Each join sets the tag.
        TOPIC.join(&readers[0]).unwrap();
        TOPIC.join_tagged(&readers[2], 2_u8).unwrap();
        assert_eq!(TOPIC.broadcast_to(5, |tag: &u8| *tag != 1), counts(1, 0, 0));
        for reader in readers {
            reader.join().await.unwrap();
        }
    });
    let received = logs.map(|log| log.take());
    assert_eq!(received, [vec![2, 4], vec![1, 2, 4], vec![4, 5]]);
}

fn a_filter_that_panics_leaves_the_group_as_it_is(home: &Home) {
    keep_bombs_quiet();
    let [a, ..] = idles(home);
    home.block_on(async {
        TOPIC.join_tagged(&a, ()).unwrap();
        let (text, ..) = panic_of(|| TOPIC.broadcast_to(1, |(): &()| panic!("bomb")));
        assert_eq!(text, "bomb");
        assert_eq!(TOPIC.broadcast(2), counts(1, 0, 0));
    });
}
