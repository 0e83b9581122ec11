//! Tasks and actors that are made on the thread of their stage, so that they need not be `Send`.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;

use greenroom::{Context, Fault, actor, spawn};

use crate::stage::on_both;
use crate::support::{WATCH, within};

async fn push(mut cx: Context<u32>, list: Rc<RefCell<Vec<u32>>>) -> Vec<u32> {
    while let Some(number) = cx.recv().await {
        list.borrow_mut().push(number);
    }
    list.borrow().clone()
}

#[test]
fn a_local_task_and_its_value_need_not_be_send() {
    on_both(|stage| {
        let count = Rc::new(Cell::new(0));
        let own = count.clone();
        let task = stage.spawn_local(async move {
            for _ in 0..3 {
                greenroom::yield_now().await;
                own.set(own.get() + 1);
            }
            own
        });
        assert_eq!(count.get(), 0, "it runs with the stage");
        while !task.is_finished() {
            stage.run_ready();
        }
        assert!(Rc::ptr_eq(&stage.block_on(task), &count));
        assert_eq!((count.get(), Rc::strong_count(&count)), (3, 1));
    });
}

#[test]
fn a_local_task_that_is_cancelled_is_dropped_on_the_stage() {
    on_both(|stage| {
        let kept = Rc::new(());
        let spawn = || {
            let own = kept.clone();
            stage.spawn_local(async move {
                pending::<()>().await;
                drop(own);
            })
        };
        let (begun, new) = (spawn(), spawn());
        stage.run_ready();
        // The handle may be dropped anywhere, since the value is `Send`.
        std::thread::scope(|scope| scope.spawn(|| drop((begun, new))).join().unwrap());
        assert_eq!(Rc::strong_count(&kept), 3);
        stage.run_ready();
        assert_eq!(Rc::strong_count(&kept), 1);
    });
}

#[test]
fn local_tasks_and_actors_that_are_left_are_dropped_with_their_stage() {
    within(WATCH, || {
        let kept = Rc::new(RefCell::new(Vec::new()));
        let stage = greenroom::Pinned::here();
        let own = kept.clone();
        let task = stage.spawn_local(async move { own.borrow().len() });
        let actor = spawn!(push(_, kept.clone()), on = &stage);
        assert_eq!(Rc::strong_count(&kept), 3);
        drop(stage);
        assert_eq!(Rc::strong_count(&kept), 1);
        let joined = crate::support::drive(actor.join());
        assert!(matches!(joined, Err(Fault::NotStarted)));
        assert_eq!(crate::support::drive(task.fallible()), None);
    });
}

#[test]
fn an_actor_on_the_stage_takes_arguments_that_are_not_send() {
    on_both(|stage| {
        let list = Rc::new(RefCell::new(vec![1]));
        let push = spawn!(push(_, list.clone()), on = stage, name = "push");
        push.tell(2).unwrap();
        push.tell(3).unwrap();
        let address = push.address();
        address.stop();
        assert_eq!(stage.block_on(push.join()).unwrap(), [1, 2, 3]);
        assert_eq!(*list.borrow(), [1, 2, 3]);
        assert_eq!(Rc::strong_count(&list), 1);
    });
}

#[test]
fn a_closure_with_values_that_are_not_send_is_spawned_or_given_back() {
    on_both(|stage| {
        let own = Rc::new(5);
        let kept = own.clone();
        let counts = actor(async move |mut cx: Context<()>| {
            cx.recv().await;
            *kept
        });
        let counts = counts.on(stage).try_spawn().unwrap();
        assert_eq!(stage.block_on(counts.join()).unwrap(), 5);
        let kept = own.clone();
        let refused = actor(async move |_cx: Context<()>| drop(kept));
        let refused = refused.capacity(0).on(stage).try_spawn().unwrap_err();
        assert_eq!(Rc::strong_count(&own), 2);
        drop(refused.into_inner());
        assert_eq!(Rc::strong_count(&own), 1);
    });
}

#[test]
fn a_stage_whose_runtime_has_ended_drops_what_is_local() {
    within(WATCH, || {
        let runtime = crate::stage::runtime();
        let stage = runtime.pinned_here();
        drop(runtime);
        stage.run_ready();
        let kept = Rc::new(RefCell::new(Vec::new()));
        let own = kept.clone();
        let task = stage.spawn_local(async move { drop(own) });
        let actor = spawn!(push(_, kept.clone()), on = &stage);
        assert_eq!(Rc::strong_count(&kept), 1);
        assert!(task.is_finished());
        let joined = crate::support::drive(actor.join());
        assert!(matches!(joined, Err(Fault::NotStarted)));
    });
}
