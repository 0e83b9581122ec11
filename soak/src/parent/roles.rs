//! The processes of a run, and how often each fault hits them.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;

use super::faults::Injected::{Killed, NoDescriptors, NoThreads, Stopped};
use super::faults::Rates;
use super::ward::WardRole;

pub const ACTORS: &str = "actors";
pub const VISITOR: &str = "visitor";
pub const QUEUE: &str = "queue";
pub const CRAMPED: &str = "cramped";

/// One unbroken life, so what it takes over hours is seen.
const OF_ACTORS: Rates = &[(Stopped, 30), (NoDescriptors, 30), (NoThreads, 60)];
const OF_VISITOR: Rates = &[(Stopped, 10), (NoDescriptors, 20)];
const OF_SERVER: Rates = &[(Killed, 6), (Stopped, 20), (NoDescriptors, 20)];
const OF_QUEUE: Rates = &[(Killed, 40), (Stopped, 10), (NoDescriptors, 20)];
const OF_SHOP: Rates = &[(Killed, 30), (NoDescriptors, 10)];
const OF_DESK: Rates = &[(Stopped, 30), (NoDescriptors, 10)];

/// Returns the processes: those that send before those that answer.
pub fn roles(folder: &Path, nats: Option<&str>, seed: u64) -> Vec<WardRole> {
    let role = |name, words: &[&str], rates| WardRole {
        name,
        words: words.iter().map(|&word| word.to_owned()).collect(),
        rates,
        aborts: name == CRAMPED,
    };
    let [http, sockets] = [free_address(), free_address()];
    let file = folder.join("parcels.db").display().to_string();
    let certificates = folder.display().to_string();
    let seed = seed.to_string();
    let at_sockets = ["sockets", &sockets, &certificates];
    let mut roles = vec![
        role(VISITOR, &["visitor", &http], OF_VISITOR),
        role("desk", &[&["desk"][..], &at_sockets].concat(), OF_DESK),
        role("server", &["server", &http], OF_SERVER),
        role("shop", &[&["shop"][..], &at_sockets].concat(), OF_SHOP),
        role(QUEUE, &["queue", &file], OF_QUEUE),
        role(ACTORS, &["actors", &seed], OF_ACTORS),
        role(CRAMPED, &["cramped"], &[]),
    ];
    if let Some(at) = nats {
        let at_broker = ["nats", at, &certificates];
        let words = |word| [&[word][..], &at_broker].concat();
        roles.insert(2, role("nats desk", &words("desk"), OF_DESK));
        roles.insert(5, role("nats shop", &words("shop"), OF_SHOP));
    }
    roles
}

/// Returns an address of this machine at which nothing listens. No client has this host.
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.9.1:0").expect("a free address");
    let address = listener.local_addr().expect("an address").to_string();
    // A process that is being started has all sockets until it becomes another program.
    let socket = TcpStream::from(OwnedFd::from(listener));
    let _ = socket.shutdown(Shutdown::Both);
    address
}
