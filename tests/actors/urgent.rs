//! Urgent messages: a second queue, which is read first, and its order beside all else.

use std::pin::Pin;

use greenroom::machine::{Machine, Next};
use greenroom::supervise::Restarts;
use greenroom::{ActorBuilder, Context, Overflow, Reply, SpawnProblem, UrgentError, actor};

use crate::support::{
    Drops, Elsewhere, Gate, Home, Log, WATCH, drive, drive_elsewhere, in_every_home,
    keep_bombs_quiet, poll_once, within,
};

in_every_home!(
    urgent_messages_come_before_plain_ones_and_each_queue_is_in_order,
    an_urgent_message_comes_before_all_that_was_not_received,
    a_plain_message_comes_after_the_most_urgent_ones_in_a_row,
    urgent_messages_without_plain_ones_are_no_row,
    urgent_messages_have_room_of_their_own,
    senders_of_urgent_messages_wait_in_a_line_of_their_own,
    an_urgent_message_wakes_the_actor,
    urgent_messages_are_received_after_a_stop,
    no_urgent_message_is_received_after_a_stop_at_once,
    undelivered_urgent_messages_come_before_plain_ones,
    a_kill_drops_urgent_messages_and_refuses_their_line,
    a_permit_for_an_urgent_message_delays_the_end,
    a_permit_that_is_used_after_the_end_leaves_its_message_undelivered,
    urgent_messages_survive_a_restart,
    an_urgent_address_keeps_the_actor_open,
    urgent_questions_are_answered_first,
    an_urgent_address_may_be_mapped_and_weak,
    a_source_takes_turns_with_urgent_messages,
    urgent_messages_go_beside_an_overflow,
    each_message_is_received_once_in_the_order_of_its_queue,
    urgent_messages_of_one_turn_stay_in_order,
    saved_messages_of_a_machine_come_before_urgent_ones,
);

type Collects = Pin<Box<dyn Future<Output = Vec<u32>> + Send>>;

/// Returns an actor with urgent messages that collects all until the mailbox is closed.
fn collects(
    urgent: usize,
) -> ActorBuilder<u32, impl FnOnce(Context<u32>) -> Collects + Send + 'static, Collects> {
    let collects = |mut cx: Context<u32>| -> Collects {
        Box::pin(async move {
            let mut all = Vec::new();
            while let Some(message) = cx.recv().await {
                all.push(message);
            }
            all
        })
    };
    actor(collects).urgent(urgent)
}

fn urgent_messages_come_before_plain_ones_and_each_queue_is_in_order(home: &Home) {
    for capacity in [None, Some(100)] {
        let held = home.hold();
        let handle = match capacity {
            None => home.spawn(collects(10)),
            Some(capacity) => home.spawn(collects(10).capacity(capacity)),
        };
        let urgent = handle.urgent().unwrap();
        for number in 0..10 {
            handle.tell(number).unwrap();
            urgent.tell(100 + number).unwrap();
        }
        assert_eq!((handle.len(), handle.capacity()), (10, capacity));
        assert_eq!((urgent.len(), urgent.capacity()), (10, Some(10)));
        drop((held, urgent));
        let expected: Vec<_> = (100..110).chain(0..10).collect();
        assert_eq!(home.block_on(handle.join()).unwrap(), expected);
    }
}

fn an_urgent_message_comes_before_all_that_was_not_received(home: &Home) {
    let held = home.hold();
    let (received, gate) = (Gate::default(), Gate::default());
    let (has_received, waits) = (received.clone(), gate.clone());
    let collects = actor(async move |mut cx: Context<u32>| {
        let mut all = Vec::new();
        while let Some(message) = cx.recv().await {
            all.push(message);
            has_received.open();
            waits.wait().await;
        }
        all
    });
    let handle = home.spawn(collects.urgent(1));
    (1..=5).for_each(|number| handle.tell(number).unwrap());
    drop(held);
    received.pass();
    drive(handle.urgent().unwrap().send(9)).unwrap();
    gate.open();
    assert_eq!(home.block_on(handle.join()).unwrap(), [1, 9, 2, 3, 4, 5]);
}

