//! Views: whatever a task can see of another one's turn comes after the earlier effects of that
//! turn.
//!
//! In each view a turn tells 1, and then changes something in the same turn. Another task looks for
//! the change, and tells 2 when it sees it. With whole turns that is always in order.

use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

use futures::future::LocalBoxFuture;
use greenroom::looper::Controller;
use greenroom::market::{Job, Market};
use greenroom::policy::Simulated;
use greenroom::registry::{Group, Name};
use greenroom::spool::Spool;
use greenroom::supervise::{ChildState, Supervisor};
use greenroom::{Address, Context, Handle, Reply, Runtime, actor, spawn, yield_now};

use super::turns::one_comes_first_in;
use crate::support::keep_bombs_quiet;
use crate::support::matrix::Named;

/// A fifth of these seeds split turns.
const SEEDS: Range<u64> = 0..500;

/// Looks whether the change can be seen.
type Look = Box<dyn FnMut() -> bool>;

/// A view, by its name: a program that leads to the change, and returns how it is seen.
type View = (
    &'static str,
    Box<dyn Fn(Address<u32>) -> LocalBoxFuture<'static, Look>>,
);

fn view<F>(name: &'static str, program: impl Fn(Address<u32>) -> F + 'static) -> View
where
    F: Future<Output = Look> + 'static,
{
    (name, Box::new(move |one| Box::pin(program(one))))
}

#[test]
fn whatever_is_seen_of_an_actor_comes_after_its_earlier_effects() {
    all_in_order(actors());
    all_in_order(permits());
    all_in_order(answers());
}

#[test]
fn whatever_is_seen_of_a_supervisor_comes_after_the_earlier_effects() {
    keep_bombs_quiet();
    all_in_order(supervisors());
    all_in_order(restarts());
}

#[test]
fn whatever_is_seen_of_a_registry_comes_after_the_earlier_effects() {
    all_in_order(names());
}

#[test]
fn whatever_is_seen_of_a_spool_or_a_market_comes_after_the_earlier_effects() {
    all_in_order(spools());
    all_in_order(markets());
}

#[test]
fn whatever_is_seen_of_a_looper_comes_after_the_earlier_effects() {
    all_in_order(loopers());
}

#[test]
fn whatever_is_seen_of_a_call_comes_after_its_earlier_effects() {
    all_in_order(calls());
}

/// Checks that each view shows the change only after what its turn has told before.
fn all_in_order(views: Vec<View>) {
    let seeds: Vec<u64> = SEEDS.filter(|&seed| splits(seed)).collect();
    for (name, program) in views {
        let _named = Named(name.to_owned());
        one_comes_first_in(&seeds, |one| {
            let program = program(one.clone());
            async move {
                let mut is_seen = program.await;
                while !is_seen() {
                    yield_now().await;
                }
                one.tell(2).unwrap();
            }
        });
    }
}

/// Returns whether turns are split with this seed: an effect is then a step of its own.
fn splits(seed: u64) -> bool {
    let tells = || async {
        let sink = spawn!(idle(_));
        for _ in 0..4 {
            sink.tell(()).unwrap();
            yield_now().await;
        }
    };
    let [whole, split] = [Simulated::new(seed).whole_turns(), Simulated::new(seed)]
        .map(|simulated| simulated.try_run(tells()).unwrap().steps);
    split > whole
}

/// Tells 1 in a turn that then makes a change.
fn tells_first<R>(one: Address<u32>, change: impl FnOnce() -> R + Send + 'static) {
    let turn = async move {
        one.tell(1).unwrap();
        let _ = change();
    };
    greenroom::spawn(turn).detach();
}

fn look(is_seen: impl FnMut() -> bool + 'static) -> Look {
    Box::new(is_seen)
}

/// Looks whether a future is done.
fn is_done(future: impl Future + 'static) -> Look {
    let mut future: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
        let _ = future.await;
    });
    Box::new(move || {
        let mut cx = TaskContext::from_waker(Waker::noop());
        future.as_mut().poll(&mut cx).is_ready()
    })
}

