//! In a simulation, whose turns are split, an effect through a name comes after earlier ones.

use greenroom::policy::Simulated;
use greenroom::registry::{Group, Name};
use greenroom::{Address, Context, Runtime, actor, spawn, yield_now};

use super::idle;
use crate::support::{WATCH, within};

const SEEDS: u64 = 300;
const FLAG: Name<()> = Name::new("flag");
const FLAGS: Group<()> = Group::new("flags");

/// Runs a scenario, which returns what an actor has received, in many simulations.
fn in_order<Fut>(scenario: fn(Address<u32>) -> Fut)
where
    Fut: Future<Output = ()> + 'static,
{
    within(WATCH, move || {
        for seed in 0..SEEDS {
            let _named = crate::support::matrix::Named(format!("seed {seed}"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let runtime = runtime.build().unwrap();
            let received = runtime.block_on(async {
                let receiver = spawn!(|mut cx: Context<u32>| async move {
                    let mut all = Vec::new();
                    while let Some(number) = cx.recv().await {
                        all.push(number);
                    }
                    all
                });
                scenario(receiver.address()).await;
                receiver.join().await.unwrap()
            });
            assert_eq!(received, [1, 2]);
        }
    });
}

/// Tells the receiver 1, then does something that others can see.
async fn acts(cx: Context<()>, receiver: Address<u32>, act: fn(&Address<()>)) {
    receiver.tell(1).unwrap();
    act(&cx.address());
    drop(receiver);
    idle(cx).await;
}

/// Waits until it sees something, then tells the receiver 2.
async fn sees(receiver: Address<u32>, seen: fn() -> bool) {
    while !seen() {
        yield_now().await;
    }
    receiver.tell(2).unwrap();
}

#[test]
fn a_registration_is_seen_after_earlier_messages() {
    in_order(|receiver| async {
        let other = receiver.clone();
        let acts = spawn!(|cx| acts(cx, other, |me| FLAG.register(me).unwrap()));
        greenroom::spawn(sees(receiver, || FLAG.get().is_ok())).await;
        acts.stop();
        acts.join().await.unwrap();
    });
}

#[test]
fn a_wait_ends_after_earlier_messages() {
    in_order(|receiver| async {
        let other = receiver.clone();
        let acts = spawn!(|cx| acts(cx, other, |me| FLAG.register(me).unwrap()));
        let found = greenroom::spawn(async move {
            FLAG.wait().await.unwrap();
            receiver.tell(2).unwrap();
        });
        found.await;
        acts.stop();
        acts.join().await.unwrap();
    });
}

#[test]
fn an_unregistration_is_seen_after_earlier_messages() {
    in_order(|receiver| async {
        let flag = spawn!(idle::<()>(_));
        FLAG.register(&flag).unwrap();
        let other = receiver.clone();
        let acts = spawn!(|cx| acts(cx, other, |_| assert!(FLAG.unregister())));
        greenroom::spawn(sees(receiver, || FLAG.get().is_err())).await;
        acts.stop();
        acts.join().await.unwrap();
    });
}

#[test]
fn an_end_frees_the_name_after_earlier_messages() {
    in_order(|receiver| async {
        let other = receiver.clone();
        let ends = spawn!(|cx: Context<()>| async move {
            other.tell(1).unwrap();
            drop((cx, other));
        });
        FLAG.register(&ends).unwrap();
        greenroom::spawn(sees(receiver, || {
            let other = actor(idle::<()>).spawn();
            FLAG.register(&other).is_ok()
        }))
        .await;
    });
}

#[test]
fn a_membership_is_seen_after_earlier_messages() {
    in_order(|receiver| async {
        let other = receiver.clone();
        let acts = spawn!(|cx| acts(cx, other, |me| FLAGS.join(me).unwrap()));
        greenroom::spawn(sees(receiver, || FLAGS.next().is_some())).await;
        acts.stop();
        acts.join().await.unwrap();
    });
}

#[test]
fn an_end_empties_the_group_after_earlier_messages() {
    in_order(|receiver| async {
        let other = receiver.clone();
        let ends = spawn!(|cx: Context<()>| async move {
            other.tell(1).unwrap();
            drop((cx, other));
        });
        FLAGS.join(&ends).unwrap();
        greenroom::spawn(sees(receiver, || FLAGS.broadcast(()) == Default::default())).await;
    });
}
