//! Links over a broker that are not used, and what nodes do at the time of their end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_lite::future::zip;
use greenroom::time::sleep;
use greenroom::{Context, Handle, Reply, sim, spawn};
use serde::{Deserialize, Serialize};

use super::SimNet;
use crate::{NameChange, Node, Published, Remote, RemoteAddress};

/// Twelve leases, and the time until the next look.
const UNUSED: Duration = Duration::from_millis(6000);
const LOOK: Duration = Duration::from_millis(50);

#[derive(Serialize, Deserialize)]
enum Entry {
    Add(u64),
    /// Sends the number on to this address.
    Pass(RemoteAddress<Entry>, u64),
    All(#[serde(with = "crate::reply")] Reply<Vec<u64>>),
}

impl Remote for Entry {
    const KIND: &'static str = "entry/1";
}

async fn ledger(mut cx: Context<Entry>) {
    let mut added = Vec::new();
    while let Some(entry) = cx.recv().await {
        match entry {
            Entry::Add(number) => added.push(number),
            Entry::Pass(to, number) => to.send(Entry::Add(number)).await.unwrap(),
            Entry::All(reply) => reply.send(added.clone()),
        }
    }
}

/// A node with a ledger that has its name.
struct LedgerNode {
    node: Node,
    _ledger: Handle<Entry, ()>,
    published: Published<Entry>,
}

impl LedgerNode {
    async fn open(name: &str, net: &SimNet) -> LedgerNode {
        let node = Node::builder(name).net(net);
        let node = node.lease(Duration::from_millis(500)).open().await.unwrap();
        let ledger = spawn!(ledger(_));
        let published = node.publish(name, &ledger).unwrap();
        LedgerNode {
            node,
            _ledger: ledger,
            published,
        }
    }

    async fn find(&self, name: &str) -> RemoteAddress<Entry> {
        self.node.lookup(name).await.unwrap()
    }

    /// Uses the ledger of another node for something that is drawn. Nothing of it may fail.
    async fn use_once(&self, other: &str, number: u64) {
        match sim::random() % 6 {
            0 => {
                let far = self.find(other).await;
                far.tell(Entry::Add(number)).unwrap();
            }
            1 => {
                let far = self.find(other).await;
                let all = far.ask(Entry::All).await.unwrap();
                assert!(all.is_sorted(), "{all:?}");
                far.tell(Entry::Add(number)).unwrap();
            }
            2 => {
                // The other node sends it over the same link, or over the next one.
                let far = self.find(other).await;
                let back = self.published.address();
                far.send(Entry::Pass(back, number)).await.unwrap();
                drop(far);
                self.until_added(number).await;
                self.find(other).await.tell(Entry::Add(number)).unwrap();
            }
            3 => {
                let mut watch = self.node.watch_names(other);
                let come = watch.next().await;
                assert!(matches!(come, Some(NameChange::Come { .. })), "{come:?}");
                let far = self.find(other).await;
                far.send(Entry::Add(number)).await.unwrap();
            }
            _ => {
                // A third node opens the stream, on a link of its own that may be ending.
                let far = self.find(other).await;
                let agent = self.find("agent").await;
                agent.send(Entry::Pass(far, number)).await.unwrap();
            }
        }
    }

    /// Asserts that all of these numbers have come, in order.
    async fn assert_added(&self, numbers: &[u64]) {
        let all = self.published.address().ask(Entry::All).await.unwrap();
        let missing = numbers.iter().find(|number| !all.contains(number));
        assert!(all.is_sorted() && missing.is_none(), "{all:?}, {numbers:?}");
    }

