//! Leases: one holder of a name at a time.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_lite::future::or;
use greenroom::time::{Instant, sleep};
use greenroom::{Task, spawn};

use crate::engine::{EngineHandle, ValueSender, lock, reply};
use crate::error::{StoreError, StoreProblem, millis};
use crate::fence::Fence;
use crate::records::command::{Command, RawFence, StoreAnswer};
use crate::stored::within;

/// A lease is renewed so many times before it would be over.
const RENEWALS: u32 = 3;

/// The pause after a renewal that has failed.
const PAUSE: Duration = Duration::from_millis(100);

/// How a [`Lease`] is taken.
#[derive(Debug)]
#[must_use = "a lease is taken by `hold`"]
pub struct LeaseBuilder {
    engine: EngineHandle,
    name: String,
    time: Duration,
}

impl LeaseBuilder {
    pub(crate) fn new(engine: EngineHandle, name: &str) -> Self {
        LeaseBuilder {
            engine,
            name: name.to_owned(),
            time: Duration::from_secs(10),
        }
    }

    /// Sets how long the lease lasts without a renewal, by default 10 s, and at least 10 ms. After the end
    /// of its process another one waits for as long.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time.max(Duration::from_millis(10));
        self
    }

    /// Waits until the lease is free, and takes it. A task of the current runtime renews it.
    ///
    /// # Errors
    /// [`StoreProblem::TooLarge`] for the name, and any other problem of the store.
    ///
    /// # Panics
    /// If no runtime is current.
    ///
    /// # Cancel safety
    /// If the future is dropped, the lease may have been taken for its time.
    pub async fn hold(self) -> Result<Lease, StoreError> {
        let (name, engine) = (self.name, self.engine);
        let error = |why| StoreError::new(&name, why);
        within("name", name.len(), engine.limits().name).map_err(error)?;
        let time = millis(self.time);
        loop {
            let hold = Command::Hold {
                name: name.clone(),
                time,
            };
            let asked = Instant::now();
            let StoreAnswer::Token(token) = engine.call(hold).await.map_err(error)? else {
                return Err(error(StoreProblem::Missing));
            };
            let held = Arc::new(HeldLease {
                engine: engine.clone(),
                name: name.clone(),
                token,
                time: self.time,
                state: Mutex::new(LeaseState {
                    until: asked + self.time,
                    waiting: Vec::new(),
                }),
            });
            // It was asked for long ago, while another one had it: only a renewal says from when it counts.
            match held.renew().await {
                Ok(()) => {}
                Err(StoreProblem::Stale) => continue,
                Err(why) => return Err(error(why)),
            }
            let renewing = spawn(keep(held.clone()));
            return Ok(Lease {
                held,
                _renewing: renewing,
            });
        }
    }
}

/// A lease in these hands, which is renewed until it is dropped.
///
/// In the normal case nobody else holds one of this name. Its time is counted by the monotonic clock, from
/// before a renewal is written. If the process is stopped for longer than that, another one may hold it
/// before this one notices. So a change in the store should be [fenced](Lease::fence), and a change
/// elsewhere should carry the [token](Lease::token).
///
/// ```
/// use greenroom_durable::Store;
///
/// # async fn program(store: Store) -> Result<(), Box<dyn std::error::Error>> {
/// let lease = store.lease("billing-leader").hold().await?;
/// assert!(lease.is_held());
/// // Work, and stop when `lease.lost().await` returns.
/// # Ok(())
/// # }
/// # greenroom::sim::run(7, async {
/// #     let file = greenroom_durable::SimFile::new();
/// #     program(Store::simulated(&file).open().await.unwrap()).await.unwrap();
/// # });
/// ```
#[must_use = "a lease that is dropped is given up"]
pub struct Lease {
    held: Arc<HeldLease>,
    /// It ends when it is dropped.
    _renewing: Task<()>,
}

struct HeldLease {
    engine: EngineHandle,
    name: String,
    token: i64,
    time: Duration,
    state: Mutex<LeaseState>,
}

struct LeaseState {
    until: Instant,
    /// Those who wait for its loss.
    waiting: Vec<ValueSender<()>>,
}

impl Lease {
    /// Returns the token, which is greater than all that the store has given away before.
    pub fn token(&self) -> i64 {
        self.held.token
    }

    /// Returns whether the lease is held by now, as far as this process knows.
    pub fn is_held(&self) -> bool {
        Instant::now() < self.held.until()
    }

    /// Returns what fences changes in this store.
    pub fn fence(&self) -> Fence {
        Fence(RawFence::Lease {
            name: self.held.name.clone(),
            token: self.held.token,
        })
    }

    /// Waits until the lease is lost: another one holds it, or it could not be renewed in time.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn lost(&self) {
        loop {
            let until = self.held.until();
            if Instant::now() >= until {
                return;
            }
            let (sender, lost) = reply();
            {
                let mut state = lock(&self.held.state);
                state.waiting.retain(ValueSender::is_wanted);
                state.waiting.push(sender);
            }
            let lost = async {
                lost.await;
            };
            or(lost, sleep(until.duration_since(Instant::now()))).await;
        }
    }
}

impl Drop for Lease {
    /// Gives the lease back.
    fn drop(&mut self) {
        self.held.lose();
        let (name, token) = (self.held.name.clone(), self.held.token);
        drop(self.held.engine.submit(Command::EndLease { name, token }));
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("name", &self.held.name)
            .field("token", &self.held.token)
            .finish_non_exhaustive()
    }
}

impl HeldLease {
    fn until(&self) -> Instant {
        lock(&self.state).until
    }

    async fn renew(&self) -> Result<(), StoreProblem> {
        let asked = Instant::now();
        let renew = Command::RenewLease {
            name: self.name.clone(),
            token: self.token,
            time: millis(self.time),
        };
        self.engine.call(renew).await?;
        lock(&self.state).until = asked + self.time;
        Ok(())
    }

    /// Notes that it is over, and tells those who wait for that.
    fn lose(&self) {
        let waiting = {
            let mut state = lock(&self.state);
            state.until = state.until.min(Instant::now());
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
    }
}

/// Renews a lease until it is lost.
async fn keep(held: Arc<HeldLease>) {
    sleep(held.time / RENEWALS).await;
    while Instant::now() < held.until() {
        match held.renew().await {
            Ok(()) => sleep(held.time / RENEWALS).await,
            Err(StoreProblem::Stale) => break,
            Err(_) => sleep(PAUSE.min(held.time / RENEWALS)).await,
        }
    }
    held.lose();
}
