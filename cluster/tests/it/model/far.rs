//! Addresses whose messages are noted in the ledger.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use greenroom::{Reply, sim};
use greenroom_cluster::{Distance, Node, Remote, RemoteAddress, RemoteAskError, RemoteLookupError};

use super::ledger::{Ends, Held, Ledger};
use super::messages::{Id, Numbered};

/// No ask takes longer: the slowest lease and all faults are shorter.
const FOREVER: Duration = Duration::from_secs(300);

/// A node with its ledger.
#[derive(Clone)]
pub struct ModelNode {
    pub node: Node,
    pub ledger: Ledger,
    life: u64,
}

/// Returns the number of an actor: equal addresses have the same.
pub fn number_of<M>(address: &RemoteAddress<M>) -> u64 {
    let mut hasher = DefaultHasher::new();
    address.hash(&mut hasher);
    hasher.finish()
}

impl ModelNode {
    pub fn new(node: Node, ledger: Ledger) -> Self {
        let life = ledger.new_life();
        ModelNode { node, ledger, life }
    }

    /// Takes an address that has come from anywhere.
    pub fn far<M: Remote>(&self, address: RemoteAddress<M>) -> Far<M> {
        let ends = Ends {
            life: self.life,
            actor: number_of(&address),
        };
        let same = address.clone();
        let held: Held = Arc::new(move || same.end_now().is_some());
        let (way, held) = self.ledger.way(ends, self.node.status().lost_links, held);
        Far {
            address,
            way,
            ledger: self.ledger.clone(),
            held,
        }
    }

    /// Finds an actor, or `None` if there is none for a long time. A new address has no end.
    pub async fn find<M: Numbered>(&self) -> Option<Far<M>> {
        let patience = Duration::from_secs(30);
        let found = match self.node.lookup::<M>(M::NAME).timeout(patience).await {
            Ok(found) => found,
            Err(RemoteLookupError::WrongKind { .. }) => {
                // One of the right kind may come.
                greenroom::time::sleep(patience).await;
                self.node.all::<M>(M::NAME).pop()?
            }
            Err(_) => return None,
        };
        let mut all = self.node.all::<M>(M::NAME);
        assert!(all.contains(&found), "{found:?} is not among {all:?}");
        let nodes = all.iter().map(RemoteAddress::node);
        assert!(nodes.is_sorted_by(|a, b| a < b), "{all:?}");
        let chosen = match sim::random() % 4 {
            0 => all.swap_remove(sim::random() as usize % all.len()),
            _ => found,
        };
        assert_eq!(chosen.end_now(), None, "{chosen:?} had an end before");
        Some(self.far(chosen))
    }
}

/// An address with its way.
pub struct Far<M> {
    pub address: RemoteAddress<M>,
    pub ledger: Ledger,
    way: u64,
    held: Held,
}

impl<M> Clone for Far<M> {
    fn clone(&self) -> Self {
        Far {
            address: self.address.clone(),
            way: self.way,
            ledger: self.ledger.clone(),
            held: self.held.clone(),
        }
    }
}

impl<M: Remote> Far<M> {
    /// Returns whether a message was accepted, or else what has ended the address.
    fn note(&self, id: Id, sent: Result<(), Distance>) -> Result<bool, Distance> {
        match sent {
            Ok(()) => {
                self.ledger.accepted(id);
                Ok(true)
            }
            Err(Distance::Full) => Ok(false),
            Err(why) => {
                let is_end = matches!(why, Distance::Lost | Distance::Closed | Distance::Unknown);
                assert!(is_end, "{id:?}: {why}");
                Err(why)
            }
        }
    }

    pub fn tell(&self, message: impl FnOnce(Id) -> M) -> Result<bool, Distance> {
        let id = self.ledger.id(self.way);
        let sent = self.address.tell(message(id));
        self.note(id, sent.map_err(|error| error.why))
    }

    pub async fn send(&self, message: impl FnOnce(Id) -> M) -> Result<bool, Distance> {
        let id = self.ledger.id(self.way);
        let sent = self.address.send(message(id)).await;
        assert!(!matches!(&sent, Err(error) if error.why == Distance::Full));
        self.note(id, sent.map_err(|error| error.why))
    }

    /// Asks, and notes that the question was accepted. The ask ends.
    pub async fn ask(
        &self,
        patience: Option<Duration>,
        question: impl FnOnce(Id, Reply<u64>) -> M + Send,
    ) -> (Id, Result<u64, RemoteAskError>) {
        let id = self.ledger.id(self.way);
        let mut ask = self.address.ask(|reply| {
            self.ledger.accepted(id);
            question(id, reply)
        });
        if let Some(patience) = patience {
            ask = ask.timeout(patience);
        }
        let ended = greenroom::time::timeout(FOREVER, ask).await;
        let answer = ended.unwrap_or_else(|_| panic!("the ask {id:?} never ends"));
        match &answer {
            Err(RemoteAskError::Closed | RemoteAskError::Unknown) => self.ledger.refused(id),
            Ok(answer) => assert_eq!(*answer, id.number),
            Err(_) => {}
        }
        (id, answer)
    }

    /// Checks that all of its messages have come, if the address has no end.
    pub fn check(&self) {
        if !(self.held)() {
            self.ledger.all_has_come(self.way);
        }
    }
}
