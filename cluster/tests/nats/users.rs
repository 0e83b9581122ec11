//! Who may speak: a server with users, and nodes or strangers that try to be others.

use async_nats::ConnectOptions;
use futures::{FutureExt, StreamExt};
use greenroom_cluster::{Node, OpenError, RemoteEnd};

use crate::certificates::files_of;
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
        // A server without users knows nobody.
        let server = Server::open();
        let node = Node::builder("shop").nats(greenroom_cluster::Nats::servers([server.address()]));
        let error = node.open().await.unwrap_err();
        assert!(error.to_string().contains("it has no users"), "{error}");
    });
}

/// Connects as a stranger with the certificate of a node.
async fn stranger(name: &str, address: &str) -> async_nats::Client {
    let [certificate, key, authority] = files_of(name);
    let options = ConnectOptions::new()
        .require_tls(true)
        .add_root_certificates(authority)
        .add_client_certificate(certificate, key);
    options.connect(address).await.unwrap()
}

/// Runs a client of async-nats, which needs tokio.
async fn on_tokio<T: Send + 'static>(client: impl Future<Output = T> + Send + 'static) -> T {
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

/// Opens a node as soon as the server has its user.
async fn until_open(name: &str, server: &Server) -> Node {
    loop {
        if let Ok(node) = Node::builder(name).nats(server.known(name)).open().await {
            return node;
        }
    }
}
