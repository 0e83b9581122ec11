//! What late members of a group receive: the last messages, and then all that follow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use greenroom::registry::{Group, JoinError};
use greenroom::{Context, actor, spawn, yield_now};

use super::in_simulations;
use crate::support::{Gate, Home, Log, in_every_home, keep_bombs_quiet, panic_of, poll_once};

in_every_home!(
    a_late_member_receives_the_last_messages_first,
    a_group_keeps_no_more_messages_than_it_is_told_to,
    a_member_that_joins_again_receives_no_message_twice,
    a_bounded_mailbox_misses_what_it_has_no_room_for,
    messages_of_another_type_are_not_for_late_members,
    a_kept_message_that_cannot_be_cloned_leaves_a_member,
    late_members_miss_nothing_and_receive_nothing_twice,
    send_all_waits_for_room_in_the_mailbox_of_a_late_member,
);

const SEEDS: u64 = 500;
const KEPT: u32 = 4;
const MESSAGES: u32 = 60;
const TOPIC: Group<(u8, u32)> = Group::new("topic");
const NUMBERS: Group<u32> = Group::new("numbers");

pub(super) async fn all<M>(mut cx: Context<M>) -> Vec<M> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

fn a_late_member_receives_the_last_messages_first(home: &Home) {
    let (early, late) = (home.spawn(actor(all::<u32>)), home.spawn(actor(all::<u32>)));
    home.block_on(async {
        NUMBERS.broadcast(0); // not kept
        NUMBERS.replay(3);
        NUMBERS.join(&early).unwrap();
        for number in 1..=5 {
            assert_eq!(NUMBERS.broadcast(number).sent, 1);
        }
        assert_eq!(NUMBERS.send_all(6).await.sent, 1);
        NUMBERS.join_tagged(&late, "late").unwrap();
        assert_eq!(NUMBERS.broadcast(7).sent, 2);
        assert_eq!(NUMBERS.broadcast_to(8, |tag: &&str| *tag == "late").sent, 1);
        assert_eq!(early.join().await.unwrap(), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(late.join().await.unwrap(), [4, 5, 6, 7, 8]);
    });
}

fn a_group_keeps_no_more_messages_than_it_is_told_to(home: &Home) {
    let received = async |keeps: &[usize]| {
        for &keep in keeps {
            NUMBERS.replay(keep);
        }
        let late = home.spawn(actor(all::<u32>));
        NUMBERS.join(&late).unwrap();
        late.join().await.unwrap()
    };
    home.block_on(async {
        NUMBERS.replay(5);
        for number in 0..9 {
            NUMBERS.broadcast(number);
        }
        assert_eq!(received(&[]).await, [4, 5, 6, 7, 8]);
        assert_eq!(received(&[7]).await, [4, 5, 6, 7, 8]);
        assert_eq!(received(&[2]).await, [7, 8]);
        NUMBERS.broadcast(9);
        assert_eq!(received(&[]).await, [8, 9]);
        assert_eq!(received(&[0, 2]).await, []);
        NUMBERS.replay(0);
        NUMBERS.broadcast(10);
        assert_eq!(received(&[]).await, []);
    });
}

fn a_member_that_joins_again_receives_no_message_twice(home: &Home) {
    let member = home.spawn(actor(all::<u32>));
    home.block_on(async {
        NUMBERS.replay(2);
        NUMBERS.broadcast(1);
        for _ in 0..3 {
            NUMBERS.join(&member).unwrap();
        }
        NUMBERS.broadcast(2);
        assert!(NUMBERS.leave(&member));
        NUMBERS.broadcast(3);
        // It is a late member again.
        NUMBERS.join(&member).unwrap();
        assert_eq!(member.join().await.unwrap(), [1, 2, 2, 3]);
    });
}

fn a_bounded_mailbox_misses_what_it_has_no_room_for(home: &Home) {
    let member = home.spawn(
        actor(async |cx: Context<u32>| {
            while cx.address().len() < 2 {
                yield_now().await;
            }
            all(cx).await
        })
        .capacity(2),
    );
    home.block_on(async {
        NUMBERS.replay(3);
        for number in 1..=3 {
            NUMBERS.broadcast(number);
        }
        NUMBERS.join(&member).unwrap();
        let received = member.join().await.unwrap();
        assert_eq!(received[..2], [1, 2]);
    });
}

fn messages_of_another_type_are_not_for_late_members(home: &Home) {
    const TEXTS: Group<&str> = Group::new("numbers");
    let (text, number) = (
        home.spawn(actor(all::<&str>)),
        home.spawn(actor(all::<u32>)),
    );
    home.block_on(async {
        NUMBERS.replay(3);
        NUMBERS.broadcast(1);
        TEXTS.join(&text).unwrap();
        TEXTS.broadcast("a");
        assert!(matches!(
            NUMBERS.join(&number),
            Err(JoinError::WrongType { .. })
        ));
        assert_eq!(text.join().await.unwrap(), ["a"]);
        NUMBERS.join(&number).unwrap();
        assert_eq!(number.join().await.unwrap(), [1]);
    });
}

/// A message of which the third copy panics: one to keep it, and one for the first late member.
struct Fragile(Log<()>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        self.0.add(());
        assert!(self.0.len() < 3, "bomb");
        Fragile(self.0.clone())
    }
}

