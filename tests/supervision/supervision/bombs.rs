//! Panics in all that belongs to a child: clones, drops, rules and functions of users.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::supervise::{Restarts, Strategy, Supervisor};
use greenroom::{AskCause, Context, End, Reply, actor, yield_now};

use super::{
    Job, LONG, all_run, cause, child, everywhere, hold, number, patient, simulated, start,
    wait_for_restarts,
};
use crate::support::{Bomb, Drops, Log};

/// A value of which some clones panic.
struct Fuse {
    clones: Arc<AtomicUsize>,
    fails: fn(usize) -> bool,
}

impl Clone for Fuse {
    fn clone(&self) -> Fuse {
        let clone = self.clones.fetch_add(1, Ordering::SeqCst);
        assert!(!(self.fails)(clone), "bomb in a clone");
        Fuse {
            clones: self.clones.clone(),
            fails: self.fails,
        }
    }
}

fn fused(
    fails: fn(usize) -> bool,
    log: Log<String>,
) -> impl FnOnce(Context<Job>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Clone + Send
{
    let clones = Arc::default();
    let fuse = Fuse { clones, fails };
    move |cx| {
        let _fuse = fuse;
        Box::pin(child(cx, "a", log))
    }
}

#[test]
fn a_panic_in_a_clone_is_a_failure_like_any_other() {
    everywhere(|| async {
        for has_own in [false, true] {
            let log = Log::default();
            let tree = patient(Strategy::OneForAll).spawn().unwrap();
            let first = actor(fused(|clone| clone < 3, log.clone())).name("a");
            let a = match has_own {
                false => tree.start(first).unwrap(),
                true => tree.start(first.restart(Restarts::on_fault())).unwrap(),
            };
            let b = start(&tree, &log, "b");
            assert_eq!(number(&a).await, 3);
            number(&b).await;
            let status = &tree.children()[0];
            assert_eq!(status.last_fault.as_deref(), Some("bomb in a clone"));
            tree.stop();
            tree.join().await.unwrap();

            let tree = Supervisor::builder().intensity(3, LONG).spawn().unwrap();
            let never = actor(fused(|_| true, log)).name("never");
            let never = match has_own {
                false => tree.start(never).unwrap(),
                true => tree.start(never.restart(Restarts::on_fault())).unwrap(),
            };
            let escalated = tree.join().await.unwrap_err();
            assert_eq!(escalated.child().id(), never.id());
            let faults: Vec<_> = escalated.faults().collect();
            assert_eq!(faults, ["bomb in a clone"; 4]);
        }
    });
}

#[test]
fn a_panic_in_a_drop_disturbs_no_round_and_no_stop() {
    everywhere(|| async {
        let (log, drops) = (Log::default(), Drops::default());
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let counted = drops.clone();
        let make = move |mut cx: Context<()>| {
            let bomb = Bomb::new(true, &counted);
            async move {
                let _bomb = bomb;
                while cx.recv().await.is_some() {}
            }
        };
        let a = start(&tree, &log, "a");
        let bombs = [tree.start(actor(make.clone())), tree.start(actor(make))];
        let z = start(&tree, &log, "z");
        for round in 1..4 {
            all_run(&tree).await;
            z.tell(Job::Fail).unwrap();
            wait_for_restarts(&tree, &a, round).await;
        }
        all_run(&tree).await;
        tree.stop();
        tree.join().await.unwrap();
        assert_eq!(drops.count(), 8);
        for bomb in bombs {
            // The last drop is a part of the last poll.
            assert_eq!(bomb.unwrap().ended().await, End::Panicked);
        }
    });
}

#[test]
fn a_panic_of_the_rule_ends_the_child_and_no_other() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll)
            .intensity(0, LONG)
            .spawn()
            .unwrap();
        let own = log.clone();
        let a = actor(move |cx| child(cx, "a", own));
        let a = tree
            .start(a.restart(Restarts::when(|_| panic!("bomb in a rule"))))
            .unwrap();
        let b = start(&tree, &log, "b");
        number(&a).await;
        number(&b).await;
        a.tell(Job::Fail).unwrap();
        assert_eq!(a.ended().await, End::Panicked);
        while tree.children().len() > 1 {
            yield_now().await;
        }
        assert_eq!(number(&b).await, 0);
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn a_panic_whose_payload_panics_is_a_failure_without_text() {
    struct Payload(#[expect(dead_code, reason = "for its drop")] Bomb);
    everywhere(|| async {
        let drops = Drops::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let counted = drops.clone();
        let a = actor(move |mut cx: Context<Option<Reply<u64>>>| async move {
            while let Some(reply) = cx.recv().await {
                match reply {
                    Some(reply) => reply.send(cx.incarnation_number()),
                    None => panic_any(Payload(Bomb::new(true, &counted))),
                }
            }
        });
        let a = tree.start(a).unwrap();
        a.tell(None).unwrap();
        assert_eq!(a.ask(Some).await, Ok(1));
        assert_eq!(
            (tree.children()[0].last_fault.as_deref(), drops.count()),
            (Some(""), 1)
        );
    });
}

#[test]
fn bombs_among_the_messages_of_a_killed_child_spare_its_supervisor() {
    simulated(|| async {
        let (log, drops) = (Log::default(), Drops::default());
        let grace = Duration::from_secs(1);
        let tree = patient(Strategy::OneForOne).grace(grace).spawn().unwrap();
        let a = start(&tree, &log, "a");
        let stuck = |mut cx: Context<Bomb>| async move {
            let _bomb = cx.recv().await;
            std::future::pending::<()>().await;
        };
        let kept = tree.start(actor(stuck)).unwrap();
        let passed = actor(stuck).on_undelivered(|_| panic!("bomb for the undelivered"));
        let passed = tree.start(passed).unwrap();
        for _ in 0..4 {
            assert!(kept.tell(Bomb::new(true, &drops)).is_ok());
            assert!(passed.tell(Bomb::new(false, &drops)).is_ok());
        }
        all_run(&tree).await;
        tree.stop_child(&passed).unwrap();
        tree.stop_child(&kept).unwrap();
        assert_eq!(
            (passed.ended().await, kept.ended().await),
            (End::Killed, End::Killed)
        );
        assert_eq!(drops.count(), 8);
        assert_eq!(number(&a).await, 0);
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn what_is_dropped_may_use_its_supervisor() {
    /// Uses the supervisor when it is dropped.
    struct Uses(Supervisor, Log<String>);
    impl Drop for Uses {
        fn drop(&mut self) {
            let tree = &self.0;
            let children = tree.children();
            let late = tree.start(actor(|mut cx: Context<()>| async move {
                cx.recv().await;
            }));
            self.1.add(format!("{} {}", children.len(), late.is_ok()));
            if children.len() > 6 {
                tree.stop();
            }
        }
    }
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let (own, notes) = (tree.clone(), log.clone());
        let a = actor(move |mut cx: Context<Uses>| async move {
            let _uses = Uses(own, notes);
            let _first = cx.recv().await;
            panic!("bomb");
        });
        let a = a.restart(Restarts::on_fault().intensity(u32::MAX, LONG));
        let a = tree.start(a).unwrap();
        for _ in 0..5 {
            let _ = a.tell(Uses(tree.clone(), log.clone()));
        }
        tree.join().await.unwrap();
        assert!(log.len() > 3, "{:?}", log.take());
    });
}

#[test]
fn a_message_in_hand_that_panics_in_its_drop_tells_its_asker() {
    everywhere(|| async {
        let (log, drops) = (Log::default(), Drops::default());
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let a = actor(|mut cx: Context<(Bomb, Reply<()>)>| async move {
            let _in_hand = cx.recv().await;
            std::future::pending::<()>().await;
        });
        let a = tree.start(a).unwrap();
        let b = start(&tree, &log, "b");
        let (reply, answer) = Reply::pair();
        assert!(a.tell((Bomb::new(true, &drops), reply)).is_ok());
        number(&b).await;
        all_run(&tree).await;
        while !a.is_empty() {
            yield_now().await;
        }
        tree.restart(&a).unwrap();
        let why = cause(answer.await);
        assert_eq!((why, drops.count()), (AskCause::Restarted, 1));
        let held = hold(&b).await;
        tree.restart(&b).unwrap();
        assert_eq!(cause(held.await), AskCause::Restarted);
    });
}
