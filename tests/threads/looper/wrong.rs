//! Wrong use: each is an error with a text, and nothing is lost.

use super::*;

use greenroom::BuildError;
use greenroom::looper::{LockDetail, World};

use crate::support::{Drops, drive};

/// What wrong uses are made with.
struct Stage {
    controller: Controller,
    looper: Looper,
    value: Guarded<i32>,
    lock: Lock,
    closed: Guarded<i32>,
    foreign: Guarded<i32>,
}

impl Stage {
    async fn new() -> Stage {
        let builder = Controller::builder().lanes(1).priorities(3);
        let controller = builder.build().unwrap();
        let closed = controller.guarded_named("closed", 1);
        assert_eq!(closed.close().await, Ok(1));
        Stage {
            looper: controller.looper_named("teller"),
            value: controller.guarded_named("accounts", 1),
            lock: controller.lock_named("door"),
            closed,
            foreign: super::controller(1).guarded_named("foreign", 1),
            controller,
        }
    }
}

type Attempts = fn(&Stage) -> Result<bool, LockError>;
type Unlocks = fn(&Stage) -> Result<(), LockError>;
type Worlds = fn(&Stage, &mut World) -> Result<(), LockError>;
type Posts = fn(&Stage) -> Posted<()>;

const ATTEMPTS: &[(Attempts, &str)] = &[
    (
        |it| it.looper.attempt(it.closed.shared()),
        "teller did not get closed: closed",
    ),
    (
        |it| it.looper.attempt(it.foreign.shared()),
        "teller has another controller than foreign",
    ),
    (
        |it| {
            it.looper.attempt(it.value.shared()).unwrap();
            it.looper.attempt(it.value.shared())
        },
        "teller already holds or requests accounts",
    ),
    (
        |it| {
            it.looper.attempt(it.value.shared()).unwrap();
            it.looper.attempt(it.value.exclusive())
        },
        "teller already holds or requests accounts",
    ),
    (
        |it| it.looper.attempt((it.value.shared(), it.value.exclusive())),
        "teller already holds or requests accounts",
    ),
    (
        |it| {
            it.looper
                .attempt((it.lock.shared(), it.value.held_shared()))
        },
        "teller does not hold accounts",
    ),
    (
        |it| {
            it.looper.attempt(it.value.shared()).unwrap();
            it.looper.attempt(it.value.held_exclusive())
        },
        "teller does not hold accounts",
    ),
    (
        |it| {
            drop(it.controller.looper());
            let looper = it.controller.looper_named("late");
            drive(looper.close());
            looper.attempt(it.lock.exclusive())
        },
        "late did not get door: closed",
    ),
];

const UNLOCKS: &[(Unlocks, &str)] = &[
    (
        |it| it.looper.unlock(&it.value),
        "teller does not hold accounts",
    ),
    (|it| it.looper.unlock(&it.lock), "teller does not hold door"),
    (
        |it| it.looper.unlock(&it.closed),
        "teller does not hold closed",
    ),
    (
        |it| it.looper.unlock(&it.foreign),
        "teller has another controller than foreign",
    ),
    (
        |it| {
            let other = it.controller.looper();
            other.attempt(it.lock.shared()).unwrap();
            it.looper.unlock(&it.lock)
        },
        "teller does not hold door",
    ),
    (
        |it| {
            it.looper.attempt(it.lock.shared()).unwrap();
            it.looper.unlock(&it.lock).unwrap();
            it.looper.unlock(&it.lock)
        },
        "teller does not hold door",
    ),
];

const WORLDS: &[(Worlds, &str)] = &[
    (
        |it, world| world.get(&it.closed).map(drop),
        "the world did not get closed: closed",
    ),
    (
        |it, world| world.get_mut(&it.closed).map(drop),
        "the world did not get closed: closed",
    ),
    (
        |it, world| world.get(&it.foreign).map(drop),
        "the world has another controller than foreign",
    ),
    (
        |it, world| world.with((it.value.shared(), it.closed.shared()), |_| ()),
        "the world did not get closed: closed",
    ),
    (
        |it, world| world.with((it.value.shared(), it.foreign.exclusive()), |_| ()),
        "the world has another controller than foreign",
    ),
    (
        |it, world| world.with((it.value.shared(), it.value.shared()), |_| ()),
        "the world already holds or requests accounts",
    ),
];