fn a_plain_message_comes_after_the_most_urgent_ones_in_a_row(home: &Home) {
    let held = home.hold();
    let by_default = home.spawn(collects(100));
    let chosen = home.spawn(collects(100).urgent_in_a_row(1));
    for handle in [&by_default, &chosen] {
        let urgent = handle.urgent().unwrap();
        (0..40).for_each(|number| urgent.tell(100 + number).unwrap());
        (0..4).for_each(|number| handle.tell(number).unwrap());
    }
    drop(held);
    let all = home.block_on(by_default.join()).unwrap();
    let plain: Vec<_> = (0..44).filter(|index| all[*index] < 100).collect();
    assert_eq!(plain, [16, 33, 42, 43]);
    let all = home.block_on(chosen.join()).unwrap();
    let plain: Vec<_> = (0..44).filter(|index| all[*index] < 100).collect();
    assert_eq!(plain, [1, 3, 5, 7]);
}

fn urgent_messages_without_plain_ones_are_no_row(home: &Home) {
    let collects = actor(async |mut cx: Context<(u32, Option<Reply<()>>)>| {
        let mut all = Vec::new();
        while let Some((number, reply)) = cx.recv().await {
            all.push(number);
            reply.into_iter().for_each(|reply| reply.send(()));
        }
        all
    });
    let handle = home.spawn(collects.urgent(9).urgent_in_a_row(2));
    let urgent = handle.urgent().unwrap();
    for _ in 0..5 {
        home.block_on(urgent.ask(|reply| (0, Some(reply)))).unwrap();
    }
    let held = home.hold();
    (1..=2).for_each(|number| handle.tell((number, None)).unwrap());
    (10..=13).for_each(|number| urgent.tell((number, None)).unwrap());
    drop((held, urgent));
    let all = home.block_on(handle.join()).unwrap();
    assert_eq!(all, [0, 0, 0, 0, 0, 10, 11, 1, 12, 13, 2]);
}

fn urgent_messages_have_room_of_their_own(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(2).capacity(1));
    let urgent = handle.urgent().unwrap();
    handle.tell(1).unwrap();
    assert!(handle.tell(2).unwrap_err().is_full());
    urgent.tell(3).unwrap();
    let permit = drive(urgent.reserve()).unwrap();
    let full = urgent.tell(4).unwrap_err();
    assert!(full.is_full());
    assert_eq!(full.actor().id(), handle.id());
    permit.send(5);
    drop((held, urgent));
    assert_eq!(home.block_on(handle.join()).unwrap(), [3, 5, 1]);
}

fn senders_of_urgent_messages_wait_in_a_line_of_their_own(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(1).capacity(1));
    let urgent = handle.urgent().unwrap();
    handle.tell(1).unwrap();
    urgent.tell(2).unwrap();
    let mut plain = handle.send(3);
    assert!(poll_once(&mut plain).is_pending());
    let mut first = urgent.send(4);
    let mut given_up = urgent.send(5);
    let mut second = urgent.send(6);
    for send in [&mut first, &mut given_up, &mut second] {
        assert!(poll_once(send).is_pending());
    }
    drop(given_up);
    drop(held);
    drive(first).unwrap();
    drive(second).unwrap();
    drive(plain).unwrap();
    drop(urgent);
    let all = home.block_on(handle.join()).unwrap();
    let of = |numbers: &[u32]| -> Vec<_> {
        all.iter()
            .copied()
            .filter(|number| numbers.contains(number))
            .collect()
    };
    assert_eq!(of(&[2, 4, 6]), [2, 4, 6]);
    assert_eq!(of(&[1, 3]), [1, 3]);
}

fn an_urgent_message_wakes_the_actor(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await).urgent(1));
    let urgent = handle.urgent().unwrap();
    urgent.tell(7).unwrap();
    assert_eq!(home.block_on(handle.join()).unwrap(), Some(7));
    assert!(urgent.tell(8).unwrap_err().is_closed());
    assert!(urgent.is_closed());
}

