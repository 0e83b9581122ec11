//! Who may speak: a server with users, and nodes or strangers that try to be others.

use async_nats::ConnectOptions;
use futures::channel::oneshot;
use futures::{FutureExt, StreamExt};
use greenroom_cluster::{Nats, Node, OpenError, RemoteEnd};

use crate::certificates::{self, files_in, files_of};
use crate::notes::{Note, notes};
use crate::server::{Server, nats};
use crate::support::{LONG, listener, run, until};

async fn known(name: &str, server: &Server) -> Node {
    let node = Node::builder(name).nats(server.known(name));
    node.open().await.unwrap()
}

#[test]
fn nodes_talk_over_tls_and_the_server_knows_each() {
    run(async {
        let server = Server::secure();
        let shop = known("shop", &server).await;
        let actor = greenroom::spawn!(notes(_, |_, _| {}));
        shop.publish("notes", &actor).unwrap().detach();
        let desk = known("desk", &server).await;
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
    });
}

#[test]
fn a_node_opens_only_under_the_name_of_its_user() {
    run(async {
        let server = Server::secure();
        let node = Node::builder("shop").nats(server.known("desk"));
        let error = node.open().await.unwrap_err();
        assert!(matches!(error, OpenError::Server(_)), "{error}");
        let text = "it has not said within 2s who this is, as \"shop\"";
        assert!(error.to_string().contains(text), "{error}");
        // A server without users cannot say who a node is.
        let server = Server::open();
        let node = Node::builder("shop").nats(Nats::servers([server.address()]));
        let error = node.open().await.unwrap_err();
        assert!(error.to_string().contains("it has no users"), "{error}");
    });
}

#[test]
fn a_node_is_its_user_by_a_password_and_a_wrong_one_is_refused() {
    run(async {
        let server = Server::with(&Server::password_config(&["shop", "desk"]));
        let open = |name: &str, word: &str| {
            let nats = Nats::servers([server.address()]).password(word);
            Node::builder(name).nats(nats).open()
        };
        let shop = open("shop", "word of shop").await.unwrap();
        let actor = greenroom::spawn!(notes(_, |_, _| {}));
        shop.publish("notes", &actor).unwrap().detach();
        let desk = open("desk", "word of desk").await.unwrap();
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
        let error = open("desk", "word of shop").await.unwrap_err();
        assert!(matches!(error, OpenError::Server(_)), "{error}");
        assert!(!error.to_string().contains("word of"), "{error}");
    });
}

/// Connects as a stranger with the certificate of a node.
pub async fn stranger(name: &str, address: &str) -> async_nats::Client {
    let [certificate, key, authority] = files_of(name);
    let options = ConnectOptions::new()
        .require_tls(true)
        .add_root_certificates(authority)
        .add_client_certificate(certificate, key);
    options.connect(address).await.unwrap()
}

/// Runs a client of async-nats, which needs tokio.
pub async fn on_tokio<T: Send + 'static>(client: impl Future<Output = T> + Send + 'static) -> T {
    greenroom::unblock(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(client)
    })
    .await
}

/// Opens two nodes at this server, and finds an actor of `shop` from `desk`. Meanwhile a stranger
/// does something. In the end `shop` has received nothing but what `desk` has sent.
async fn stays_unharmed<T: Send + 'static, F>(
    server: &Server,
    stranger: impl FnOnce(Gate) -> F,
) -> T
where
    F: Future<Output = T> + Send + 'static,
{
    let (shop, desk) = (known("shop", server).await, known("desk", server).await);
    let actor = greenroom::spawn!(notes(_, |_, _| {}));
    shop.publish("notes", &actor).unwrap().detach();
    let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
    let (begun, has_begun) = oneshot::channel();
    let (done, is_done) = oneshot::channel();
    let stranger = on_tokio(stranger(Gate(begun, is_done)));
    let asks = async {
        has_begun.await.unwrap();
        for _ in 0..100 {
            assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
        }
        done.send(()).unwrap();
    };
    let (outcome, ()) = futures::join!(stranger, asks);
    // What the stranger has published has come before this answer.
    assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
    for node in [&shop, &desk] {
        let status = node.status();
        assert_eq!(
            (status.malformed, status.refused_links, status.lost_links),
            (0, 0, 0)
        );
        // The stranger may have another version, and no node does.
        let is_known = |why: &String| why.starts_with("a: ");
        assert!(status.unreached.iter().all(is_known), "{status:?}");
    }
    outcome
}

