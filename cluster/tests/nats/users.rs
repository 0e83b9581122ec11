//! Who may speak: a server with users, and nodes or strangers that try to be others.

use async_nats::ConnectOptions;
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

#[test]
fn a_good_certificate_neither_speaks_as_another_node_nor_receives_what_is_meant_for_it() {
    run(async {
        let address = listener();
        let shop = Node::builder("shop").nats(nats("shop", &address));
        let shop = shop.open().await.unwrap();
        let actor = greenroom::spawn!(notes(_, |_, _| {}));
        shop.publish("notes", &actor).unwrap().detach();
        let (done, is_done) = futures::channel::oneshot::channel::<()>();
        let refused = on_tokio({
            let address = address.clone();
            async move {
                let client = stranger("a", &address).await;
                let mut heard = client.subscribe("gr.to.shop.*").await.unwrap();
                let mut replies = client.subscribe("gr.to.a.shop").await.unwrap();
                // As another node, with and without a reply subject that would be its own.
                for subject in ["gr.to.shop.desk", "gr.find.notes.desk", "gr.names.desk"] {
                    client.publish(subject, "x".into()).await.unwrap();
                    let (reply, x) = ("gr.to.shop.desk", "x");
                    client
                        .publish_with_reply(subject, reply, x.into())
                        .await
                        .unwrap();
                }
                client.flush().await.unwrap();
                is_done.await.unwrap();
                client.flush().await.unwrap();
                (heard.next().now_or_never(), replies.next().now_or_never())
            }
        });
        let desk = Node::builder("desk").nats(nats("desk", &address));
        let desk = desk.open().await.unwrap();
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        let asked = async {
            for _ in 0..100 {
                assert_eq!(far.ask(Note::Life).await, Ok(std::process::id()));
            }
            done.send(()).unwrap();
        };
        let ((heard, replies), ()) = futures::join!(refused, asked);
        assert!(
            heard.is_none() && replies.is_none(),
            "{heard:?}, {replies:?}"
        );
        assert_eq!(
            (shop.status().malformed, shop.status().refused_links),
            (0, 0)
        );
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
