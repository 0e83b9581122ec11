//! Permits: places in a mailbox that are taken before their messages exist.

use greenroom::{Address, Context, actor};

use crate::support::{
    Drops, Gate, Home, Log, in_every_home, keep_bombs_quiet, panic_of, poll_once,
};

in_every_home!(
    a_permit_takes_a_place_until_it_is_used_or_dropped,
    a_permit_is_used_after_a_stop_and_delays_the_end,
    a_closed_mailbox_grants_no_permit,
    permits_and_sends_are_served_in_order_of_arrival,
    a_permit_that_is_given_up_while_it_waits_or_later_frees_its_place,
    a_permit_of_a_mapped_address_converts_its_message,
    a_message_for_a_dead_actor_is_dropped_or_undelivered,
    a_permit_delays_the_end_of_an_actor_without_addresses,
);

async fn all(mut cx: Context<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(number) = cx.recv().await {
        all.push(number);
    }
    all
}

/// Spawns such an actor that receives nothing before the gate is open.
fn held(home: &Home, capacity: usize) -> (Gate, greenroom::Handle<u32, Vec<u32>>) {
    let gate = Gate::default();
    let opened = gate.clone();
    let held = actor(|cx| async move {
        opened.wait().await;
        all(cx).await
    });
    (gate, home.spawn(held.capacity(capacity)))
}

fn a_permit_takes_a_place_until_it_is_used_or_dropped(home: &Home) {
    home.block_on(async {
        let (gate, actor) = held(home, 2);
        let first = actor.reserve().await.unwrap();
        let second = actor.reserve().await.unwrap();
        assert!(actor.tell(9).unwrap_err().is_full());
        drop(first);
        actor.tell(1).unwrap();
        assert!(actor.tell(9).unwrap_err().is_full());
        second.send(2);
        assert!(actor.tell(9).unwrap_err().is_full());
        gate.open();
        assert_eq!(actor.join().await.unwrap(), [1, 2]);
    });
}

fn a_permit_is_used_after_a_stop_and_delays_the_end(home: &Home) {
    home.block_on(async {
        let actor = home.spawn(actor(all));
        let (used, dropped) = (
            actor.reserve().await.unwrap(),
            actor.reserve().await.unwrap(),
        );
        actor.tell(1).unwrap();
        actor.stop();
        let mut join = actor.join();
        assert!(poll_once(&mut join).is_pending());
        used.send(2);
        drop(dropped);
        assert_eq!(join.await.unwrap(), [1, 2]);
    });
}

fn a_closed_mailbox_grants_no_permit(home: &Home) {
    home.block_on(async {
        let (gate, actor) = held(home, 1);
        actor.tell(1).unwrap();
        let mut waits = Box::pin(actor.reserve());
        assert!(poll_once(&mut waits).is_pending());
        actor.stop();
        assert_eq!(waits.await.unwrap_err().actor().id(), actor.id());
        assert_eq!(actor.reserve().await.unwrap_err().actor().id(), actor.id());
        gate.open();
        assert_eq!(actor.join().await.unwrap(), [1]);
    });
}

fn permits_and_sends_are_served_in_order_of_arrival(home: &Home) {
    home.block_on(async {
        let (gate, actor) = held(home, 1);
        actor.tell(1).unwrap();
        let mut sent = Box::pin(actor.send(2));
        let mut reserved = Box::pin(actor.reserve());
        let mut last = Box::pin(actor.send(4));
        assert!(poll_once(&mut sent).is_pending());
        assert!(poll_once(&mut reserved).is_pending());
        assert!(poll_once(&mut last).is_pending());
        gate.open();
        let send = async { reserved.await.unwrap().send(3) };
        let (sent, (), last) = futures::join!(sent, send, last);
        sent.unwrap();
        last.unwrap();
        assert_eq!(actor.join().await.unwrap(), [1, 2, 3, 4]);
    });
}

fn a_permit_that_is_given_up_while_it_waits_or_later_frees_its_place(home: &Home) {
    home.block_on(async {
        let (gate, actor) = held(home, 1);
        let held = actor.reserve().await.unwrap();
        let mut waits = Box::pin(actor.reserve());
        let mut granted = Box::pin(actor.reserve());
        let mut last = Box::pin(actor.send(1));
        assert!(poll_once(&mut waits).is_pending());
        assert!(poll_once(&mut granted).is_pending());
        assert!(poll_once(&mut last).is_pending());
        drop(waits);
        // The place is granted to the second one, which is dropped without another poll.
        drop(held);
        drop(granted);
        last.await.unwrap();
        gate.open();
        assert_eq!(actor.join().await.unwrap(), [1]);
    });
}

fn a_permit_of_a_mapped_address_converts_its_message(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (gate, actor) = held(home, 1);
        let lengths: Address<String> = actor.map(|text: String| match text.len() {
            0 => panic!("bomb in a map"),
            length => length as u32,
        });
        let permit = lengths.reserve().await.unwrap();
        assert!(actor.tell(9).unwrap_err().is_full());
        assert_eq!(panic_of(|| permit.send(String::new())).0, "bomb in a map");
        let permit = lengths.reserve().await.unwrap();
        drop(lengths);
        permit.send("four".into());
        gate.open();
        assert_eq!(actor.join().await.unwrap(), [4]);
    });
}

fn a_message_for_a_dead_actor_is_dropped_or_undelivered(home: &Home) {
    home.block_on(async {
        let (undelivered, drops) = (Log::default(), Drops::default());
        let (log, dropped) = (undelivered.clone(), drops.one());
        let killed = actor(all).on_undelivered(move |number| {
            let _captured = &dropped;
            log.add(number);
        });
        let killed = home.spawn(killed);
        let permits = [
            killed.reserve().await.unwrap(),
            killed.reserve().await.unwrap(),
        ];
        killed.tell(1).unwrap();
        killed.kill();
        killed.closed().await;
        let [used, unused] = permits;
        used.send(2);
        assert!(killed.is_closed());
        assert_eq!(drops.count(), 0, "another message may follow");
        drop(unused);
        assert_eq!(drops.count(), 1, "no message can follow");
        // A simulation may let the actor receive the first message.
        let mut numbers = undelivered.take();
        numbers.retain(|number| *number != 1);
        assert_eq!(numbers, [2]);

        let (drops, gate) = (Drops::default(), Gate::default());
        let waits = gate.clone();
        let dead = home.spawn(actor(|cx: Context<_>| async move {
            waits.wait().await;
            drop(cx);
        }));
        let permit = dead.reserve().await.unwrap();
        gate.open();
        dead.closed().await;
        permit.send(drops.one());
        assert!(dead.is_closed());
        assert_eq!(drops.count(), 1);
    });
}

fn a_permit_delays_the_end_of_an_actor_without_addresses(home: &Home) {
    home.block_on(async {
        for is_used in [false, true] {
            let actor = home.spawn(actor(all));
            let permit = actor.reserve().await.unwrap();
            // It gives up the last address.
            let mut join = actor.join();
            assert!(poll_once(&mut join).is_pending());
            let received = if is_used {
                permit.send(42);
                vec![42]
            } else {
                drop(permit);
                vec![]
            };
            assert_eq!(join.await.unwrap(), received);
        }
    });
}