/// Lets the nodes talk when the stranger has begun, and waits until they have talked.
struct Gate(oneshot::Sender<()>, oneshot::Receiver<()>);

impl Gate {
    async fn pass(self) {
        self.0.send(()).unwrap();
        self.1.await.unwrap();
    }
}

/// The subjects under which `desk` speaks to `shop`.
const OF_DESK: [&str; 4] = [
    "gr.to.shop.desk",
    "gr.find.notes.desk",
    "gr.names.desk",
    "gr.watch.desk",
];

/// A packet of this version that makes no sense: who takes it counts it.
const MALFORMED: &[u8] = &[1, 0, 255];

#[test]
fn a_good_certificate_receives_nothing_that_is_meant_for_another_node() {
    run(async {
        let server = Server::secure();
        let address = server.address();
        let received = stays_unharmed(&server, |gate| async move {
            let client = stranger("a", &address).await;
            let mut all = Vec::new();
            for subject in [
                ">",
                "gr.>",
                "gr.to.>",
                "gr.to.*.*",
                "gr.to.shop.*",
                "_INBOX.>",
                "$SYS.>",
            ] {
                all.push((subject, client.subscribe(subject).await.unwrap()));
            }
            client.flush().await.unwrap();
            gate.pass().await;
            client.flush().await.unwrap();
            let received = all
                .iter_mut()
                .map(|(subject, all)| (*subject, all.next().now_or_never()));
            let received: Vec<_> = received
                .filter(|(_, one)| matches!(one, Some(Some(_))))
                .collect();
            format!("{received:?}")
        });
        assert_eq!(received.await, "[]");
    });
}

#[test]
fn a_good_certificate_speaks_as_no_other_node_and_no_reply_subject_does() {
    run(async {
        let server = Server::secure();
        let address = server.address();
        let replies = stays_unharmed(&server, |gate| async move {
            let client = stranger("a", &address).await;
            let mut replies = client.subscribe("gr.to.a.*").await.unwrap();
            for subject in OF_DESK {
                client.publish(subject, MALFORMED.into()).await.unwrap();
                client
                    .publish_with_reply(subject, "gr.to.a.a", MALFORMED.into())
                    .await
                    .unwrap();
            }
            // What a may publish, in case the answer came under the name of another node. A
            // question of another version is answered, to a. The server answers the last one under
            // any subject, also as if a connection had ended.
            let question: &[u8] = &[2, 1, 9];
            for subject in ["gr.find.notes.a", "gr.watch.a", "$SYS.REQ.USER.INFO"] {
                for reply in ["gr.to.shop.desk", "gr.gone"] {
                    client
                        .publish_with_reply(subject, reply, question.into())
                        .await
                        .unwrap();
                }
            }
            client.flush().await.unwrap();
            gate.pass().await;
            let answer = replies.next().await.unwrap();
            (answer.subject.to_string(), answer.payload.to_vec())
        });
        let (subject, answer) = replies.await;
        assert_eq!((&*subject, &answer[..2]), ("gr.to.a.shop", &[1, 0][..]));
    });
}

/// Returns the request for a stream that publishes again, as `desk`, what comes under a subject.
fn forging_stream(subject: &str) -> Vec<u8> {
    let stream = format!(
        r#"{{"name": "forge", "subjects": ["{subject}"], "storage": "memory",
            "retention": "limits", "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
            "num_replicas": 1, "discard": "old",
            "republish": {{"src": "{subject}", "dest": "gr.to.shop.desk"}}}}"#
    );
    stream.into()
}

