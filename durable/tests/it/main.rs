//! The behaviour of greenroom-durable, in simulations and with real files.

mod support;

mod blocking;
mod clock;
mod crashes;
mod files;
mod fork;
mod formats;
mod journals;
mod keyed;
mod keys;
mod leases;
mod model;
mod queues;
mod retries;
mod trace;
