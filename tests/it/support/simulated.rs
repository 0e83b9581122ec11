//! A simulated runtime under a scenario that waits for it as it would for threads.
//!
//! Nothing runs in a simulation but while its thread waits in it. So whatever waits in the support
//! does that here, if a simulation is this thread's: not one scenario has to know.

use std::cell::{Cell, RefCell};
use std::future::Future;

use futures::channel::oneshot;
use greenroom::{Runtime, policy, unblock, yield_now};

/// Both kinds of schedule are among these.
pub const SEEDS: [u64; 20] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
];
/// A schedule of priorities, a random one, and a random one whose turns are all split.
pub const FEW_SEEDS: [u64; 3] = [0, 3, 7];

thread_local! {
    static OWN: RefCell<Option<Runtime>> = const { RefCell::new(None) };
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// From now on this thread drives the runtime, which it has built, whenever it waits.
pub fn adopt(runtime: &Runtime) {
    // A clone that does not count, so that the scenario has the last one.
    let own = runtime.block_on(async { Runtime::current() });
    OWN.with(|slot| slot.replace(Some(own)));
}

/// This thread waits as any other from now on.
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

/// Drives the future, or gives it back where no simulation is.
pub fn drive<F: Future>(future: F) -> Result<F::Output, F> {
    match own() {
        None => Err(future),
        Some(_) if is_held() => Ok(aside(future)),
        Some(own) => Ok(own.block_on(future)),
    }
}

/// While a home is held nothing of it runs: the future has a simulation of its own.
fn aside<F: Future>(future: F) -> F::Output {
    let policy = policy::Simulated::new(0);
    let runtime = Runtime::builder().policy(policy).build().unwrap();
    runtime.block_on(future)
}

/// Lets others run until it is so; says whether a simulation is here.
pub fn until(is_so: &dyn Fn() -> bool) -> bool {
    let looks = async {
        while !is_so() {
            yield_now().await;
        }
    };
    drive(looks).is_ok()
}

/// Lets all that is ready run, and what comes of it.
pub fn turn() {
    own().expect("a simulation is here").run_until_quiescent();
}

/// While it lives the home is held.
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

/// Makes the call in a job, or gives it back where no simulation is.
pub fn job<R, C>(call: C) -> Result<oneshot::Receiver<R>, C>
where
    R: Send + 'static,
    C: FnOnce() -> R + Send + 'static,
{
    match is_here() {
        true => task(async { unblock(call).await }).map_err(|_| unreachable!("it is here")),
        false => Err(call),
    }
}

/// Runs the future in a task, or gives it back where no simulation is.
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