fn urgent_messages_are_received_after_a_stop(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(3));
    let urgent = handle.urgent().unwrap();
    handle.tell(1).unwrap();
    urgent.tell(2).unwrap();
    urgent.stop();
    assert!(urgent.tell(3).unwrap_err().is_closed());
    assert!(handle.tell(3).unwrap_err().is_closed());
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [2, 1]);
}

fn no_urgent_message_is_received_after_a_stop_at_once(home: &Home) {
    let (drops, held) = (Drops::default(), home.hold());
    let counts = actor(async |mut cx: Context<_>| {
        let mut received = 0;
        while cx.recv().await.is_some() {
            received += 1;
        }
        received
    });
    let handle = home.spawn(counts.urgent(1));
    let urgent = handle.urgent().unwrap();
    handle.tell(drops.one()).unwrap();
    urgent.tell(drops.one()).unwrap();
    let mut waits = urgent.send(drops.one());
    assert!(poll_once(&mut waits).is_pending());
    urgent.stop_now();
    assert!(drive(waits).unwrap_err().is_closed());
    assert_eq!(drops.count(), 3);
    drop((held, urgent));
    assert_eq!(home.block_on(handle.join()).unwrap(), 0);
}

fn undelivered_urgent_messages_come_before_plain_ones(home: &Home) {
    for ends in 0..3 {
        let (undelivered, held) = (Log::default(), home.hold());
        let log = undelivered.clone();
        let returns = actor(async move |_cx: Context<u32>| ());
        let returns = returns
            .urgent(9)
            .on_undelivered(move |number| log.add(number));
        let handle = home.spawn(returns);
        let urgent = handle.urgent().unwrap();
        for number in 0..3 {
            handle.tell(number).unwrap();
            urgent.tell(10 + number).unwrap();
        }
        match ends {
            0 => {}
            1 => urgent.stop_now(),
            _ => urgent.kill(),
        }
        drop(held);
        home.block_on(urgent.closed());
        assert_eq!(undelivered.take(), [10, 11, 12, 0, 1, 2]);
    }
}

fn a_kill_drops_urgent_messages_and_refuses_their_line(home: &Home) {
    let (drops, held) = (Drops::default(), home.hold());
    let handle = home.spawn(actor(async |_cx: Context<_>| ()).urgent(1));
    let urgent = handle.urgent().unwrap();
    urgent.tell(drops.one()).unwrap();
    let mut waits = urgent.send(drops.one());
    assert!(poll_once(&mut waits).is_pending());
    urgent.kill();
    assert_eq!(drops.count(), 1);
    assert!(drive(waits).is_err());
    assert_eq!(drops.count(), 2);
    drop(held);
    home.block_on(handle.join()).unwrap_err();
}

fn a_permit_for_an_urgent_message_delays_the_end(home: &Home) {
    let handle = home.spawn(collects(1));
    let urgent = handle.urgent().unwrap();
    let permit = drive(urgent.reserve()).unwrap();
    handle.stop();
    permit.send(1);
    assert_eq!(home.block_on(handle.join()).unwrap(), [1]);
    let handle = home.spawn(collects(1));
    let permit = drive(handle.urgent().unwrap().reserve()).unwrap();
    handle.stop();
    drop(permit);
    assert_eq!(home.block_on(handle.join()).unwrap(), [0; 0]);
}

fn a_permit_that_is_used_after_the_end_leaves_its_message_undelivered(home: &Home) {
    let (undelivered, held) = (Log::default(), home.hold());
    let log = undelivered.clone();
    let returns = actor(async |_cx: Context<u32>| ()).urgent(1);
    let handle = home.spawn(returns.on_undelivered(move |number| log.add(number)));
    let permit = drive(handle.urgent().unwrap().reserve()).unwrap();
    drop(held);
    home.block_on(handle.join()).unwrap();
    permit.send(7);
    assert_eq!(undelivered.take(), [7]);
}

