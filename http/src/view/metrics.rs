//! `/metrics`: numbers for Prometheus, as OpenMetrics text.
//!
//! The names do not change between versions. All begin with `greenroom_`, but for those that OpenTelemetry
//! gives. No label has the number or the name of an actor.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom::spool::SpoolStatus;
use greenroom::{Runtime, SampledTimes, Stats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use super::count_book::CountBook;
use super::mount::Mount;
use super::service::ServiceNumbers;
use crate::counts::Numbers;
use crate::message::HttpResponse;

/// Where the page is. A server that has a page there measures its requests.
pub(crate) const METRICS_PATH: &str = "/metrics";

/// Returns the page `/metrics`, with numbers for Prometheus.
///
/// | name | type | labels |
/// |---|---|---|
/// | `greenroom_turns_total`, `greenroom_steals_total`, `greenroom_parks_total` | counter | `worker` |
/// | `greenroom_local_queue` | gauge | `worker` |
/// | `greenroom_injector`, `greenroom_tasks`, `greenroom_actors`, `greenroom_waiting_messages` | gauge | |
/// | `greenroom_messages_total` | counter | |
/// | `greenroom_turn_duration_seconds`, `greenroom_ask_duration_seconds` | histogram | |
/// | `greenroom_build_info` | info | `version` |
/// | `http_server_request_duration_seconds` | histogram | `http_route` |
/// | `greenroom_http_requests_total` | counter | `type`, `status` |
/// | `greenroom_http_limits_total` | counter | `limit` |
/// | `greenroom_http_refused_callers_total` | counter | `cause` |
/// | `greenroom_http_connections_total` | counter | |
/// | `greenroom_http_open_connections`, `greenroom_http_requests_in_flight` | gauge | |
/// | `greenroom_spool_idle`, `greenroom_spool_busy`, `greenroom_spool_waiting` | gauge | `spool` |
/// | `greenroom_spool_average_seconds` | gauge | `spool` |
/// | `greenroom_spool_answered_total`, `greenroom_spool_lost_total`, `greenroom_spool_deaths_total` | counter | `spool` |
/// | `greenroom_spool_refused_total` | counter | `spool`, `kind` |
///
/// `greenroom_messages_total` has the messages that actors handled until the page was asked for while
/// they lived: what an actor handles between that and its end is missing. A request is in flight while
/// an actor works for it.
///
/// A request takes from the time when its head is complete until the head of its answer is made: it has
/// the time of its body, of the ask, and of the mailbox in between. Its route is the registered type; it
/// is empty for a page, and for a request that is refused. With this page a request costs two looks at the
/// clock and two additions more: 0.25 µs on a virtual machine with a slow clock. Of the turns of actors on
/// workers one in 64 is measured, and of the asks of a thread one in 61, unless the runtime [does not
/// count](greenroom::Builder::counting). Not measured is the time that a message waits in a mailbox: that
/// would cost each message two looks at the clock. All turns are measured by an
/// [`Observer`](greenroom::Observer), and single messages by spans, with `greenroom::trace::Tracing`. Either
/// may have a [`collector`](Mount::collector) here.
///
/// ```
/// use greenroom_http::{Server, metrics};
///
/// let server = Server::bind("127.0.0.1:0").mount(metrics());
/// # drop(server);
/// ```
pub fn metrics() -> Mount {
    let counted = Mutex::new((CountBook::default(), 0));
    Mount::new(METRICS_PATH, move |mount, _, numbers| {
        let runtime = Runtime::try_current().map(|runtime| {
            // The lock keeps looks in their order.
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            let (book, messages) = &mut *counted;
            let stats = runtime.stats();
            *messages += book.messages_since(&stats.actors);
            book.note(&stats.actors);
            (stats, *messages)
        });
        page(mount, runtime, numbers)
    })
}

fn page(mount: &Mount, runtime: Option<(Stats, u64)>, numbers: Numbers) -> HttpResponse {
    let mut registry = Registry::default();
    let services = mount.services.iter();
    let spools = services.filter_map(|(name, read)| match read() {
        ServiceNumbers::Spool(status) => Some((name.clone(), status)),
        _ => None,
    });
    registry.register_collector(Box::new(MetricsSnapshot {
        runtime,
        numbers,
        spools: spools.collect(),
    }));
    // The registry takes each one for this page, so it gets a handle.
    for collector in &mount.collectors {
        registry.register_collector(Box::new(SharedCollector(collector.clone())));
    }
    let mut page = String::new();
    if text::encode(&mut page, &registry).is_err() {
        return HttpResponse::new(500, "a collector failed");
    }
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    HttpResponse::new(200, page).header("content-type", media)
}

/// A collector of the program, which stays for the next page.
#[derive(Debug)]
struct SharedCollector(Arc<dyn Collector>);

impl Collector for SharedCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }
}