fn a_kept_message_that_cannot_be_cloned_leaves_a_member(home: &Home) {
    keep_bombs_quiet();
    const FRAGILE: Group<Fragile> = Group::new("fragile");
    let members = [(); 2].map(|()| home.spawn(actor(all::<Fragile>)));
    home.block_on(async {
        FRAGILE.replay(1);
        FRAGILE.broadcast(Fragile(Log::default()));
        FRAGILE.join(&members[0]).unwrap();
        let (text, ..) = panic_of(|| FRAGILE.join(&members[1]));
        assert_eq!(text, "bomb");
        assert_eq!(FRAGILE.members().len(), 2);
        FRAGILE.replay(0);
        assert_eq!(FRAGILE.broadcast(Fragile(Log::default())).sent, 2);
        for (member, received) in members.into_iter().zip([2, 1]) {
            assert_eq!(member.join().await.unwrap().len(), received);
        }
    });
}

/// A message of which the next copy makes a call.
struct Calls(u32, NextCall);

type NextCall = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl Clone for Calls {
    fn clone(&self) -> Self {
        let call = self.1.lock().unwrap().take();
        if let Some(call) = call {
            call();
        }
        Calls(self.0, self.1.clone())
    }
}

fn send_all_waits_for_room_in_the_mailbox_of_a_late_member(home: &Home) {
    const CALLS: Group<Calls> = Group::new("calls");
    let (gate, sending, next) = (Gate::default(), Log::default(), NextCall::default());
    let waits = gate.clone();
    let receive = |cx| async move {
        waits.wait().await;
        all::<Calls>(cx).await
    };
    let member = home.spawn(actor(receive).capacity(2));
    home.block_on(async {
        CALLS.replay(2);
        CALLS.broadcast(Calls(1, next.clone()));
        CALLS.broadcast(Calls(2, next.clone()));
        // It is sent while the member is told the history.
        let (message, sent) = (Calls(3, NextCall::default()), sending.clone());
        *next.lock().unwrap() = Some(Box::new(move || {
            let mut sending = Box::pin(CALLS.send_all(message));
            assert!(poll_once(&mut sending).is_pending());
            sent.add(sending);
        }));
        CALLS.join(&member).unwrap();
        gate.open();
        let sending = sending.take().pop().unwrap();
        assert_eq!(sending.await.sent, 1);
        let received = member.join().await.unwrap();
        let received: Vec<_> = received.iter().map(|message| message.0).collect();
        assert_eq!(received, [1, 2, 3]);
        CALLS.replay(0);
    });
}

/// How many messages each publisher has begun to publish.
#[derive(Clone, Default)]
struct Published(Arc<[AtomicU32; 2]>);

impl Published {
    fn now(&self) -> [u32; 2] {
        [0, 1].map(|publisher| self.0[publisher].load(Ordering::SeqCst))
    }
}

/// What a late member has received, and what was published before and after it has joined.
struct Received {
    before: [u32; 2],
    after: [u32; 2],
    all: Vec<(u8, u32)>,
}

/// Joins after some turns.
async fn late(
    cx: Context<(u8, u32)>,
    turns: usize,
    published: Published,
    joined: Log<()>,
) -> Received {
    for _ in 0..turns {
        yield_now().await;
    }
    let before = published.now();
    TOPIC.join(&cx.address()).unwrap();
    let after = published.now();
    joined.add(());
    let all = all(cx).await;
    Received { before, after, all }
}

impl Received {
    /// Checks this beside the model: the last messages before the join, and all after it.
    fn check(&self) {
        let (mut of_history, mut until_joined) = (0, 0);
        for publisher in [0, 1] {
            let own = self.all.iter().filter(|it| usize::from(it.0) == publisher);
            let own: Vec<u32> = own.map(|(_, number)| *number).collect();
            // Each once, in their order, and without a gap until the last one.
            let first = MESSAGES + 1 - own.len() as u32;
            assert!(own.iter().copied().eq(first..=MESSAGES), "{own:?}");
            let (before, after) = (self.before[publisher], self.after[publisher]);
            assert!(first <= after + 1, "{first} comes after {after}");
            // Number `before` may have been on its way.
            of_history += before.saturating_sub(first);
            until_joined += (after + 1).saturating_sub(first);
        }
        assert!(of_history <= KEPT, "{of_history} of the history");
        let published: u32 = self.before.iter().map(|it| it.saturating_sub(1)).sum();
        let least = published.min(KEPT);
        assert!(until_joined >= least, "{until_joined}, not {least}");
    }
}

async fn publish(publisher: u8, published: Published) {
    for number in 1..=MESSAGES {
        published.0[usize::from(publisher)].store(number, Ordering::SeqCst);
        TOPIC.broadcast((publisher, number));
        if number % 3 == u32::from(publisher) {
            yield_now().await;
        }
    }
}

async fn publishers_and_late_members(mut random: Rng) {
    TOPIC.replay(KEPT as usize);
    let (published, joined) = (Published::default(), Log::default());
    let spawn_late = |turns| {
        let (published, joined) = (published.clone(), joined.clone());
        spawn!(move |cx| late(cx, turns, published, joined))
    };
    let members: Vec<_> = (0..6).map(|_| spawn_late(random.usize(..50))).collect();
    let publishers = [0, 1].map(|of| greenroom::spawn(publish(of, published.clone())));
    for publisher in publishers {
        publisher.await;
    }
    while joined.len() < members.len() {
        yield_now().await;
    }
    for member in members {
        member.join().await.unwrap().check();
    }
}

fn late_members_miss_nothing_and_receive_nothing_twice(home: &Home) {
    home.block_on(publishers_and_late_members(Rng::with_seed(1)));
}

#[test]
fn late_members_agree_with_a_model_in_every_simulation() {
    in_simulations(SEEDS, publishers_and_late_members);
}
