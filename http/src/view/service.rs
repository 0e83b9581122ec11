//! Services of greenroom, as pages show them: spools, markets, and sets of keyed actors.

use std::hash::Hash;

use greenroom::market::{self, Market};
use greenroom::registry::Keyed;
use greenroom::spool::{Spool, SpoolStatus};

use super::console::{Section, SectionCell};

/// A service whose numbers a page shows: a [`Spool`], a [`Market`] or a set of [`Keyed`] actors. See
/// [`Mount::service`](crate::Mount::service).
///
/// This trait is sealed: its hidden method has a type without a path.
pub trait Service {
    /// Returns what reads the numbers. It holds a handle of the service.
    #[doc(hidden)]
    fn reader(&self) -> Box<ServiceReader>;
}

/// Reads the numbers of a service.
pub type ServiceReader = dyn Fn() -> ServiceNumbers + Send + Sync;

/// The numbers of a service at a moment.
#[derive(Debug)]
pub enum ServiceNumbers {
    Spool(SpoolStatus),
    Market(market::MarketStatus),
    /// The number of keys.
    Keyed(usize),
}

impl<Q: Send + 'static, R: Send + 'static> Service for Spool<Q, R> {
    fn reader(&self) -> Box<ServiceReader> {
        let spool = self.clone();
        Box::new(move || ServiceNumbers::Spool(spool.status()))
    }
}

impl<K: Hash + Eq + Clone + Send + 'static> Service for Market<K> {
    fn reader(&self) -> Box<ServiceReader> {
        let market = self.clone();
        Box::new(move || ServiceNumbers::Market(market.status()))
    }
}

impl<K: Send + 'static, M: Send + 'static> Service for Keyed<K, M> {
    fn reader(&self) -> Box<ServiceReader> {
        let set = self.clone();
        Box::new(move || ServiceNumbers::Keyed(set.len()))
    }
}

/// The tables of all kinds of services: their names, and their columns.
const TABLES: [(&str, &str); 3] = [
    (
        "spools",
        "spool|idle|busy|waiting|average ms|answered|refused|lost|deaths",
    ),
    (
        "markets",
        "market|idle|running|waiting|delayed|finished|failed|retried|discarded|longest wait ms",
    ),
    ("keyed actors", "set|keys"),
];

/// Returns a table for each kind of service that is among these.
pub(super) fn tables<'a>(
    services: impl Iterator<Item = (&'a str, ServiceNumbers)>,
) -> Vec<(String, Section)> {
    let mut tables = TABLES.map(|(name, columns)| (name, Section::new(columns.split('|'))));
    for (name, numbers) in services {
        let (table, row) = row(name, &numbers);
        tables[table].1.rows.push(row);
    }
    let shown = tables
        .into_iter()
        .filter(|(_, table)| !table.rows.is_empty());
    shown
        .map(|(name, table)| (name.to_owned(), table))
        .collect()
}

/// Returns the row of a service, and the index of its table.
fn row(name: &str, numbers: &ServiceNumbers) -> (usize, Vec<SectionCell>) {
    match numbers {
        ServiceNumbers::Spool(it) => {
            let refused = it.refused_overloaded
                + it.refused_busy
                + it.refused_timed_out
                + it.refused_unavailable
                + it.refused_aborted;
            let row = vec![
                name.into(),
                it.idle.into(),
                it.busy.into(),
                it.waiting.into(),
                (it.average.as_secs_f64() * 1e3).into(),
                it.answered.into(),
                refused.into(),
                it.lost.into(),
                it.deaths.into(),
            ];
            (0, row)
        }
        ServiceNumbers::Market(it) => {
            let stopped = if it.is_operating { "" } else { " (stopped)" };
            let row = vec![
                format!("{name}{stopped}").into(),
                it.idle.into(),
                it.running.into(),
                it.waiting.into(),
                it.delayed.into(),
                it.finished.into(),
                it.failed.into(),
                it.retried.into(),
                it.discarded.into(),
                (it.longest_wait.as_secs_f64() * 1e3).into(),
            ];
            (1, row)
        }
        ServiceNumbers::Keyed(keys) => (2, vec![name.into(), (*keys).into()]),
    }
}