/// Tasks that are accepted, and refused when their turn has come.
const POSTS: &[(Posts, &str)] = &[
    (
        |it| it.looper.with(it.closed.shared()).post(|_| ()).unwrap(),
        "teller did not get closed: closed",
    ),
    (
        |it| {
            it.looper.attempt(it.value.shared()).unwrap();
            it.looper.with(it.value.exclusive()).post(|_| ()).unwrap()
        },
        "teller already holds or requests accounts",
    ),
    (
        |it| {
            let set = (it.value.shared(), it.lock.shared(), it.value.shared());
            it.looper.with(set).spawn(|_| async {}).unwrap()
        },
        "teller already holds or requests accounts",
    ),
    (
        |it| it.looper.with(it.value.held_shared()).post(|_| ()).unwrap(),
        "teller does not hold accounts",
    ),
    (
        |it| {
            it.looper.attempt(it.lock.shared()).unwrap();
            it.looper
                .with(it.lock.held_exclusive())
                .post(|()| ())
                .unwrap()
        },
        "teller does not hold door",
    ),
];

#[test]
fn wrong_attempts_and_unlocks_name_the_looper_and_the_lock() {
    everywhere(|| async {
        for (attempts, text) in ATTEMPTS {
            let stage = Stage::new().await;
            assert_eq!(attempts(&stage).unwrap_err().to_string(), *text);
        }
        for (unlocks, text) in UNLOCKS {
            let stage = Stage::new().await;
            assert_eq!(unlocks(&stage).unwrap_err().to_string(), *text);
        }
    });
}

#[test]
fn a_wrong_request_in_the_world_is_an_error_and_the_rest_can_be_reached() {
    everywhere(|| async {
        for (asks, text) in WORLDS {
            let stage = Stage::new().await;
            let controller = stage.controller.clone();
            let world = controller.stop_the_world(move |world| {
                let error = asks(&stage, world).unwrap_err();
                (error, *world.get(&stage.value).unwrap())
            });
            let (error, value) = world.unwrap().await.unwrap();
            assert_eq!((error.to_string().as_str(), value), (*text, 1));
        }
    });
}

#[test]
fn a_wrong_request_of_a_task_is_its_result_and_the_next_task_runs() {
    everywhere(|| async {
        for (posts, text) in POSTS {
            let stage = Stage::new().await;
            let posted = posts(&stage);
            let next = stage.looper.post(|| 5).unwrap();
            let error = posted.await.unwrap_err();
            assert_eq!(error.to_string(), format!("the task did not run: {text}"));
            assert_eq!(next.await.unwrap(), 5);
            drop(stage.looper);
            wait_for(|| stage.controller.status().locks_held == 0).await;
        }
    });
}

#[test]
fn the_parts_of_an_error_can_be_asked_for() {
    everywhere(|| async {
        let stage = Stage::new().await;
        let error = stage.looper.unlock(&stage.lock).unwrap_err();
        let LockError::NotHeld(detail) = &error else {
            panic!("{error:?}");
        };
        assert_eq!((detail.looper(), detail.lock()), ("teller", "door"));
        // Loopers and locks without a name have a number.
        let (looper, lock) = (stage.controller.looper(), stage.controller.lock());
        let other = looper.unlock(&lock).unwrap_err();
        let text = format!("looper {} does not hold lock {}", looper.id(), lock.id());
        assert_eq!(other.to_string(), text);
        let detail: LockDetail = detail.clone();
        assert_eq!(other, LockError::NotHeld(detail));
    });
}