/// The numbers at the moment of a request.
#[derive(Debug)]
struct MetricsSnapshot {
    /// The state of the runtime, and the messages that its actors have handled.
    runtime: Option<(Stats, u64)>,
    numbers: Numbers,
    spools: Vec<(String, SpoolStatus)>,
}

/// Encodes a counter or a gauge with these labels. Each row has their values, and the number.
fn family(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    kind: MetricType,
    labels: &[&str],
    rows: impl IntoIterator<Item = (Vec<String>, f64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (values, number) in rows {
        let labels: Vec<_> = labels.iter().copied().zip(values).collect();
        let encode = |row: &mut prometheus_client::encoding::MetricEncoder<'_>| match kind {
            MetricType::Counter => row.encode_counter::<[(&str, &str); 0], f64, f64>(&number, None),
            _ => row.encode_gauge(&number),
        };
        match labels.is_empty() {
            true => encode(&mut family)?,
            false => encode(&mut family.encode_family(&labels)?)?,
        }
    }
    Ok(())
}

/// What a histogram has no values of.
type Exemplars = HashMap<usize, Exemplar<[(&'static str, &'static str); 0], f64>>;

/// Encodes a histogram of seconds with these labels. Each row has their values, the counts up to each
/// bound and above the one before, and the sum.
fn histogram(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    labels: &[&str],
    rows: impl IntoIterator<Item = (Vec<String>, Vec<(f64, u64)>, f64)>,
) -> fmt::Result {
    // The encoder appends `_seconds`.
    let unit = Unit::Seconds;
    let mut family = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
    for (values, counts, sum) in rows {
        let labels: Vec<_> = labels.iter().copied().zip(values).collect();
        let count = counts.iter().map(|(_, count)| count).sum();
        let none: Option<&Exemplars> = None;
        match labels.is_empty() {
            true => family.encode_histogram(sum, count, &counts, none)?,
            false => {
                (family.encode_family(&labels)?).encode_histogram(sum, count, &counts, none)?
            }
        }
    }
    Ok(())
}

/// Encodes a histogram of samples of the runtime.
fn sampled(
    encoder: &mut DescriptorEncoder<'_>,
    named: (&str, &str),
    times: &SampledTimes,
) -> fmt::Result {
    let bounds = SampledTimes::BOUNDS.iter().map(Duration::as_secs_f64);
    let counts = bounds.chain([f64::INFINITY]).zip(times.counts).collect();
    let row = (Vec::new(), counts, times.total.as_secs_f64());
    histogram(encoder, named, &[], [row])
}

impl MetricsSnapshot {
    fn of_runtime(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        use MetricType::{Counter, Gauge};
        let Some((stats, handled)) = &self.runtime else {
            return Ok(());
        };
        let of_worker = |number: fn(&greenroom::WorkerStats) -> f64| {
            let workers = stats.workers.iter().enumerate();
            workers.map(move |(index, worker)| (vec![index.to_string()], number(worker)))
        };
        type Read = fn(&greenroom::WorkerStats) -> f64;
        let numbers: [(&str, &str, MetricType, Read); 4] = [
            ("turns", "Turns that a worker has begun", Counter, |it| {
                it.runs as f64
            }),
            (
                "steals",
                "Times that a worker took tasks from another one",
                Counter,
                |it| it.steals as f64,
            ),
            ("parks", "Times that a worker parked", Counter, |it| {
                it.parks as f64
            }),
            (
                "local_queue",
                "Tasks in the queue of a worker",
                Gauge,
                |it| it.queued as f64,
            ),
        ];
        for (name, help, kind, number) in numbers {
            let name = format!("greenroom_{name}");
            family(encoder, (&name, help), kind, &["worker"], of_worker(number))?;
        }
        // Numbers of the whole runtime have no label.
        let messages: usize = stats.actors.iter().map(|actor| actor.mailbox).sum();
        for (name, help, number) in [
            (
                "greenroom_injector",
                "Tasks from outside that wait for a worker",
                stats.injector,
            ),
            ("greenroom_tasks", "Live plain tasks", stats.tasks),
            ("greenroom_actors", "Live actors", stats.actors.len()),
            (
                "greenroom_waiting_messages",
                "Messages in mailboxes",
                messages,
            ),
        ] {
            family(
                encoder,
                (name, help),
                Gauge,
                &[],
                [(Vec::new(), number as f64)],
            )?;
        }
        let handled = [(Vec::new(), *handled as f64)];
        let named = ("greenroom_messages", "Messages that actors have handled");
        family(encoder, named, Counter, &[], handled)?;
        let turns = "Time of a turn of an actor; one in 64 is measured";
        let asks = "Time from a question to its answer; one in 61 is measured";
        sampled(
            encoder,
            ("greenroom_turn_duration", turns),
            &stats.turn_times,
        )?;
        sampled(encoder, ("greenroom_ask_duration", asks), &stats.ask_times)
    }

