//! Numbers of a node for the page `/metrics` of greenroom-http.
//!
//! The names do not change between versions. All begin with `greenroom_cluster_`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::link::PeerStatus;
use crate::node::{Node, NodeStatus};

/// Returns numbers of a node, for [`collector`] of the metrics of greenroom-http. It keeps the node
/// open.
///
/// | name | type | labels |
/// |---|---|---|
/// | `greenroom_cluster_peers` | gauge | |
/// | `greenroom_cluster_outgoing_streams`, `greenroom_cluster_incoming_streams` | gauge | `peer` |
/// | `greenroom_cluster_asks`, `greenroom_cluster_answering` | gauge | `peer` |
/// | `greenroom_cluster_backlog_bytes` | gauge | `peer` |
/// | `greenroom_cluster_credit_messages` | gauge | `peer` |
/// | `greenroom_cluster_links_total`, `greenroom_cluster_lost_links_total` | counter | |
/// | `greenroom_cluster_refused_links_total`, `greenroom_cluster_malformed_total` | counter | |
/// | `greenroom_cluster_lost_asks_total`, `greenroom_cluster_undecodable_total` | counter | |
/// | `greenroom_cluster_refused_streams_total`, `greenroom_cluster_stray_total` | counter | |
///
/// [`PeerStatus`](crate::PeerStatus) and [`NodeStatus`](crate::NodeStatus) say what each one means.
///
/// ```
/// # greenroom::run(async {
/// use greenroom_cluster::{Node, metrics};
/// use prometheus_client::{encoding::text, registry::Registry};
///
/// let node = Node::builder("shop").open().await.unwrap();
/// // With greenroom-http: `.mount(greenroom_http::metrics().collector(metrics(&node)))`
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(metrics(&node)));
/// let mut page = String::new();
/// text::encode(&mut page, &registry).unwrap();
/// assert!(page.contains("greenroom_cluster_peers 0"));
/// # });
/// ```
///
/// [`collector`]: https://docs.rs/greenroom-http/latest/greenroom_http/struct.Mount.html
pub fn metrics(node: &Node) -> impl Collector + use<> {
    NodeCollector(node.clone())
}

#[derive(Debug)]
struct NodeCollector(Node);

/// Returns the counters with their meanings.
fn counters(status: &NodeStatus) -> [(&'static str, &'static str, u64); 8] {
    [
        ("links", "Links that were up", status.links),
        ("lost_links", "Links that went down", status.lost_links),
        (
            "refused_links",
            "Links that were refused",
            status.refused_links,
        ),
        (
            "malformed",
            "Links that a malformed frame has ended",
            status.malformed,
        ),
        ("lost_asks", "Asks whose node was lost", status.lost_asks),
        (
            "undecodable",
            "Messages that were no values of their types",
            status.undecodable,
        ),
        (
            "refused_streams",
            "Streams that were refused",
            status.refused_streams,
        ),
        ("stray", "Frames that belonged to nothing", status.stray),
    ]
}

/// A gauge of each peer: its name, its meaning and its value.
type PeerGauge = (&'static str, &'static str, fn(&PeerStatus) -> u64);

const GAUGES: [PeerGauge; 6] = [
    (
        "outgoing_streams",
        "Actors there for which an address is here",
        |peer| peer.outgoing as u64,
    ),
    (
        "incoming_streams",
        "Actors here for which an address is there",
        |peer| peer.incoming as u64,
    ),
    ("asks", "Asks that wait for an answer", |peer| {
        peer.asks as u64
    }),
    ("answering", "Asks that were not answered yet", |peer| {
        peer.answering as u64
    }),
    ("backlog_bytes", "Bytes that wait to be written", |peer| {
        peer.backlog as u64
    }),
    (
        "credit_messages",
        "Messages that may be sent at once",
        |peer| peer.credit,
    ),
];

impl Collector for NodeCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.0.status();
        let (name, help) = ("greenroom_cluster_peers", "Nodes that are connected");
        let peers = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        one(peers, status.peers.len() as u64)?;
        for (name, help, number) in counters(&status) {
            let counter = ConstCounter::new(number);
            let name = format!("greenroom_cluster_{name}");
            let about = encoder.encode_descriptor(&name, help, None, counter.metric_type())?;
            counter.encode(about)?;
        }
        // One descriptor for each gauge, and one sample for each peer.
        for (name, help, of) in GAUGES {
            let name = format!("greenroom_cluster_{name}");
            let mut about = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for peer in &status.peers {
                let labels = [("peer", peer.name.clone())];
                one(about.encode_family(&labels)?, of(peer))?;
            }
        }
        Ok(())
    }
}

fn one(encoder: MetricEncoder<'_>, number: u64) -> fmt::Result {
    ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX)).encode(encoder)
}
