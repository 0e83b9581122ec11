//! The nets of the tests: simulated ones, one with a broker, and sockets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::sim;
use greenroom_cluster::{Limits, Node, SimNet};

/// The seeds of each simulation.
const SEEDS: u64 = 10;

/// The time after which a test over sockets hangs.
const HANGS: Duration = Duration::from_secs(300);

/// What connects the nodes of a test. Each of them reaches all others.
#[derive(Clone)]
pub enum Net {
    Simulated(SimNet),
    /// The addresses of the nodes so far.
    Sockets(Arc<Mutex<Vec<String>>>),
}

impl Net {
    pub async fn node(&self, name: &str) -> Node {
        self.limited_node(name, Limits::default()).await
    }

    pub async fn limited_node(&self, name: &str, limits: Limits) -> Node {
        let builder = Node::builder(name).limits(limits);
        match self {
            Net::Simulated(net) => builder.net(net).open().await.unwrap(),
            Net::Sockets(addresses) => {
                let seeds = addresses.lock().unwrap().clone();
                let builder = builder.listen_address("127.0.0.1:0").seeds(seeds);
                let node = builder.open().await.unwrap();
                let own = node.listen_addresses();
                addresses.lock().unwrap().extend_from_slice(own);
                node
            }
        }
    }

    /// Ends a node: in a simulation it crashes.
    pub async fn end(&self, node: &Node) {
        match self {
            Net::Simulated(net) => net.crash(node.name()),
            Net::Sockets(_) => node.clone().close().await,
        }
    }

    /// Lets all come that is under way, and more than it should, if time is virtual.
    pub async fn settle(&self) {
        if let Net::Simulated(_) = self {
            greenroom::time::sleep(Duration::from_secs(30)).await;
        }
    }
}

impl From<&Net> for Net {
    fn from(net: &Net) -> Net {
        net.clone()
    }
}

impl From<&SimNet> for Net {
    fn from(net: &SimNet) -> Net {
        Net::Simulated(net.clone())
    }
}

/// Opens a node in a simulated net.
pub async fn node(name: &str, net: &SimNet) -> Node {
    Net::from(net).node(name).await
}

/// Prints over what a test has failed, if it is dropped by a panic.
struct Over(&'static str);

impl Drop for Over {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed over: {}", self.0);
        }
    }
}

/// Runs a test over each of the simulated nets, and over sockets.
pub fn everywhere<F: Future<Output = ()>>(test: impl Fn(Net) -> F) {
    simulated(|net| test(Net::from(&net)));
    let _over = Over("sockets");
    let test = test(Net::Sockets(Arc::default()));
    let ended = greenroom::run(async { greenroom::time::timeout(HANGS, test).await });
    assert!(ended.is_ok(), "hung");
}

/// Runs a test over sockets.
pub fn on_threads(test: impl Fn(Net)) {
    test(Net::Sockets(Arc::default()));
}

/// Runs a test over each of the simulated nets: one in which all nodes are connected, and one with
/// a broker.
pub fn simulated<F: Future<Output = ()>>(test: impl Fn(SimNet) -> F) {
    let nets: [(_, fn() -> SimNet); 2] = [("mesh", SimNet::new), ("broker", SimNet::with_broker)];
    for (name, net) in nets {
        let _over = Over(name);
        sim::explore(seeds(SEEDS), |_| test(net()));
    }
}

/// Returns the seeds of a test: many with `GREENROOM_SEEDS`.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let many = std::env::var("GREENROOM_SEEDS").ok();
    0..many.map_or(few, |many| many.parse().unwrap())
}
