//! Loopers that share values behind locks, with tasks that panic and are cancelled.

use fastrand::Rng;
use greenroom::looper::{Controller, Posted, TaskError};

use crate::book::{AskOutcome, Book};
use crate::life;

pub static LOOPER: Book = Book::new("loopers");

const LOOPERS: usize = 8;
const LOCKS: usize = 4;

/// Bursts of a task, and the tasks at once in each.
const BURSTS: usize = 100;
const MOST: usize = 64;

/// One task of so many panics, another one is cancelled, and another one stops the world.
const BOMB: u32 = 500;
const CANCELLED: u32 = 20;
const WORLD: u32 = 100;

pub async fn load(mut rng: Rng) {
    let controller = Controller::builder().build().expect("a runtime");
    let loopers: Vec<_> = (0..LOOPERS).map(|_| controller.looper()).collect();
    let values: Vec<_> = (0..LOCKS).map(|_| controller.guarded(0u64)).collect();
    for _ in 0..BURSTS {
        let mut posted = Vec::new();
        for _ in 0..rng.usize(1..=MOST) {
            let looper = &loopers[rng.usize(..LOOPERS)];
            let value = &values[rng.usize(..LOCKS)];
            let work = work(rng.u32(..BOMB) == 0);
            let post = match rng.u32(..WORLD) {
                0 => controller.stop_the_world(move |_| work()).map_err(drop),
                _ if rng.bool() => looper.post(work).map_err(drop),
                _ => {
                    let locked = looper.with(value.exclusive());
                    let task = move |value: &mut u64| {
                        *value += 1;
                        work();
                    };
                    locked.post(task).map_err(drop)
                }
            };
            match post {
                Ok(task) => posted.push(task),
                Err(()) => LOOPER.told(AskOutcome::Refused),
            }
        }
        for task in posted {
            if rng.u32(..CANCELLED) == 0 {
                task.cancel();
            }
            told(task).await;
        }
    }
    controller.shutdown().await;
}

/// Returns the work of a task, with its letter.
fn work(is_bomb: bool) -> impl FnOnce() + Send + 'static {
    let mut letter = LOOPER.question();
    move || {
        letter.take();
        if is_bomb {
            LOOPER.fault(1);
            life::inject_panic();
        }
        letter.handled();
    }
}

async fn told(task: Posted<()>) {
    LOOPER.told(match task.await {
        Ok(()) => AskOutcome::Answered,
        Err(TaskError::Panicked(_)) => AskOutcome::NoReply,
        Err(_) => AskOutcome::Refused,
    });
}