#[test]
fn a_stream_of_jetstream_that_publishes_again_reaches_no_node() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        // An account of its own, in which a user may do all.
        let config = Server::secure_config(&["shop", "desk", "a"]).replace(
            "accounts {",
            "accounts {\n  STREAMS { jetstream: enabled, users: [ { user: \"b\" } ] }\n",
        );
        let store = folder.path().to_str().unwrap();
        let server = Server::with(&format!("{config}\njetstream {{ store_dir: {store:?} }}\n"));
        let address = server.address();
        let forged = stays_unharmed(&server, |gate| async move {
            const CREATE: &str = "$JS.API.STREAM.CREATE.forge";
            let [a, b] = [stranger("a", &address).await, stranger("b", &address).await];
            let mut forged = b.subscribe("gr.to.shop.desk").await.unwrap();
            let created = b
                .request(CREATE, forging_stream("any").into())
                .await
                .unwrap();
            let created = String::from_utf8_lossy(&created.payload).into_owned();
            assert!(!created.contains("error"), "{created}");
            b.publish("any", MALFORMED.into()).await.unwrap();
            // A user of the account of the nodes cannot create one.
            a.publish(CREATE, forging_stream("gr.to.b.a").into())
                .await
                .unwrap();
            a.flush().await.unwrap();
            let forged = forged.next().await.unwrap();
            gate.pass().await;
            // It would be there by now.
            for _ in 0..100 {
                a.publish("gr.to.b.a", MALFORMED.into()).await.unwrap();
                a.flush().await.unwrap();
            }
            forged.payload.to_vec()
        });
        // It is published again, where no node is.
        assert_eq!(forged.await, MALFORMED);
    });
}

#[test]
fn a_user_that_is_revoked_is_lost_and_a_new_one_needs_no_restart() {
    run(async {
        let mut server = Server::with(&Server::secure_config(&["shop", "desk"]));
        let shop = known("shop", &server).await;
        let actor = greenroom::spawn!(notes(_, |_, _| {}));
        shop.publish("notes", &actor).unwrap().detach();
        let desk = known("desk", &server).await;
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        server.reload(&Server::secure_config(&["shop", "a"]));
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        until(async || !desk.status().unreached.is_empty()).await;
        let new = until_open("a", &server).await;
        let far = new.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
        assert_eq!(shop.status().lost_links, 1);
    });
}

#[test]
fn certificates_of_a_new_authority_are_used_from_the_next_connection_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        certificates::write(folder.path());
        let config = Server::config_in(folder.path(), &["shop", "desk", "a"]);
        let mut server = Server::with(&config);
        let open = |name: &str| {
            let [certificate, key, authority] = files_in(folder.path(), name);
            let nats = Nats::servers([server.address()]).identity(certificate, key, authority);
            Node::builder(name).nats(nats).open()
        };
        let (shop, desk) = (open("shop").await.unwrap(), open("desk").await.unwrap());
        let actor = greenroom::spawn!(notes(_, |_, _| {}));
        shop.publish("notes", &actor).unwrap().detach();
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        certificates::write(folder.path());
        desk.renew_identity().unwrap();
        server.reload(&config);
        // A node with the certificate of another authority is a stranger.
        let node = Node::builder("a").nats(server.known("a"));
        let error = node.open().await.unwrap_err();
        assert!(matches!(error, OpenError::Server(_)), "{error}");
        assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
        server.kill();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        server.start();
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
    });
}

#[test]
fn a_node_of_another_version_learns_that_of_the_node() {
    run(async {
        let address = listener();
        let shop = Node::builder("shop").nats(nats("shop", &address));
        let shop = shop.open().await.unwrap();
        let (subject, answer) = on_tokio(async move {
            let client = stranger("a", &address).await;
            let mut answers = client.subscribe("gr.to.a.*").await.unwrap();
            // The version in two bytes, and a hello.
            let hello = [2, 1, 0].as_slice().into();
            client.publish("gr.to.shop.a", hello).await.unwrap();
            let answer = answers.next().await.unwrap();
            (answer.subject.to_string(), answer.payload.to_vec())
        })
        .await;
        assert_eq!((&*subject, &answer[..2]), ("gr.to.a.shop", &[1, 0][..]));
        let why = "the versions differ: ours is 1, theirs is 258";
        assert!(String::from_utf8_lossy(&answer).contains(why));
        let status = shop.status();
        assert_eq!(status.refused_links, 1);
        assert_eq!(status.unreached[..], [format!("a: {why}")]);
    });
}

/// Opens a node as soon as the server has its user.
async fn until_open(name: &str, server: &Server) -> Node {
    loop {
        if let Ok(node) = Node::builder(name).nats(server.known(name)).open().await {
            return node;
        }
    }
}