async fn idle(mut cx: Context<()>) {
    while cx.recv().await.is_some() {}
}

/// Tells 1 for each message, and then panics.
async fn fails(mut cx: Context<()>, one: Address<u32>) {
    if cx.recv().await.is_some() {
        one.tell(1).unwrap();
        panic!("bomb");
    }
}

struct Child(Option<Handle<Child, ()>>);

/// Tells 1, adopts an actor, and notes if it is refused.
async fn adopts(mut cx: Context<Child>, one: Option<Address<u32>>, is_refused: Arc<AtomicBool>) {
    let Some(Child(Some(child))) = cx.recv().await else {
        return;
    };
    if let Some(one) = one {
        one.tell(1).unwrap();
    }
    match cx.try_adopt(child, |_| Child(None)) {
        Ok(()) => while cx.recv().await.is_some() {},
        Err(_) => is_refused.store(true, Ordering::Relaxed),
    }
}

fn actors() -> Vec<View> {
    vec![
        view("is_closed, after stop", |one| async move {
            let idle = spawn!(idle(_));
            let address = idle.address();
            tells_first(one, move || idle.stop());
            look(move || address.is_closed())
        }),
        view("is_closed, after kill", |one| async move {
            let idle = spawn!(idle(_));
            let address = idle.downgrade();
            tells_first(one, move || idle.kill());
            look(move || address.is_closed())
        }),
        view("closed", |one| async move {
            let idle = spawn!(idle(_));
            let address = idle.address();
            tells_first(one, move || idle.kill());
            is_done(async move { address.closed().await })
        }),
        view("the result of a join", |one| async move {
            let actor = spawn!(move |_cx: Context<()>| async move { one.tell(1).unwrap() });
            is_done(actor.join())
        }),
        view("the result of a task", |one| async move {
            is_done(greenroom::spawn(async move { one.tell(1).unwrap() }))
        }),
        view("upgrade", |one| async move {
            let idle = spawn!(idle(_));
            let weak = idle.downgrade();
            tells_first(one, move || drop(idle));
            look(move || weak.upgrade().is_none())
        }),
        view("len", |one| async move {
            let mute = spawn!(|cx: Context<()>| async move {
                cx.address().closed().await;
            });
            let (told, weak) = (mute.address(), mute.downgrade());
            tells_first(one, move || told.tell(()).unwrap());
            look(move || {
                let is_seen = weak.upgrade().is_some_and(|it| it.len() == 1);
                if is_seen {
                    mute.kill();
                }
                is_seen
            })
        }),
    ]
}

fn permits() -> Vec<View> {
    vec![
        view("the room that a permit gives back", |one| async move {
            let small = spawn!(idle(_), capacity = 1);
            let permit = small.reserve().await.unwrap();
            tells_first(one, move || drop(permit));
            look(move || small.tell(()).is_ok())
        }),
        view("a source that is cancelled", |one| async move {
            let (own, guard) = futures::channel::oneshot::channel();
            let waits = spawn!(move |mut cx: Context<()>| async move {
                let guard = cx.attach(futures::stream::pending());
                let _ = own.send(guard);
                cx.recv().await;
            });
            let weak = waits.downgrade();
            drop(waits);
            let guard = guard.await.unwrap();
            tells_first(one, move || drop(guard));
            look(move || weak.is_closed())
        }),
        view("an adoption", |one| async move {
            let is_refused = [false; 2].map(AtomicBool::new).map(Arc::new);
            let [first, second] = is_refused.clone();
            let first = spawn!(adopts(_, Some(one), first));
            let second = spawn!(adopts(_, None, second));
            let (to_first, to_second) = (first.address(), second.address());
            assert!(to_first.tell(Child(Some(second))).is_ok());
            assert!(to_second.tell(Child(Some(first))).is_ok());
            look(move || {
                let [first, second] = is_refused.each_ref().map(|it| it.load(Ordering::Relaxed));
                if first {
                    // The other adoption came first. Before the statistics are read, all arrives.
                    Runtime::current().stats();
                }
                first || second
            })
        }),
    ]
}

