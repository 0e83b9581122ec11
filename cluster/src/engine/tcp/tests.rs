//! What a node with a good certificate can do to others: forge nothing, and cut its own link.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use async_io::Async;
use futures_lite::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use futures_rustls::TlsStream;
use greenroom::{Context, Handle, Reply, spawn};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde::{Deserialize, Serialize};

use super::greet::MAGIC;
use super::socket::LinkSocket;
use super::{Tcp, Tls, wire};
use crate::link::frame::{ClusterMember, Hello, LENGTH, LinkFrame, StreamEnd, VERSION, framed};
use crate::node::NodeState;
use crate::{Limits, Node, Remote, RemoteAddress};

/// The time after which a test hangs.
const LONG: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Question(#[serde(with = "crate::reply")] Reply<u32>);

impl Remote for Question {
    const KIND: &'static str = "question/1";
}

/// Answers the first question when the second one is there.
async fn slow(mut cx: Context<Question>) {
    let mut first = None;
    while let Some(Question(reply)) = cx.recv().await {
        match first.take() {
            None => first = Some(reply),
            Some(first) => {
                first.send(1);
                reply.send(2);
            }
        }
    }
}

/// The folder of the certificates of this test.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Writes certificates of three nodes, all of one authority.
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("greenroom-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        fs::write(path.join("ca"), authority.pem()).unwrap();
        for name in ["shop", "desk", "mallory"] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new([name.to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &authority).unwrap();
            fs::write(path.join(format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(path.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        Folder(path)
    }

    fn files(&self, name: &str) -> [std::path::PathBuf; 3] {
        let file = |ending| self.0.join(format!("{name}.{ending}"));
        [file("pem"), file("key"), self.0.join("ca")]
    }

    async fn node(&self, name: &str, seeds: &[String]) -> Node {
        let [certificate, key, authority] = self.files(name);
        let node = Node::builder(name).identity(certificate, key, authority);
        let node = node.listen_address("tls/127.0.0.1:0").seeds(seeds);
        node.open().await.unwrap()
    }

    /// Opens two nodes: one with a published actor, and one with its address.
    async fn nodes(&self) -> (Node, Node, Handle<Question, ()>, RemoteAddress<Question>) {
        let shop = self.node("shop", &[]).await;
        let actor = spawn!(slow(_));
        shop.publish("slow", &actor).unwrap().detach();
        let desk = self.node("desk", shop.listen_addresses()).await;
        let far = desk
            .lookup("slow")
            .timeout(Duration::from_secs(60))
            .await
            .unwrap();
        (shop, desk, actor, far)
    }
}

type Connection = TlsStream<Async<TcpStream>>;

async fn read(connection: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut length = [0; LENGTH];
    connection.read_exact(&mut length).await.ok()?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    connection.read_exact(&mut bytes).await.ok()?;
    Some(bytes)
}

/// Connects with the certificate of mallory, under this name and number of a life. Returns whether
/// that is welcome, and the number of the other node.
async fn connect(folder: &Folder, to: &Node, name: &str, life: u128) -> (Connection, bool, u128) {
    let tls = Arc::new(Tls::read(folder.files("mallory"), "mallory").unwrap());
    let at: SocketAddr = to.listen_addresses()[0].parse().unwrap();
    let socket = Async::<TcpStream>::connect(at).await.unwrap();
    let mut connection = tls.connect(socket).await.unwrap();
    let (is_welcome, life) = greet(&mut connection, name, life, Vec::new()).await;
    (connection, is_welcome, life)
}

/// Says hello. Returns whether that is welcome, and the number of the other node.
async fn greet(
    connection: &mut (impl AsyncRead + AsyncWrite + Unpin),
    name: &str,
    life: u128,
    addresses: Vec<String>,
) -> (bool, u128) {
    let mut start = [0; MAGIC.len() + 2];
    connection.read_exact(&mut start).await.unwrap();
    let hello = read(connection).await.unwrap();
    let theirs: Hello = postcard::from_bytes(&hello).unwrap();
    let (lease, frame) = (5000, 1 << 20);
    let member = ClusterMember {
        name: name.into(),
        incarnation: life,
        addresses,
    };
    let hello = Hello {
        member,
        lease,
        frame,
        features: 0,
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(framed(&hello));
    connection.write_all(&bytes).await.unwrap();
    connection.flush().await.unwrap();
    // 0 is `Ok`: welcome.
    let answer = read(connection).await;
    let is_welcome = answer.is_some_and(|answer| answer == [0]);
    (is_welcome, theirs.member.incarnation)
}

#[test]
fn a_third_node_can_forge_neither_answers_nor_credit() {
    greenroom::run(async {
        let folder = Folder::new("forged");
        let (shop, desk, _actor, far) = folder.nodes().await;
        let first = spawn_ask(&far);
        while desk.status().peers[0].asks == 0 {
            greenroom::yield_now().await;
        }

        let (_, is_welcome, life) = connect(&folder, &shop, "shop", 42).await;
        assert!(!is_welcome, "another node has the name");
        let (_, is_welcome, _) = connect(&folder, &desk, "shop", 42).await;
        assert!(!is_welcome, "the certificate is that of mallory");
        let (mut mallory, is_welcome, _) = connect(&folder, &desk, "mallory", life).await;
        assert!(is_welcome, "only the name is in the certificate");
        let (messages, bytes, taken) = (9, 9, 0);
        let why = StreamEnd::Closed;
        let answer = [&LinkFrame::Answer { ask: 1 }.encode()[LENGTH..], &[99]].concat();
        let length = (answer.len() as u32).to_le_bytes();
        let forged = [
            [&length[..], &answer].concat(),
            LinkFrame::Credit {
                stream: 1,
                messages,
                bytes,
            }
            .encode(),
            LinkFrame::Ended {
                stream: 1,
                taken,
                why,
            }
            .encode(),
            LinkFrame::Withdraw { actor: 1 }.encode(),
        ];
        mallory.write_all(&forged.concat()).await.unwrap();
        mallory.flush().await.unwrap();
        while desk.status().stray < 2 {
            greenroom::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(far.ask(Question).await, Ok(2));
        assert_eq!(first.await, Ok(1));
        assert!(desk.status().refused_links >= 1);
        assert_eq!(desk.all::<Question>("slow"), [far]);
    });
}

#[test]
fn a_node_that_is_dropped_says_goodbye() {
    greenroom::run(async {
        // The goodbye is not written while the thread of the links polls the socket, which is rare.
        while last_frame_of_a_dropped_node().await != LinkFrame::Bye.encode()[LENGTH..] {}
    });
}

async fn last_frame_of_a_dropped_node() -> Vec<u8> {
    let folder = Folder::new("dropped");
    let (shop, _desk, ..) = folder.nodes().await;
    let (mut mallory, is_welcome, _) = connect(&folder, &shop, "mallory", 1).await;
    assert!(is_welcome);
    while shop.status().peers.len() < 2 {
        greenroom::yield_now().await;
    }
    drop(shop);
    let mut last = Vec::new();
    while let Some(frame) = read(&mut mallory).await {
        last = frame;
    }
    last
}

#[test]
fn a_frame_that_is_none_cuts_its_link_and_no_other() {
    greenroom::run(async {
        let folder = Folder::new("malformed");
        let (shop, _desk, _actor, far) = folder.nodes().await;
        let (unknown, too_large) = ([1, 0, 0, 0, 99], [255; 4]);
        for (number, frame) in [&unknown[..], &too_large].into_iter().enumerate() {
            let life = number as u128;
            let (mut mallory, is_welcome, _) = connect(&folder, &shop, "mallory", life).await;
            assert!(is_welcome);
            mallory.write_all(frame).await.unwrap();
            mallory.flush().await.unwrap();
            while read(&mut mallory).await.is_some() {}
            while shop.status().malformed <= number as u64 {
                greenroom::yield_now().await;
            }
        }
        let first = spawn_ask(&far);
        assert_eq!(far.ask(Question).await.unwrap() + first.await.unwrap(), 3);
    });
}

#[test]
fn a_peer_that_sends_all_the_time_holds_up_no_other() {
    greenroom::run(async {
        let folder = Folder::new("flood");
        let (shop, _desk, _actor, far) = folder.nodes().await;
        let (mut mallory, is_welcome, _) = connect(&folder, &shop, "mallory", 42).await;
        assert!(is_welcome);
        let pings = LinkFrame::Ping.encode().repeat(50_000);
        let (begins, begun) = futures::channel::oneshot::channel();
        let flood = std::thread::spawn(move || {
            futures_lite::future::block_on(async {
                let _ = mallory.write_all(&pings).await;
                begins.send(()).unwrap();
                while mallory.write_all(&pings).await.is_ok() {}
            });
        });
        begun.await.unwrap();
        for _ in 0..10 {
            let first = spawn_ask(&far);
            assert_eq!(far.ask(Question).await.unwrap() + first.await.unwrap(), 3);
        }
        shop.close().await;
        flood.join().unwrap();
    });
}

fn spawn_ask(far: &RemoteAddress<Question>) -> greenroom::Task<Result<u32, crate::RemoteAskError>> {
    let far = far.clone();
    greenroom::spawn(async move { far.ask(Question).await })
}

#[test]
fn a_certificate_stands_for_one_peer_however_its_name_is_written() {
    greenroom::run(async {
        let folder = Folder::new("written");
        let shop = folder.node("shop", &[]).await;
        let (_first, is_welcome, _) = connect(&folder, &shop, "mallory", 1).await;
        assert!(is_welcome);
        for (life, name) in ["Mallory", "MALLORY", "mallory."].into_iter().enumerate() {
            let life = 2 + life as u128;
            let (_again, is_welcome, _) = connect(&folder, &shop, name, life).await;
            assert!(!is_welcome, "{name}");
        }
        assert_eq!(shop.status().peers.len(), 1);
    });
}

#[test]
fn a_node_that_is_connected_says_itself_where_it_listens() {
    greenroom::run(async {
        let node = Node::builder("a").listen_address("127.0.0.1:0");
        let node = node.open().await.unwrap();
        let at: SocketAddr = node.listen_addresses()[0].parse().unwrap();
        let listener = || Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let [right, wrong] = [listener(), listener()];
        let address = |of: &Async<TcpListener>| of.get_ref().local_addr().unwrap().to_string();

        let mut b = Async::<TcpStream>::connect(at).await.unwrap();
        assert!(greet(&mut b, "b", 1, vec![address(&right)]).await.0);
        let mut c = Async::<TcpStream>::connect(at).await.unwrap();
        assert!(greet(&mut c, "c", 1, Vec::new()).await.0);
        // Perhaps an earlier life.
        let named = ClusterMember {
            name: "b".into(),
            incarnation: 2,
            addresses: vec![address(&wrong)],
        };
        let named = LinkFrame::Members(vec![named]).encode();
        let stray = LinkFrame::Close { stream: 1 }.encode();
        c.write_all(&[named, stray].concat()).await.unwrap();
        while node.status().stray == 0 {
            greenroom::time::sleep(Duration::from_millis(1)).await;
        }
        drop(b);
        let dialled = greenroom::time::timeout(LONG, right.accept());
        assert!(dialled.await.is_ok());
    });
}

#[test]
fn a_node_is_dialled_at_its_second_address_if_another_node_has_the_first_one() {
    greenroom::run(async {
        let open = async |name, seeds: &[String]| {
            let node = Node::builder(name)
                .listen_address("127.0.0.1:0")
                .seeds(seeds);
            node.open().await.unwrap()
        };
        let node = open("a", &[]).await;
        let other = open("d", node.listen_addresses()).await;
        let second = Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = second.get_ref().local_addr().unwrap().to_string();
        while node.status().peers.is_empty() {
            greenroom::time::sleep(Duration::from_millis(1)).await;
        }
        let named = ClusterMember {
            name: "b".into(),
            incarnation: 2,
            addresses: vec![other.listen_addresses()[0].clone(), at],
        };
        let first: SocketAddr = node.listen_addresses()[0].parse().unwrap();
        let mut c = Async::<TcpStream>::connect(first).await.unwrap();
        assert!(greet(&mut c, "c", 1, Vec::new()).await.0);
        c.write_all(&LinkFrame::Members(vec![named]).encode())
            .await
            .unwrap();
        let dialled = greenroom::time::timeout(LONG, second.accept());
        assert!(dialled.await.is_ok());
    });
}

#[test]
fn sixty_four_of_the_largest_frames_may_wait_for_a_peer() {
    greenroom::run(async {
        let listener = Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.get_ref().local_addr().unwrap();
        let socket = Async::<TcpStream>::connect(at).await.unwrap();
        let (wire, _connection) = wire::new(LinkSocket::Plain(socket), 64 << 20);
        let frame = vec![0; 24 << 20];
        for _ in 0..4 {
            wire.push(&frame, false);
        }
        assert_eq!(wire.backlog(), 4 * frame.len());

        // With smaller ones the peer takes nothing, and the link is cut.
        let socket = Async::<TcpStream>::connect(at).await.unwrap();
        let (wire, _connection) = wire::new(LinkSocket::Plain(socket), 1 << 20);
        for _ in 0..4 {
            wire.push(&frame, false);
        }
        assert_eq!(wire.backlog(), 0);
    });
}

#[test]
fn a_node_that_cannot_open_leaves_no_listener() {
    // No other test gets a port of this address when it is free.
    let listener = TcpListener::bind("127.0.9.3:0").unwrap();
    let address = listener.local_addr().unwrap();
    let member = ClusterMember {
        name: "shop".into(),
        incarnation: 1,
        addresses: Vec::new(),
    };
    let (lease, frame) = (5000, 4 << 10);
    let hello = Hello {
        member,
        lease,
        frame,
        features: 0,
    };
    let engine = Tcp::new(None, Vec::new());
    let state = NodeState::new(hello, Limits::default(), Arc::new(engine.clone()));
    engine.prepare(&state, vec![listener]).unwrap();
    // As if the thread had not started.
    engine.abandon(&state);
    TcpListener::bind(address).unwrap();
    drop((engine, state));
}