fn urgent_messages_survive_a_restart(home: &Home) {
    keep_bombs_quiet();
    let (seen, held) = (Log::default(), home.hold());
    let log = seen.clone();
    let fragile = actor(move |mut cx: Context<u32>| {
        let log = log.clone();
        async move {
            while let Some(number) = cx.recv().await {
                log.add(number);
                assert_ne!(number % 10, 1, "bomb");
            }
        }
    });
    let handle = home.spawn(fragile.urgent(9).restart(Restarts::on_fault()));
    let urgent = handle.urgent().unwrap();
    for number in [1, 2] {
        handle.tell(number).unwrap();
        urgent.tell(10 + number).unwrap();
    }
    drop((held, urgent));
    home.block_on(handle.join()).unwrap();
    assert_eq!(seen.take(), [11, 12, 1, 2]);
}

fn an_urgent_address_keeps_the_actor_open(home: &Home) {
    let handle = home.spawn(collects(1));
    let urgent = handle.urgent().unwrap();
    assert_eq!((&urgent, urgent.id()), (&handle.address(), handle.id()));
    let same = urgent.urgent().unwrap();
    let join = handle.join();
    drop(urgent);
    same.tell(1).unwrap();
    drop(same);
    assert_eq!(home.block_on(join).unwrap(), [1]);
}

fn urgent_questions_are_answered_first(home: &Home) {
    let held = home.hold();
    let (order, answers) = (Log::default(), Log::default());
    let log = order.clone();
    let handle = home.spawn(
        actor(async move |mut cx: Context<(u32, Reply<u32>)>| {
            while let Some((number, reply)) = cx.recv().await {
                log.add(number);
                reply.send(number);
            }
        })
        .urgent(1),
    );
    let urgent = handle.urgent().unwrap();
    let mut asks = [(&*handle, 1), (&urgent, 2), (&urgent, 3)]
        .map(|(to, number)| Box::pin(to.ask(move |reply| (number, reply))));
    asks.iter_mut()
        .for_each(|ask| assert!(poll_once(ask).is_pending()));
    drop(held);
    for ask in asks {
        answers.add(home.block_on(ask).unwrap());
    }
    assert_eq!(answers.take(), [1, 2, 3]);
    assert_eq!(order.take()[0], 2);
}

fn an_urgent_address_may_be_mapped_and_weak(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(9));
    let urgent = handle.urgent().unwrap();
    let mapped = urgent.map(|text: &str| text.parse::<u32>().unwrap());
    let weak = urgent.downgrade();
    handle.tell(1).unwrap();
    mapped.tell("2").unwrap();
    weak.tell(3).unwrap();
    assert!(
        matches!(mapped.urgent(), Err(UrgentError::Mapped(actor)) if actor.id() == handle.id())
    );
    drop((held, urgent, mapped));
    assert_eq!(home.block_on(handle.join()).unwrap(), [2, 3, 1]);
}

fn a_source_takes_turns_with_urgent_messages(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(
        actor(async |mut cx: Context<u32>| {
            let _source = cx.attach(futures::stream::iter([100, 101]));
            let mut all = Vec::new();
            while let Some(message) = cx.recv().await {
                all.push(message);
            }
            all
        })
        .urgent(9),
    );
    let urgent = handle.urgent().unwrap();
    (1..=3).for_each(|number| urgent.tell(number).unwrap());
    drop((held, urgent));
    let all = home.block_on(handle.join()).unwrap();
    assert_eq!(all, [1, 100, 2, 101, 3]);
}

fn urgent_messages_go_beside_an_overflow(home: &Home) {
    let (displaced, held) = (Log::default(), home.hold());
    let log = displaced.clone();
    let handle = collects(1).capacity(1).overflow(Overflow::Oldest);
    let handle = home.spawn(handle.on_displaced(move |number| log.add(number)));
    let urgent = handle.urgent().unwrap();
    urgent.tell(10).unwrap();
    (1..=3).for_each(|number| handle.tell(number).unwrap());
    assert!(urgent.tell(11).unwrap_err().is_full());
    let permit = drive(handle.reserve()).unwrap();
    assert_eq!(displaced.take(), [1, 2, 3]);
    permit.send(4);
    drop((held, urgent));
    assert_eq!(home.block_on(handle.join()).unwrap(), [10, 4]);
}

