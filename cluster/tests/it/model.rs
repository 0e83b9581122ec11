//! Random histories in simulated nets, against what is promised of each address.
//!
//! Clients tell, send and ask numbered messages while links break and nodes die. A recorder writes
//! down what it handles. Afterwards each address is compared with what was accepted from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::{Context, Reply, sim, spawn};
use greenroom_cluster::{Distance, Node, Remote, RemoteAddress, RemoteAskError, SimNet};
use serde::{Deserialize, Serialize};

use crate::support::seeds;

/// A numbered message of an address.
#[derive(Serialize, Deserialize)]
enum Note {
    Told(u64, u64),
    Asked(
        u64,
        u64,
        #[serde(with = "greenroom_cluster::reply")] Reply<u64>,
    ),
}

impl Remote for Note {
    const KIND: &'static str = "note/1";
}

/// What recorders have handled.
type Record = Arc<Mutex<Vec<Handled>>>;

#[derive(Debug, Clone, Copy)]
struct Handled {
    /// The number of the recorder. Those of crashed nodes go on here, though not in a real crash.
    life: u64,
    address: u64,
    number: u64,
}

async fn recorder(mut cx: Context<Note>, record: Record) {
    let life = cx.address().id();
    let handle = |address, number| {
        let handled = Handled {
            life,
            address,
            number,
        };
        record.lock().unwrap().push(handled);
    };
    while let Some(note) = cx.recv().await {
        if sim::random().is_multiple_of(4) {
            greenroom::time::sleep(Duration::from_micros(sim::random() % 3000)).await;
        }
        match note {
            Note::Told(address, number) => handle(address, number),
            Note::Asked(address, number, reply) => {
                handle(address, number);
                match sim::random() % 8 {
                    0 => drop(reply),
                    _ => reply.send(number),
                }
            }
        }
    }
}

/// What has become of a message, as its sender knows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// Accepted here.
    Accepted,
    Answered,
    NotHandled,
    Perhaps,
}

/// The messages of one address in the order of the calls.
type Sent = BTreeMap<u64, Vec<(u64, Outcome)>>;

struct Client {
    node: Node,
    name: &'static str,
    /// The number of the address.
    address: u64,
    sent: Arc<Mutex<Sent>>,
}

impl Client {
    fn note(&self, number: u64, outcome: Outcome) {
        let mut sent = self.sent.lock().unwrap();
        sent.entry(self.address)
            .or_default()
            .push((number, outcome));
    }

    /// Looks the recorder up again and again, and sends to it until it is lost.
    async fn run(mut self, rounds: u64, next_address: Arc<Mutex<u64>>) {
        for _ in 0..rounds {
            let patience = Duration::from_secs(30);
            let Ok(far) = self.node.lookup::<Note>("notes").timeout(patience).await else {
                return;
            };
            self.address = {
                let mut next = next_address.lock().unwrap();
                *next += 1;
                *next
            };
            let mut number = 0;
            while number < 30 && self.step(&far, number).await {
                number += 1;
            }
        }
    }

    /// Sends one message. Returns whether the address can be used further.
    async fn step(&self, far: &RemoteAddress<Note>, number: u64) -> bool {
        let told = Note::Told(self.address, number);
        let not_sent = match sim::random() % 4 {
            0 => far.tell(told).map_err(|error| error.why),
            1 => far.send(told).await.map_err(|error| error.why),
            2 => {
                greenroom::time::sleep(Duration::from_micros(sim::random() % 5000)).await;
                far.send(told).await.map_err(|error| error.why)
            }
            _ => return self.ask(far, number).await,
        };
        match not_sent {
            Ok(()) => self.note(number, Outcome::Accepted),
            Err(Distance::Full) => self.note(number, Outcome::NotHandled),
            Err(why) => {
                assert!(
                    matches!(why, Distance::Lost | Distance::Closed | Distance::Unknown),
                    "{}: {why}",
                    self.name
                );
                self.note(number, Outcome::NotHandled);
                return false;
            }
        }
        true
    }

    async fn ask(&self, far: &RemoteAddress<Note>, number: u64) -> bool {
        let ask = far.ask(|reply| Note::Asked(self.address, number, reply));
        let answer = match sim::random() % 3 {
            0 => {
                ask.timeout(Duration::from_micros(sim::random() % 20_000))
                    .await
            }
            _ => ask.await,
        };
        let (outcome, goes_on) = match answer {
            Ok(answer) => {
                assert_eq!(answer, number);
                (Outcome::Answered, true)
            }
            Err(RemoteAskError::NoReply(_) | RemoteAskError::TimedOut) => (Outcome::Perhaps, true),
            Err(RemoteAskError::Lost) => (Outcome::Perhaps, false),
            Err(RemoteAskError::Closed | RemoteAskError::Unknown) => (Outcome::NotHandled, false),
            Err(other) => panic!("{}: {other}", self.name),
        };
        self.note(number, outcome);
        goes_on
    }
}

