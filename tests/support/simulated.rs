//! A simulated runtime under a scenario that waits for it as if it had threads.
//!
//! In a simulation tasks run only while the simulation's thread waits in it. The support's waiting
//! functions therefore wait inside this thread's simulation, if there is one, so no scenario needs
//! to handle the difference.

use std::cell::{Cell, RefCell};
use std::future::Future;

use futures::channel::oneshot;
use greenroom::{Runtime, policy, unblock, yield_now};

/// All seeds; they cover both kinds of schedule.
pub const SEEDS: [u64; 20] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
];
/// A priority schedule, a random schedule, and a random schedule whose turns are all split.
pub const FEW_SEEDS: [u64; 3] = [0, 3, 7];

thread_local! {
    static OWN: RefCell<Option<Runtime>> = const { RefCell::new(None) };
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Makes this thread drive `runtime`, which it has built, whenever it waits.
pub fn adopt(runtime: &Runtime) {
    // A clone that does not count as an owner, so that the scenario has the last one.
    let own = runtime.block_on(async { Runtime::current() });
    OWN.with(|slot| slot.replace(Some(own)));
}

/// Makes this thread wait like any other thread from now on.
pub fn forget() {
    OWN.with(|slot| slot.replace(None));
}

fn own() -> Option<Runtime> {
    OWN.try_with(|slot| slot.borrow().clone()).ok().flatten()
}

pub fn is_here() -> bool {
    own().is_some()
}

pub fn is_held() -> bool {
    HELD.get() > 0
}

/// Drives the future, or returns it where there is no simulation.
pub fn drive<F: Future>(future: F) -> Result<F::Output, F> {
    match own() {
        None => Err(future),
        Some(_) if is_held() => Ok(aside(future)),
        Some(own) => Ok(own.block_on(future)),
    }
}

/// Drives the future in a separate simulation: nothing of a held home may run.
fn aside<F: Future>(future: F) -> F::Output {
    let policy = policy::Simulated::new(0);
    let runtime = Runtime::builder().policy(policy).build().unwrap();
    runtime.block_on(future)
}

/// Lets other tasks run until the condition holds. Returns whether this thread has a simulation.
pub fn until(is_so: &dyn Fn() -> bool) -> bool {
    let looks = async {
        while !is_so() {
            yield_now().await;
        }
    };
    drive(looks).is_ok()
}

/// Runs all ready tasks, and all tasks that these make ready.
pub fn turn() {
    own()
        .expect("this thread has a simulation")
        .run_until_quiescent();
}

/// A guard: while it lives the home is held.
pub struct Held(());

impl Held {
    pub fn new() -> Held {
        HELD.set(HELD.get() + 1);
        Held(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Makes the call in a job, or returns it where there is no simulation.
pub fn job<R, C>(call: C) -> Result<oneshot::Receiver<R>, C>
where
    R: Send + 'static,
    C: FnOnce() -> R + Send + 'static,
{
    match is_here() {
        true => task(async { unblock(call).await })
            .map_err(|_| unreachable!("this thread has a simulation")),
        false => Err(call),
    }
}

/// Runs the future in a task, or returns it where there is no simulation.
pub fn task<F>(future: F) -> Result<oneshot::Receiver<F::Output>, F>
where
    F: Future<Output: Send> + Send + 'static,
{
    let Some(own) = own() else {
        return Err(future);
    };
    let (tells, outcome) = oneshot::channel();
    own.spawn(async { drop(tells.send(future.await)) }).detach();
    Ok(outcome)
}