fn each_message_is_received_once_in_the_order_of_its_queue(home: &Home) {
    const SENDERS: u32 = 4;
    let each = home.many(2_000) as u32;
    let handle = home.spawn(collects(3).capacity(3).urgent_in_a_row(2));
    let senders = [0, 1, 2, 3].map(|sender| {
        let plain = handle.address();
        let urgent = handle.urgent().unwrap();
        drive_elsewhere(async move {
            for number in sender * each..(sender + 1) * each {
                let to = if sender % 2 == 0 { &plain } else { &urgent };
                match number % 2 {
                    0 => to.send(number).await.unwrap(),
                    _ => to.reserve().await.unwrap().send(number),
                }
            }
        })
    });
    senders.into_iter().for_each(Elsewhere::join);
    let mut all = home.block_on(handle.join()).unwrap();
    for sender in 0..SENDERS {
        let own = |number: &&u32| (sender * each..(sender + 1) * each).contains(*number);
        assert!(all.iter().filter(own).is_sorted());
    }
    all.sort_unstable();
    assert_eq!(all, (0..SENDERS * each).collect::<Vec<_>>());
}

fn urgent_messages_of_one_turn_stay_in_order(home: &Home) {
    let handle = home.spawn(collects(2));
    let (plain, urgent) = (handle.address(), handle.urgent().unwrap());
    let sends = home.spawn_task(async move {
        for number in 0..20 {
            urgent.send(100 + number).await.unwrap();
            plain.tell(number).unwrap();
        }
    });
    home.block_on(sends);
    let all = home.block_on(handle.join()).unwrap();
    let (urgent, plain): (Vec<_>, Vec<_>) = all.into_iter().partition(|number| *number >= 100);
    assert_eq!(urgent, (100..120).collect::<Vec<_>>());
    assert_eq!(plain, (0..20).collect::<Vec<_>>());
}

/// Saves all that comes before it is opened.
#[derive(Clone)]
struct Door(Log<u32>);

impl Machine for Door {
    type Message = u32;
    type State = bool;
    type Value = ();

    async fn on(&mut self, state: &bool, message: u32, _cx: &mut Context<u32>) -> Next<Self> {
        match (state, message) {
            (false, 0) => Next::To(true),
            (false, message) => Next::Save(message),
            (true, message) => {
                self.0.add(message);
                Next::Stay
            }
        }
    }
}

fn saved_messages_of_a_machine_come_before_urgent_ones(home: &Home) {
    let (handled, held) = (Log::default(), home.hold());
    let door = home.spawn(Door(handled.clone()).into_builder(false).urgent(9));
    let urgent = door.urgent().unwrap();
    door.tell(8).unwrap();
    for number in [5, 0, 7] {
        urgent.tell(number).unwrap();
    }
    drop((held, urgent));
    home.block_on(door.join()).unwrap();
    assert_eq!(handled.take(), [5, 7, 8]);
}

#[test]
fn an_actor_without_the_option_has_no_urgent_address() {
    within(WATCH, || {
        greenroom::run(async {
            let plain = actor(async |_cx: Context<u32>| ()).name("plain").spawn();
            let error = plain.urgent().unwrap_err();
            assert!(matches!(&error, UrgentError::NotSet(actor) if actor.id() == plain.id()));
            let text = format!(
                "\"plain\" #{} was spawned without the option `urgent`",
                plain.id()
            );
            assert_eq!(error.to_string(), text);
        });
    });
}

#[test]
fn options_of_urgent_messages_that_are_out_of_range_are_errors() {
    within(WATCH, || {
        greenroom::run(async {
            let idle = || actor(async |_cx: Context<u32>| ());
            let zero = idle().urgent(0).try_spawn();
            let none_in_a_row = idle().urgent(1).urgent_in_a_row(0).try_spawn();
            let without = idle().urgent_in_a_row(1).try_spawn();
            let problems = [zero, none_in_a_row, without].map(|it| it.unwrap_err().problem());
            let in_a_row = SpawnProblem::UrgentInARow;
            assert_eq!(problems, [SpawnProblem::ZeroCapacity, in_a_row, in_a_row]);
        });
    });
}