#[test]
fn a_task_that_is_not_accepted_comes_back_with_the_reason() {
    everywhere(|| async {
        let stage = Stage::new().await;
        let drops = Drops::default();
        let task = || {
            let captured = drops.one();
            move || drop(captured)
        };
        let error = stage.looper.priority(4).post(task()).unwrap_err();
        let asked = PostProblem::Priority {
            asked: 4,
            highest: 3,
        };
        assert_eq!(error.problem(), asked);
        let text = "the task was not accepted: priority 4 is higher than the highest, 3";
        assert_eq!(error.to_string(), text);
        assert_eq!(drops.count(), 0);
        error.into_inner()();
        assert_eq!(drops.count(), 1);

        let captured = drops.one();
        let foreign = (stage.value.shared(), stage.foreign.shared());
        let error = stage
            .looper
            .with(foreign)
            .spawn(move |_| async { captured });
        let Err(error) = error else {
            panic!("it was accepted");
        };
        assert_eq!(error.problem(), PostProblem::Foreign);
        let text = "the task was not accepted: a lock belongs to another controller";
        assert_eq!((error.to_string().as_str(), drops.count()), (text, 1));
        drop(error);

        stage.looper.close().await;
        let future = Box::pin(async { 5 });
        let error = stage.looper.spawn(future).unwrap_err();
        assert_eq!(error.problem(), PostProblem::Closed);
        assert_eq!(
            error.to_string(),
            "the task was not accepted: the looper or its controller is closed"
        );
        assert_eq!(error.into_inner().await, 5);

        stage.controller.shutdown().await;
        let error = stage.controller.stop_the_world(|_| 1).unwrap_err();
        assert_eq!(error.problem(), PostProblem::Closed);
        let late = stage.controller.looper();
        assert!(late.is_closed());
        assert_eq!(late.post(|| 6).unwrap_err().into_inner()(), 6);
    });
}

/// Returns the option and the text of a controller that cannot be built.
fn impossible(built: Result<Controller, BuildError>) -> (&'static str, String) {
    match built.unwrap_err() {
        BuildError::Impossible { option, reason } => (option, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_controller_that_cannot_be_built_says_why() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let built = Controller::builder().on(&runtime).lanes(0).build();
        let least = "is 0, below the least value, 1".to_owned();
        assert_eq!(impossible(built), ("lanes", least));
        let (option, reason) = impossible(Controller::builder().build());
        assert_eq!(
            (option, reason.contains("runtime")),
            ("runtime", true),
            "{reason}"
        );
        drive(runtime.shutdown());
        let (option, reason) = impossible(Controller::builder().on(&runtime).build());
        assert_eq!(
            (option, reason.contains("shut")),
            ("runtime", true),
            "{reason}"
        );
    });
}

#[test]
fn a_priority_up_to_the_highest_is_accepted() {
    everywhere(|| async {
        let builder = Controller::builder().priorities(u8::MAX);
        let controller = builder.build().unwrap();
        let looper = controller.looper();
        for priority in [0, 1, 63, 64, 127, 128, u8::MAX] {
            let posted = looper
                .priority(priority)
                .post(|| looper::current().map(|current| current.priority()));
            assert_eq!(posted.unwrap().await.unwrap(), Some(priority));
        }
        let lowest = Controller::builder().build().unwrap().looper();
        let error = lowest.priority(1).post(|| ()).unwrap_err();
        assert!(matches!(
            error.problem(),
            PostProblem::Priority {
                asked: 1,
                highest: 0
            }
        ));
    });
}

#[test]
fn a_panic_that_is_not_awaited_reaches_on_fault_with_the_name_of_the_looper() {
    within(WATCH, || {
        let log: Log<(String, String)> = Log::default();
        let notes = log.clone();
        let builder = Runtime::builder().workers(1).on_fault(move |fault| {
            let name = fault.name.unwrap_or("none").to_owned();
            notes.add((name, fault.fault.to_string()));
        });
        let runtime = builder.build().unwrap();
        let controller = Controller::builder().on(&runtime).build().unwrap();
        let looper = controller.looper_named("teller");
        drop(looper.post(|| panic!("bomb one")));
        drop(looper.spawn(async { panic!("bomb two") }));
        drop(controller.stop_the_world(|_| panic!("bomb three")));
        let other = controller.looper();
        drop(other.post(|| panic!("bomb four")));
        // A result that is awaited is not reported.
        let awaited = looper.post(|| panic!("bomb five")).unwrap();
        drive(awaited).unwrap_err();
        // One that is dropped later is.
        let late = looper.post(|| panic!("bomb six")).unwrap();
        drive(looper.post(|| ()).unwrap()).unwrap();
        assert!(late.is_finished());
        drop(late);
        drive(controller.shutdown());
        let mut faults = log.take();
        faults.sort();
        let names: Vec<&str> = faults.iter().map(|(name, _)| name.as_str()).collect();
        let number = format!("looper {}", other.id());
        let loopers = [&number, "teller", "teller", "teller", "the world"];
        assert_eq!(names, loopers);
        assert!(
            faults.iter().all(|(_, text)| text.contains("bomb")),
            "{faults:?}"
        );
    });
}