fn answers() -> Vec<View> {
    vec![
        view("is_wanted", |one| async move {
            let (reply, answer) = Reply::<()>::pair();
            tells_first(one, move || drop(answer));
            look(move || !reply.is_wanted())
        }),
        view("an answer", |one| async move {
            let (reply, answer) = Reply::<()>::pair();
            tells_first(one, move || reply.send(()));
            is_done(answer)
        }),
        view("the stats of a runtime", |one| async move {
            let runtime = Runtime::current();
            let before = runtime.stats().actors.len();
            let kept = Arc::new(Mutex::new(None));
            let keeps = kept.clone();
            tells_first(one, move || *keeps.lock().unwrap() = Some(spawn!(idle(_))));
            look(move || {
                let _kept = &kept;
                runtime.stats().actors.len() > before
            })
        }),
        view("the list of actors", |one| async move {
            let runtime = Runtime::current();
            let before = runtime.actors(9).len();
            let kept = Arc::new(Mutex::new(None));
            let keeps = kept.clone();
            tells_first(one, move || *keeps.lock().unwrap() = Some(spawn!(idle(_))));
            look(move || {
                let _kept = &kept;
                runtime.actors(9).len() > before
            })
        }),
    ]
}

fn supervisors() -> Vec<View> {
    let tree = || Supervisor::builder().spawn().unwrap();
    let begins = |one: Address<u32>| {
        actor(move |mut cx: Context<()>| {
            let _ = one.tell(1);
            async move { while cx.recv().await.is_some() {} }
        })
    };
    let tells_last = |one: &Address<u32>, has_begun: &Arc<AtomicBool>| {
        let (one, has_begun) = (one.clone(), has_begun.clone());
        actor(move |cx| {
            let _ = one.tell(2);
            has_begun.store(true, Ordering::Relaxed);
            idle(cx)
        })
    };
    vec![
        view("the begin of the next child", move |one| async move {
            let (tree, has_begun) = (tree(), Arc::new(AtomicBool::new(false)));
            tree.start(begins(one.clone())).unwrap();
            tree.start(tells_last(&one, &has_begun)).unwrap();
            look(move || {
                let _tree = &tree;
                has_begun.load(Ordering::Relaxed)
            })
        }),
        view(
            "the begin of the child after a supervisor",
            move |one| async move {
                let (tree, has_begun) = (tree(), Arc::new(AtomicBool::new(false)));
                let below = tree.supervisor(Supervisor::builder()).unwrap();
                below.start(begins(one.clone())).unwrap();
                tree.start(tells_last(&one, &has_begun)).unwrap();
                look(move || {
                    let _kept = (&tree, &below);
                    has_begun.load(Ordering::Relaxed)
                })
            },
        ),
    ]
}

fn restarts() -> Vec<View> {
    let tree = || Supervisor::builder().spawn().unwrap();
    vec![
        view("the last fault of a child", move |one| async move {
            let tree = tree();
            let child = tree.start(actor(move |cx| fails(cx, one.clone()))).unwrap();
            child.tell(()).unwrap();
            look(move || tree.children()[0].last_fault.is_some())
        }),
        view("the restarts of a child", move |one| async move {
            let tree = tree();
            let child = tree.start(actor(move |cx| fails(cx, one.clone()))).unwrap();
            child.tell(()).unwrap();
            look(move || tree.children()[0].restarts == 1)
        }),
        view("an escalation", move |one| async move {
            let tree = Supervisor::builder().intensity(0, Duration::from_secs(1));
            let tree = tree.spawn().unwrap();
            let child = tree.start(actor(move |cx| fails(cx, one.clone()))).unwrap();
            child.tell(()).unwrap();
            is_done(async move { tree.join().await.unwrap_err() })
        }),
        view("a child that is started", move |one| async move {
            let tree = tree();
            let starts = tree.clone();
            tells_first(one, move || starts.start(actor(idle)).unwrap());
            look(move || tree.children().len() == 1)
        }),
        view("a child that is restarted by hand", move |one| async move {
            let tree = tree();
            let child = tree.start(actor(idle)).unwrap();
            while tree.children()[0].state != ChildState::Running {
                yield_now().await;
            }
            let restarts = tree.clone();
            tells_first(one, move || restarts.restart(&child).unwrap());
            look(move || tree.children()[0].restarts == 1)
        }),
        view("a child that is stopped", move |one| async move {
            let tree = tree();
            let child = tree.start(actor(idle)).unwrap();
            let stops = tree.clone();
            tells_first(one, move || stops.stop_child(&child).unwrap());
            look(move || tree.children().is_empty())
        }),
    ]
}