    fn of_build(encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        // The encoder appends `_info`.
        let help = "The version of greenroom-http";
        let mut info =
            encoder.encode_descriptor("greenroom_build", help, None, MetricType::Info)?;
        info.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
    }

    fn of_server(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        use MetricType::{Counter, Gauge};
        // The encoder appends `_total` to the name of a counter.
        let requests = ("greenroom_http_requests", "Requests by type and status");
        let rows = self.numbers.requests.iter().map(|(name, status, count)| {
            let labels = vec![name.clone(), status.to_string()];
            (labels, *count as f64)
        });
        family(encoder, requests, Counter, &["type", "status"], rows)?;
        let help = "Time from the head of a request to the head of its answer";
        let rows = self.numbers.durations.iter();
        let rows = rows.map(|(name, of)| (vec![name.clone()], of.counts.clone(), of.sum));
        let named = ("http_server_request_duration", help);
        histogram(encoder, named, &["http_route"], rows)?;
        let limits = ("greenroom_http_limits", "How often a limit was hit");
        let rows = self.numbers.limits.iter();
        let rows = rows.map(|(limit, count)| (vec![(*limit).to_owned()], *count as f64));
        family(encoder, limits, Counter, &["limit"], rows)?;
        let refused = (
            "greenroom_http_refused_callers",
            "Requests that were refused for their host, origin, site or token",
        );
        let rows = self.numbers.refused.iter();
        let rows = rows.map(|(cause, count)| (vec![(*cause).to_owned()], *count as f64));
        family(encoder, refused, Counter, &["cause"], rows)?;
        let accepted = (
            "greenroom_http_connections",
            "Connections that were accepted",
        );
        let number = self.numbers.connections as f64;
        family(encoder, accepted, Counter, &[], [(Vec::new(), number)])?;
        let open = ("greenroom_http_open_connections", "Open connections");
        let number = self.numbers.open as f64;
        family(encoder, open, Gauge, &[], [(Vec::new(), number)])?;
        let in_flight = (
            "greenroom_http_requests_in_flight",
            "Requests for which actors work",
        );
        let number = self.numbers.in_flight as f64;
        family(encoder, in_flight, Gauge, &[], [(Vec::new(), number)])
    }

    fn of_spools(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        use MetricType::{Counter, Gauge};
        let of_spool = |number: fn(&SpoolStatus) -> f64| {
            let spools = self.spools.iter();
            spools.map(move |(name, status)| (vec![name.clone()], number(status)))
        };
        type Read = fn(&SpoolStatus) -> f64;
        let numbers: [(&str, &str, MetricType, Read); 7] = [
            ("idle", "Workers without a request", Gauge, |it| {
                it.idle as f64
            }),
            ("busy", "Workers with a request", Gauge, |it| it.busy as f64),
            ("waiting", "Requests in the queue", Gauge, |it| {
                it.waiting as f64
            }),
            (
                "average_seconds",
                "Average time until an answer",
                Gauge,
                |it| it.average.as_secs_f64(),
            ),
            ("answered", "Requests that were answered", Counter, |it| {
                it.answered as f64
            }),
            ("lost", "Requests that a worker has lost", Counter, |it| {
                it.lost as f64
            }),
            ("deaths", "Workers that have died", Counter, |it| {
                it.deaths as f64
            }),
        ];
        for (name, help, kind, number) in numbers {
            let name = format!("greenroom_spool_{name}");
            family(encoder, (&name, help), kind, &["spool"], of_spool(number))?;
        }
        // One counter for all kinds of refusals, with the kind as a label.
        let refused = self.spools.iter().flat_map(|(name, status)| {
            let kinds = [
                ("overloaded", status.refused_overloaded),
                ("busy", status.refused_busy),
                ("timed_out", status.refused_timed_out),
                ("unavailable", status.refused_unavailable),
                ("aborted", status.refused_aborted),
            ];
            kinds.map(|(kind, count)| (vec![name.clone(), kind.to_owned()], count as f64))
        });
        let named = (
            "greenroom_spool_refused",
            "Requests that a spool has refused",
        );
        family(encoder, named, Counter, &["spool", "kind"], refused)
    }
}

impl Collector for MetricsSnapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        Self::of_build(&mut encoder)?;
        self.of_runtime(&mut encoder)?;
        self.of_server(&mut encoder)?;
        if self.spools.is_empty() {
            return Ok(());
        }
        self.of_spools(&mut encoder)
    }
}
