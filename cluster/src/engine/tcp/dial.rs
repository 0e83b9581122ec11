//! The nodes that are dialled: seeds always, and the nodes that others have named.
//!
//! A node is dialled as long as there is no link to it. Of two nodes that know each other by a
//! third one, the one with the lower name dials at once, and the other one a second later.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_io::{Async, Timer};
use event_listener::Event;
use futures_lite::future::or;
use greenroom::time::Instant;

use super::Tcp;
use super::greet::Dialled;
use crate::engine::LinkEngine;
use crate::link::frame::ClusterMember;
use crate::link::{Link, lock};

/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(2);

/// The pauses between two tries: from the first one, doubled, to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The tries in vain after which a node that is no seed is dialled once a minute: a minute and more.
const QUICK_TRIES: u32 = 60;
const SLOW_PAUSE: Duration = Duration::from_secs(60);

/// The tries in vain after which it is forgotten: an hour.
const MOST_TRIES: u32 = QUICK_TRIES + 60;

/// How long two links to a node may be the work of nodes that dial each other at the same time.
const YOUTH: Duration = Duration::from_secs(1);

/// The nodes that are remembered for dialling, besides seeds. If there are more, those count whose
/// peers have named few: a peer that invents names fills no table.
const MOST_MEMBERS: usize = 1 << 10;

pub(super) struct Dials {
    seeds: Vec<String>,
    state: Mutex<DialState>,
    /// Notified when a link is down, or a node was forgotten.
    changed: Event,
}

#[derive(Default)]
struct DialState {
    /// The nodes that others have named, by their names.
    members: BTreeMap<String, Addresses>,
    /// The names of the nodes that a task dials. It may not know yet that one was forgotten.
    dialled: BTreeSet<String>,
    /// The lives of nodes that are being greeted, so that each has one greeting at a time.
    greeted: BTreeSet<(String, u128)>,
    /// Why seeds could not be reached.
    problems: BTreeMap<String, String>,
    /// The links that have come up lately, when, and whether this node has dialled.
    young: Vec<(Weak<Link>, Instant, bool)>,
}

/// The addresses of a node.
#[derive(Default)]
struct Addresses {
    /// Who has named the node first.
    by: String,
    /// The life that the newest of them are of.
    incarnation: u128,
    /// Those that the node itself has sent when it was connected.
    own: Vec<String>,
    /// Those that others have sent since, of another life.
    foreign: Vec<String>,
}

impl Dials {
    pub(super) fn new(seeds: Vec<String>) -> Self {
        Dials {
            seeds,
            state: Mutex::default(),
            changed: Event::new(),
        }
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let state = lock(&self.state);
        let problems = state
            .problems
            .iter()
            .map(|(seed, why)| format!("{seed}: {why}"));
        let mut problems: Vec<String> = problems.collect();
        problems.sort();
        problems
    }

    pub(super) fn look_again(&self) {
        self.changed.notify(usize::MAX);
    }

    /// Dials a node no more, unless it is a seed.
    pub(super) fn forget(&self, name: &str) {
        lock(&self.state).members.remove(name);
        self.look_again();
    }