/// Breaks and mends the net.
async fn faults(net: SimNet, record: Record) {
    for _ in 0..sim::random() % 6 {
        greenroom::time::sleep(Duration::from_millis(sim::random() % 40)).await;
        match sim::random() % 7 {
            0 => net.partition(["shop"], ["a"]),
            1 => net.silence("shop", "b"),
            2 => net.silence("a", "shop"),
            3 => net.loss(0.2, Duration::from_millis(20)),
            4 => net.delay(Duration::ZERO..Duration::from_millis(20)),
            5 => serve(&net, record.clone()).await,
            _ => net.heal(),
        }
        let pause = [5, 50, 1000, 10_000][sim::random() as usize % 4];
        greenroom::time::sleep(Duration::from_millis(sim::random() % pause)).await;
    }
    net.heal();
}

/// Opens a node with a recorder. An older one crashes.
async fn serve(net: &SimNet, record: Record) {
    let shop = Node::builder("shop").net(net).open().await.unwrap();
    let capacity = [1, 2, 7, 100][sim::random() as usize % 4];
    let actor = match sim::random() % 3 {
        0 => spawn!(recorder(_, record)),
        _ => spawn!(recorder(_, record), capacity = capacity),
    };
    shop.publish("notes", &actor).unwrap().detach();
    let ends = sim::random().is_multiple_of(8);
    greenroom::spawn(async move {
        if ends {
            greenroom::time::sleep(Duration::from_millis(sim::random() % 100)).await;
            actor.stop();
        }
        // Longer than all of the test.
        greenroom::time::sleep(Duration::from_secs(600)).await;
        drop((shop, actor));
    })
    .detach();
}

fn check(sent: &Sent, record: &[Handled]) {
    for (address, sent) in sent {
        let handled = record.iter().filter(|handled| handled.address == *address);
        let handled: Vec<u64> = handled.map(|handled| handled.number).collect();
        // In order and at most once.
        assert!(
            handled.is_sorted_by(|a, b| a < b),
            "address {address}: {handled:?}"
        );
        let is_handled = |number: &u64| handled.contains(number);
        for (number, outcome) in sent {
            match outcome {
                Outcome::Answered => assert!(is_handled(number), "{address}: {number} is missing"),
                Outcome::NotHandled => assert!(!is_handled(number), "{address}: {number} came"),
                Outcome::Accepted | Outcome::Perhaps => {}
            }
        }
        // A prefix of what was accepted: nothing is missing before the last one.
        let last = handled.last().copied().unwrap_or(0);
        for (number, outcome) in sent.iter().filter(|(number, _)| *number < last) {
            let is_right = match outcome {
                Outcome::Accepted => is_handled(number),
                _ => true,
            };
            assert!(is_right, "{address}: {number} is missing before {last}");
        }
    }
}

/// Checks that a recorder handles nothing of an older address of a client after a newer one.
fn check_lives(by_client: &[Vec<u64>], record: &[Handled]) {
    let mut last = BTreeMap::new();
    for handled in record {
        let client = by_client
            .iter()
            .position(|of| of.contains(&handled.address));
        let last = last.entry((client, handled.life)).or_insert(0);
        assert!(
            *last <= handled.address,
            "{} after {last}: {record:?}",
            handled.address
        );
        *last = handled.address;
    }
}

async fn history() {
    let net = SimNet::new();
    let record = Record::default();
    serve(&net, record.clone()).await;
    let next = Arc::new(Mutex::new(0));
    let mut clients = Vec::new();
    for name in ["a", "b"] {
        let node = Node::builder(name).net(&net);
        let node = node.lease(Duration::from_millis(500)).open().await.unwrap();
        let sent = Arc::new(Mutex::new(Sent::new()));
        let client = Client {
            node: node.clone(),
            name,
            address: 0,
            sent: sent.clone(),
        };
        let task = greenroom::spawn(client.run(4, next.clone()));
        clients.push((node, sent, task));
    }
    let faults = greenroom::spawn(faults(net.clone(), record.clone()));
    let mut all = Sent::new();
    let mut by_client = Vec::new();
    for (node, sent, task) in clients {
        // Each call of a client ends.
        task.await;
        let sent = std::mem::take(&mut *sent.lock().unwrap());
        by_client.push(sent.keys().copied().collect::<Vec<u64>>());
        all.extend(sent);
        drop(node);
    }
    faults.await;
    // What is under way may still be handled, in order.
    greenroom::time::sleep(Duration::from_secs(5)).await;
    let record = record.lock().unwrap().clone();
    check(&all, &record);
    check_lives(&by_client, &record);
}

#[test]
fn random_histories_keep_what_is_promised() {
    sim::explore(seeds(40), history);
}