fn names() -> Vec<View> {
    const NAME: Name<()> = Name::new("name");
    const GROUP: Group<()> = Group::new("group");
    vec![
        view("a name that is given", |one| async move {
            let idle = spawn!(idle(_));
            let named = idle.address();
            tells_first(one, move || NAME.register(&named).unwrap());
            look(move || {
                let _idle = &idle;
                NAME.get().is_ok()
            })
        }),
        view("a wait for a name", |one| async move {
            let idle = spawn!(idle(_));
            let named = idle.address();
            tells_first(one, move || NAME.register(&named).unwrap());
            is_done(async move {
                NAME.wait().await.unwrap();
                drop(idle);
            })
        }),
        view("a name that is freed", |one| async move {
            let idle = spawn!(idle(_));
            NAME.register(&idle).unwrap();
            tells_first(one, || NAME.unregister());
            look(move || {
                let _idle = &idle;
                NAME.get().is_err()
            })
        }),
        view("the members of a group", |one| async move {
            let idle = spawn!(idle(_));
            let joins = idle.address();
            tells_first(one, move || GROUP.join(&joins).unwrap());
            look(move || {
                let _idle = &idle;
                GROUP.members().len() == 1
            })
        }),
        view("the next member of a group", |one| async move {
            let idle = spawn!(idle(_));
            GROUP.join(&idle).unwrap();
            let leaves = idle.address();
            tells_first(one, move || GROUP.leave(&leaves));
            look(move || {
                let _idle = &idle;
                GROUP.next().is_none()
            })
        }),
    ]
}

/// Returns a spool with one worker, which tells 1 before each answer.
fn spool(one: Address<u32>) -> Spool<(), ()> {
    async fn answers(mut cx: Context<((), Reply<()>)>, one: Address<u32>) {
        while let Some(((), reply)) = cx.recv().await {
            one.tell(1).unwrap();
            reply.send(());
        }
    }
    let worker = move |_| spawn!(answers(_, one.clone()));
    Spool::builder(worker).workers(1).spawn().unwrap()
}

fn spools() -> Vec<View> {
    let outside = || Spool::<(), ()>::external().spawn().unwrap();
    vec![
        view("an answer of a spool", |one| async move {
            let spool = spool(one);
            is_done(async move { spool.ask(()).await.unwrap() })
        }),
        view("the answers that a spool counts", |one| async move {
            let spool = spool(one);
            let (reply, answer) = Reply::pair();
            spool.tell((), reply).unwrap();
            look(move || {
                let _answer = &answer;
                spool.status().answered == 1
            })
        }),
        view("a request that a spool has", move |one| async move {
            let spool = outside();
            let asks = spool.clone();
            tells_first(one, move || {
                let (reply, _answer) = Reply::pair();
                asks.tell((), reply).unwrap();
            });
            look(move || spool.status().refused_unavailable == 1)
        }),
        view("a worker that joins a spool", move |one| async move {
            async fn keeps(mut cx: Context<((), Reply<()>)>) {
                while cx.recv().await.is_some() {}
            }
            let spool = outside();
            let worker = spawn!(keeps(_));
            let joined = spool.clone();
            tells_first(one, move || joined.join_worker(worker.address()));
            look(move || spool.status().idle == 1)
        }),
    ]
}