    /// Waits until the own ledger has a number.
    async fn until_added(&self, number: u64) {
        let own = self.published.address();
        while !own.ask(Entry::All).await.unwrap().contains(&number) {
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn is_connected(&self) -> bool {
        !self.node.status().peers.is_empty()
    }

    fn assert_lossless(&self) {
        let status = self.node.status();
        assert_eq!((status.lost_links, status.lost_asks), (0, 0), "{status:?}");
    }
}

async fn pair() -> (SimNet, LedgerNode, LedgerNode) {
    let net = SimNet::with_broker();
    let shop = LedgerNode::open("shop", &net).await;
    let desk = LedgerNode::open("desk", &net).await;
    (net, shop, desk)
}

/// Returns the seeds of a test: many with `GREENROOM_SEEDS`.
fn seeds(few: u64) -> std::ops::Range<u64> {
    let many = std::env::var("GREENROOM_SEEDS").ok();
    0..many.map_or(few, |many| many.parse().unwrap())
}

fn draw(most: Duration) -> Duration {
    Duration::from_micros(sim::random() % most.as_micros() as u64)
}

#[test]
fn a_link_that_is_not_used_ends_without_a_loss_and_a_lookup_begins_another() {
    sim::explore(seeds(8), |_| async {
        let (_net, shop, desk) = pair().await;
        for links in 1..4 {
            drop(desk.find("shop").await);
            assert_eq!(shop.node.status().links, links);
            sleep(UNUSED - LOOK).await;
            assert!(shop.is_connected() && desk.is_connected());
            sleep(3 * LOOK).await;
            assert!(!shop.is_connected() && !desk.is_connected());
        }
        shop.assert_lossless();
        desk.assert_lossless();
    });
}

#[test]
fn a_link_that_one_of_the_nodes_uses_stays() {
    sim::explore(seeds(8), |seed| async move {
        let (_net, shop, desk) = pair().await;
        let mut kept = Some(desk.find("shop").await);
        let mut watch = None;
        match seed % 4 {
            0 => {}
            1 => kept = Some(shop.find("desk").await),
            2 => (kept, watch) = (None, Some(desk.node.watch_names("sh"))),
            _ => (kept, watch) = (None, Some(shop.node.watch_names(""))),
        }
        sleep(10 * UNUSED).await;
        let links = [&shop, &desk].map(|end| end.node.status().links);
        assert!(shop.is_connected() && desk.is_connected());
        assert_eq!(links, [1, 1]);
        drop((watch, kept));
        sleep(UNUSED + 3 * LOOK).await;
        assert!(!shop.is_connected() && !desk.is_connected());
    });
}

#[test]
fn what_nodes_do_while_a_link_ends_loses_nothing() {
    let (ends, most) = (AtomicU64::new(0), 10);
    sim::explore(seeds(40), |_| async {
        let (net, shop, desk) = pair().await;
        let agent = LedgerNode::open("agent", &net).await;
        let (mut of_shop, mut of_desk) = (Vec::new(), Vec::new());
        let delay = draw(Duration::from_millis(200));
        net.delay(Duration::ZERO..delay);
        let mut numbers = 0;
        while numbers < most {
            numbers += 1;
            // The end begins about then, and takes some delays.
            let use_soon = async |own: &LedgerNode, other: &str| {
                sleep(UNUSED + draw(4 * (LOOK + delay))).await;
                let uses = !sim::random().is_multiple_of(3);
                if uses {
                    own.use_once(other, numbers).await;
                }
                uses.then_some(numbers)
            };
            let used = zip(use_soon(&shop, "desk"), use_soon(&desk, "shop")).await;
            of_desk.extend(used.0);
            of_shop.extend(used.1);
        }
        sleep(10 * (LOOK + delay)).await;
        shop.assert_added(&of_shop).await;
        desk.assert_added(&of_desk).await;
        agent.assert_added(&[]).await;
        for end in [&shop, &desk, &agent] {
            end.assert_lossless();
        }
        ends.fetch_add(desk.node.status().links, Ordering::Relaxed);
    });
    // Else nothing has ended meanwhile.
    let ends = ends.into_inner() / seeds(40).end;
    assert!(ends > 2, "{ends}");
}

#[test]
fn nodes_find_each_other_after_the_words_of_an_end_were_lost() {
    sim::explore(seeds(20), |_| async {
        let (net, shop, desk) = pair().await;
        let _agent = LedgerNode::open("agent", &net).await;
        for number in 0..10 {
            sleep(UNUSED - draw(LOOK)).await;
            net.loss(0.5, draw(Duration::from_millis(50)));
            sleep(draw(4 * LOOK)).await;
            net.loss(0.0, Duration::ZERO);
            // A lost word is noticed by the numbers.
            sleep(Duration::from_millis(250)).await;
            zip(desk.use_once("shop", number), shop.use_once("desk", number)).await;
        }
    });
}
