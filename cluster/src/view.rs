//! A section of the console of greenroom-http: the nodes to which a node has links.

use greenroom_http::{Section, SectionCell};

use crate::node::Node;

/// Returns what makes a section of the [console](greenroom_http::console()), with a row for each node that is
/// connected, and for each seed that could not be reached at the last try.
///
/// It keeps the node open. [`PeerStatus`](crate::PeerStatus) says what each number means.
///
/// ```
/// use greenroom_cluster::{Node, nodes_section};
/// use greenroom_http::{Server, console};
///
/// # greenroom::run(async {
/// let node = Node::builder("shop").open().await.unwrap();
/// let page = console().section("nodes", nodes_section(&node));
/// let server = Server::bind("127.0.0.1:0").mount(page);
/// # drop(server);
/// # });
/// ```
pub fn nodes_section(node: &Node) -> impl Fn() -> Section + Send + Sync + use<> {
    let node = node.clone();
    let heads = "node|state|to actors there|to actors here|asks|answering|backlog bytes|credit";
    move || {
        let status = node.status();
        let mut section = Section::new(heads.split('|'));
        for peer in &status.peers {
            section = section.row([
                peer.name.as_str().into(),
                "connected".into(),
                peer.outgoing.into(),
                peer.incoming.into(),
                peer.asks.into(),
                peer.answering.into(),
                peer.backlog.into(),
                peer.credit.into(),
            ]);
        }
        let none = ["-"; 6].map(SectionCell::from);
        for problem in &status.unreached {
            let (seed, why) = problem.split_once(": ").unwrap_or((problem, "unreached"));
            let named = [seed, why].map(SectionCell::from);
            section = section.row(named.into_iter().chain(none.clone()));
        }
        section
    }
}