    /// Begins to greet this life of a node. Returns `None` if it is being greeted.
    pub(super) fn greet(&self, member: &ClusterMember) -> Option<Greeted<'_>> {
        let life = (member.name.clone(), member.incarnation);
        let is_new = lock(&self.state).greeted.insert(life.clone());
        is_new.then(|| Greeted(self, life))
    }

    pub(super) fn greets(&self, member: &ClusterMember) -> bool {
        let life = (member.name.clone(), member.incarnation);
        lock(&self.state).greeted.contains(&life)
    }

    /// Remembers a link that is up.
    pub(super) fn note_up(&self, link: &Arc<Link>, is_dialled: bool) {
        let young = &mut lock(&self.state).young;
        young.retain(|(_, since, _)| since.elapsed() < YOUTH);
        young.push((Arc::downgrade(link), Instant::now(), is_dialled));
    }

    /// Returns whether the link came up lately, and was dialled by this node or by the other one.
    pub(super) fn came_up_lately(&self, link: &Arc<Link>, is_dialled: bool) -> bool {
        let state = lock(&self.state);
        let mut young = state
            .young
            .iter()
            .filter(|(_, since, _)| since.elapsed() < YOUTH);
        let found = young.find(|(young, ..)| young.as_ptr() == Arc::as_ptr(link));
        found.is_some_and(|(_, _, was_dialled)| *was_dialled == is_dialled)
    }

    /// Adds a node that a peer has named, or itself. Returns whether a task is to dial it, since none
    /// does.
    fn learn(&self, member: &ClusterMember, by: &str) -> bool {
        let is_own_word = member.name == by;
        let state = &mut *lock(&self.state);
        if member.addresses.is_empty() || !state.make_room(&member.name, by) {
            return false;
        }
        let known = state.members.get(&member.name);
        let is_news = known.is_none_or(|known| known.incarnation != member.incarnation);
        if is_own_word || is_news {
            let known = state.members.entry(member.name.clone());
            let known = known.or_insert_with(|| Addresses {
                by: by.into(),
                ..Addresses::default()
            });
            known.incarnation = member.incarnation;
            let addresses = member.addresses.clone();
            // Others may be wrong, or mean an earlier life.
            match is_own_word {
                true => (known.own, known.foreign) = (addresses, Vec::new()),
                false => known.foreign = addresses,
            }
        }
        state.dialled.insert(member.name.clone())
    }

    fn set_problem(&self, seed: &str, why: Option<String>) {
        let problems = &mut lock(&self.state).problems;
        match why {
            Some(why) => problems.insert(seed.into(), why),
            None => problems.remove(seed),
        };
    }

    /// Returns the addresses of a node. If it was forgotten, its task is to end.
    fn addresses(&self, name: &str) -> Option<Vec<String>> {
        let mut state = lock(&self.state);
        let known = state.members.get(name);
        let addresses = known.map(|known| [&known.own[..], &known.foreign].concat());
        if addresses.is_none() {
            state.dialled.remove(name);
        }
        addresses
    }
}

impl DialState {
    /// Returns whether there is room for a node that this peer has named. It may be that of one which
    /// was never connected, and was named by the peer that has named most.
    fn make_room(&mut self, name: &str, by: &str) -> bool {
        if self.members.len() < MOST_MEMBERS || self.members.contains_key(name) {
            return true;
        }
        let mut named: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for (name, known) in self
            .members
            .iter()
            .filter(|(_, known)| known.own.is_empty())
        {
            named.entry(&known.by).or_insert((0, name)).0 += 1;
        }
        let most = named.into_iter().max_by_key(|(_, (count, _))| *count);
        // A node that is connected replaces its own inventions.
        let invented = most.filter(|(most, _)| *most != by || name == by);
        let Some(invented) = invented.map(|(_, (_, name))| name.to_owned()) else {
            return false;
        };
        self.members.remove(&invented).is_some()
    }
}

/// A greeting, until its link is up.
pub(super) struct Greeted<'a>(&'a Dials, (String, u128));

impl Drop for Greeted<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).greeted.remove(&self.1);
    }
}

impl Tcp {
    pub(super) fn dial_seeds(self: &Arc<Self>) {
        for seed in &self.dials.seeds {
            let task = dial_seed(self.clone(), seed.clone());
            self.spawn(Box::pin(task));
        }
    }

    /// Dials nodes that are not connected, as a peer has named them. Of one life of a node, its own
    /// word counts more than that of others.
    pub(super) fn dial_members(self: &Arc<Self>, members: &[ClusterMember], by: &str) {
        let Some(state) = self.state() else { return };
        for member in members {
            if !self.dials.learn(member, by) {
                continue;
            }
            let is_lower = state.hello.member.name < member.name;
            let delay = if is_lower {
                Duration::ZERO
            } else {
                LONGEST_PAUSE
            };
            let task = dial_member(self.clone(), member.name.clone(), delay);
            self.spawn(Box::pin(task));
        }
    }