fn markets() -> Vec<View> {
    let market = || Market::<u32>::builder().build().unwrap();
    vec![
        view("a job of a market", move |one| async move {
            let market = market();
            let offers = market.clone();
            tells_first(one, move || offers.try_offer(Job::new(|| ())).unwrap());
            look(move || market.status().created == 1)
        }),
        view("a market that is stopped", move |one| async move {
            let market = market();
            let stops = market.clone();
            tells_first(one, move || stops.stop());
            look(move || !market.status().is_operating)
        }),
        view("the result of a job", move |one| async move {
            let market = market();
            let job = market
                .try_offer(Job::new(move || one.tell(1).unwrap()))
                .unwrap();
            is_done(async move {
                let _market = market;
                job.await.unwrap();
            })
        }),
    ]
}

fn loopers() -> Vec<View> {
    let controller = || Controller::builder().build().unwrap();
    vec![
        view("the line of a looper", move |one| async move {
            let controller = controller();
            let (looper, lock) = (controller.looper(), controller.lock());
            let (end, ends) = futures::channel::oneshot::channel::<()>();
            let other = controller.looper();
            let holder = other.with(lock.exclusive()).spawn(|()| ends).unwrap();
            while controller.status().locks_held == 0 {
                yield_now().await;
            }
            let posts = looper.with(lock.exclusive()).post(|()| ());
            let waits = looper.clone();
            tells_first(one, move || waits.post(|| ()));
            look(move || {
                let _kept = (&controller, &holder, &posts, &end);
                looper.len() == 2
            })
        }),
        view("a looper that is closed", move |one| async move {
            let controller = controller();
            let looper = controller.looper();
            let weak = looper.downgrade();
            tells_first(one, move || drop(looper));
            look(move || {
                let _controller = &controller;
                weak.upgrade().is_none()
            })
        }),
        view("the stats of a controller", move |one| async move {
            let controller = controller();
            let looper = controller.looper();
            let watched = controller.clone();
            tells_first(one, move || drop(looper));
            look(move || watched.status().loopers == 0 && controller.status().ready == 0)
        }),
        view("the end of a posted task", move |one| async move {
            let controller = controller();
            let looper = controller.looper();
            let posted = looper.post(move || one.tell(1).unwrap()).unwrap();
            look(move || {
                let _controller = &controller;
                posted.is_finished()
            })
        }),
        view("the result of a posted task", move |one| async move {
            let controller = controller();
            let looper = controller.looper();
            let posted = looper.spawn(async move { one.tell(1).unwrap() }).unwrap();
            is_done(async move {
                posted.await.unwrap();
                drop((looper, controller));
            })
        }),
        view("a lock that is given back", move |one| async move {
            let controller = controller();
            let (looper, lock) = (controller.looper(), controller.lock());
            let first = looper
                .with(lock.exclusive())
                .post(move |()| one.tell(1).unwrap());
            let second = controller.looper().with(lock.exclusive()).post(|()| ());
            drop(first.unwrap());
            is_done(async move {
                second.unwrap().await.unwrap();
                drop((looper, lock, controller));
            })
        }),
    ]
}

fn calls() -> Vec<View> {
    vec![
        view("the result of a call of a hosted value", |one| async move {
            let pinned = Runtime::current().spawn_pinned("host").unwrap();
            let hosted = pinned.host(|| ()).await.unwrap();
            is_done(async move {
                hosted.with(move |()| one.tell(1).unwrap()).await.unwrap();
                drop(pinned);
            })
        }),
        view("the result of a blocking job", |one| async move {
            is_done(greenroom::unblock(move || one.tell(1).unwrap()))
        }),
        view("quiescence", |one| async move {
            tells_first(one, || ());
            Runtime::current().quiescent().await;
            look(|| true)
        }),
    ]
}