    /// Connects with an address, greets, and serves the link until it is down. Calls `is_up` when it
    /// is up. A link that was up for less than `YOUTH` is an error.
    async fn dial(self: &Arc<Self>, address: &str, is_up: impl Fn()) -> Result<Dialled, String> {
        let resolved = resolve(address).await?;
        let mut problem = "the name has no address".to_owned();
        for at in resolved {
            match connect(at).await {
                // A node that closes has no links, and greets none that it has left.
                Ok(_) if self.is_closed() => return Err("the node is closed".into()),
                Ok(socket) => {
                    let start = Instant::now();
                    match self.dialled(socket, &is_up).await {
                        Ok(Dialled::Ended) if start.elapsed() < YOUTH => {
                            let why = "the link ended soon: perhaps two nodes have the same name";
                            return Err(why.into());
                        }
                        Err(why) => problem = why,
                        dialled => return dialled,
                    }
                }
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    fn is_closed(&self) -> bool {
        self.state().is_none_or(|state| state.peers().is_closed)
    }

    /// Waits as long as there is a link to the node of this name.
    async fn while_linked(&self, name: &str) {
        loop {
            let listener = self.dials.changed.listen();
            if self
                .state()
                .is_none_or(|state| state.link_to(name).is_none())
            {
                return;
            }
            listener.await;
        }
    }
}

async fn dial_seed(engine: Arc<Tcp>, seed: String) {
    let mut pause = FIRST_PAUSE;
    loop {
        let reached = || engine.dials.set_problem(&seed, None);
        match engine.dial(&seed, reached).await {
            Ok(Dialled::Known(name)) => {
                reached();
                // The address may be that of this node itself.
                if engine
                    .state()
                    .is_some_and(|state| state.hello.member.name == name)
                {
                    return;
                }
                engine.while_linked(&name).await;
                pause = FIRST_PAUSE;
            }
            Ok(Dialled::Ended) => pause = FIRST_PAUSE,
            Err(why) => engine.dials.set_problem(&seed, Some(why)),
        }
        rest(&mut pause).await;
    }
}

/// Returns the longest pause after so many tries in vain.
fn longest_pause(tries: u32) -> Duration {
    match tries < QUICK_TRIES {
        true => LONGEST_PAUSE,
        false => SLOW_PAUSE,
    }
}

async fn dial_member(engine: Arc<Tcp>, name: String, delay: Duration) {
    Timer::after(delay).await;
    let mut pause = FIRST_PAUSE;
    let mut tries = 0;
    loop {
        engine.while_linked(&name).await;
        if tries >= MOST_TRIES {
            engine.dials.forget(&name);
        }
        let Some(addresses) = engine.dials.addresses(&name) else {
            return;
        };
        for address in addresses {
            tries += 1;
            match engine.dial(&address, || ()).await {
                // Another node listens there by now.
                Ok(Dialled::Known(other)) if other != name => {}
                Ok(_) => {
                    (tries, pause) = (0, FIRST_PAUSE);
                    break;
                }
                Err(_) => {}
            }
        }
        match longest_pause(tries) {
            LONGEST_PAUSE => rest(&mut pause).await,
            // A link that has come or gone may be a sign that the network is better.
            slow => or(engine.dials.changed.listen(), timer(slow)).await,
        }
    }
}

async fn timer(duration: Duration) {
    Timer::after(duration).await;
}

/// Waits before the next try, which the next time is later. Nodes do not try in step.
async fn rest(pause: &mut Duration) {
    let random = greenroom::sim::random() % 1000;
    Timer::after(*pause / 2 + *pause * (random as u32) / 1000).await;
    *pause = (*pause * 2).min(LONGEST_PAUSE);
}

async fn resolve(address: &str) -> Result<Vec<SocketAddr>, String> {
    if let Ok(at) = address.parse() {
        return Ok(vec![at]);
    }
    let address = address.to_owned();
    let resolved = greenroom::unblock(move || address.to_socket_addrs());
    Ok(resolved.await.map_err(|error| error.to_string())?.collect())
}

async fn connect(at: SocketAddr) -> Result<Async<TcpStream>, String> {
    let connected = async {
        let connected = Async::<TcpStream>::connect(at).await;
        connected.map_err(|error| error.to_string())
    };
    or(connected, async {
        Timer::after(PATIENCE).await;
        Err(format!("no connection within {PATIENCE:?}"))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: String) -> ClusterMember {
        ClusterMember {
            name,
            incarnation: 1,
            addresses: vec!["10.0.0.1:1".into()],
        }
    }

    #[test]
    fn a_peer_that_invents_names_keeps_out_no_name_of_another_peer() {
        let dials = Dials::new(Vec::new());
        assert!(dials.learn(&member("honest".into()), "honest"));
        assert!(dials.learn(&member("early".into()), "honest"));
        for number in 0..10_000 {
            dials.learn(&member(format!("invented-{number}")), "liar");
        }
        assert_eq!(lock(&dials.state).members.len(), MOST_MEMBERS);
        assert!(dials.learn(&member("late".into()), "honest"));
        assert!(dials.learn(&member("liar".into()), "liar"));
        let state = lock(&dials.state);
        for name in ["honest", "early", "late"] {
            assert!(state.members.contains_key(name), "{name}");
        }
        assert_eq!(state.members.len(), MOST_MEMBERS);
    }

    #[test]
    fn a_node_that_does_not_come_back_is_dialled_once_a_minute() {
        assert_eq!(longest_pause(QUICK_TRIES - 1), LONGEST_PAUSE);
        assert_eq!(longest_pause(QUICK_TRIES), SLOW_PAUSE);
    }
}
