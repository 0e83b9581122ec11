//! Certificates: who is connected with whom, and renewal.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use greenroom::spawn;
use greenroom_cluster::{Node, NodeBuilder, OpenError, RemoteLookupError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::nodes::{Tally, found, tally};

/// A folder with certificates, which is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("greenroom-cluster-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Writes the certificate of a node, and the authorities that it trusts.
    fn write(&self, name: &str, signed_by: &Authority, trusts: &[&Authority]) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, signed_by).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
        self.write_trust(name, trusts);
    }

    fn write_trust(&self, name: &str, trusts: &[&Authority]) {
        let authorities: String = trusts.iter().map(|authority| authority.pem()).collect();
        fs::write(self.path(&format!("{name}.ca")), authorities).unwrap();
    }

    fn builder(&self, name: &str, files: &str) -> NodeBuilder {
        let file = |ending| self.path(&format!("{files}.{ending}"));
        Node::builder(name).identity(file("pem"), file("key"), file("ca"))
    }

    async fn shop(&self) -> Node {
        let node = self
            .builder("shop", "shop")
            .listen_address("tls/127.0.0.1:0");
        node.open().await.unwrap()
    }
}

/// Waits until the node says why it has not reached its seed, with this text.
async fn until_unreached(node: &Node, text: &str) {
    loop {
        let unreached = node.status().unreached;
        if unreached.iter().any(|why| why.contains(text)) {
            return;
        }
        assert!(node.status().peers.is_empty(), "{unreached:?}");
        greenroom::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn nodes_with_certificates_of_one_authority_are_connected() {
    greenroom::run(async {
        let (folder, one) = (Folder::new("good"), authority());
        folder.write("shop", &one, &[&one]);
        folder.write("desk", &one, &[&one]);
        let shop = folder.shop().await;
        let actor = spawn!(tally(_));
        let _published = shop.publish("tally", &actor).unwrap();
        let desk = folder
            .builder("desk", "desk")
            .seeds(shop.listen_addresses())
            .open()
            .await
            .unwrap();
        let far = found::<Tally>(&desk, "tally").await;
        let echo = far
            .ask(|reply| Tally::Echo(vec![7; 1_000_000], reply))
            .await;
        assert_eq!(echo.unwrap().len(), 1_000_000);
    });
}

#[test]
fn a_node_without_a_certificate_is_told_that_the_other_may_have_one() {
    greenroom::run(async {
        let (folder, one) = (Folder::new("plain"), authority());
        folder.write("shop", &one, &[&one]);
        let shop = folder.shop().await;
        let desk = Node::builder("desk").seeds(shop.listen_addresses());
        let desk = desk.open().await.unwrap();
        until_unreached(&desk, "only one of the nodes has a certificate").await;
    });
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    greenroom::run(async {
        let (folder, one, other) = (Folder::new("other"), authority(), authority());
        folder.write("shop", &one, &[&one, &other]);
        folder.write("late", &other, &[&one, &other]);
        folder.write_trust("shop", &[&one]);
        let shop = folder.shop().await;
        let late = folder
            .builder("late", "late")
            .seeds(shop.listen_addresses())
            .open()
            .await
            .unwrap();
        until_unreached(&late, "no secure connection").await;
        // It counts after it has said so.
        while shop.status().refused_links == 0 {
            greenroom::yield_now().await;
        }

        // The authority is added, without a restart.
        folder.write_trust("shop", &[&one, &other]);
        shop.renew_identity().unwrap();
        let actor = spawn!(tally(_));
        let _published = shop.publish("tally", &actor).unwrap();
        let far = found::<Tally>(&late, "tally").await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));

        // Files that cannot be used change nothing.
        fs::write(folder.path("shop.ca"), "nothing").unwrap();
        let error = shop.renew_identity().unwrap_err();
        assert!(error.to_string().contains("shop.ca"), "{error}");
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
    });
}

#[test]
fn a_seed_of_another_authority_is_not_trusted() {
    greenroom::run(async {
        let (folder, one, other) = (Folder::new("seed"), authority(), authority());
        folder.write("shop", &one, &[&one, &other]);
        folder.write("late", &other, &[&other]);
        let shop = folder.shop().await;
        let late = folder
            .builder("late", "late")
            .seeds(shop.listen_addresses())
            .open()
            .await
            .unwrap();
        until_unreached(&late, "no secure connection").await;
    });
}

#[test]
fn a_node_shows_its_new_certificate_without_a_restart() {
    greenroom::run(async {
        let (folder, one, other) = (Folder::new("renewed"), authority(), authority());
        folder.write("shop", &one, &[&one, &other]);
        folder.write("late", &other, &[&other]);
        let shop = folder.shop().await;
        let actor = spawn!(tally(_));
        let _published = shop.publish("tally", &actor).unwrap();
        let late = folder
            .builder("late", "late")
            .seeds(shop.listen_addresses());
        let late = late.open().await.unwrap();
        until_unreached(&late, "no secure connection").await;
        folder.write("shop", &other, &[&one, &other]);
        shop.renew_identity().unwrap();
        let far = late
            .lookup::<Tally>("tally")
            .timeout(Duration::from_secs(60));
        assert_eq!(far.await.unwrap().ask(Tally::Total).await, Ok(0));

        // A certificate of another node changes nothing.
        for ending in ["pem", "key"] {
            let (from, to) = (format!("late.{ending}"), format!("shop.{ending}"));
            fs::copy(folder.path(&from), folder.path(&to)).unwrap();
        }
        let error = shop.renew_identity().unwrap_err();
        assert!(
            error.to_string().contains("no DNS name \"shop\""),
            "{error}"
        );
    });
}

#[test]
fn a_node_without_a_certificate_is_refused() {
    greenroom::run(async {
        let (folder, one) = (Folder::new("refused"), authority());
        folder.write("shop", &one, &[&one]);
        let shop = folder.shop().await;
        let plain = Node::builder("plain")
            .seeds(shop.listen_addresses())
            .open()
            .await
            .unwrap();
        until_unreached(&plain, "").await;
        let Err(RemoteLookupError::Unknown { seeds, .. }) =
            plain.lookup::<Tally>("tally").timeout(Duration::ZERO).await
        else {
            panic!("there is no such name");
        };
        assert!(
            seeds[0].starts_with(&shop.listen_addresses()[0]),
            "{seeds:?}"
        );
    });
}

#[test]
fn a_certificate_has_the_name_of_its_node() {
    greenroom::run(async {
        let (folder, one) = (Folder::new("name"), authority());
        folder.write("shop", &one, &[&one]);
        let error = folder.builder("desk", "shop").open().await.unwrap_err();
        let text = "it has no DNS name \"desk\", which is the name of the node";
        assert!(error.to_string().ends_with(text), "{error}");
        let missing = folder.builder("shop", "none").open().await.unwrap_err();
        assert!(matches!(missing, OpenError::Identity(_)), "{missing}");
        let mixed = folder
            .builder("shop", "shop")
            .listen_address("tcp/127.0.0.1:0");
        let mixed = mixed.open().await.unwrap_err();
        assert!(matches!(mixed, OpenError::Option(_)), "{mixed}");
    });
}

#[test]
fn without_a_certificate_a_node_listens_at_loopback_only() {
    greenroom::run(async {
        let at = "0.0.0.0:0";
        let error = Node::builder("a")
            .listen_address(at)
            .open()
            .await
            .unwrap_err();
        assert!(
            matches!(error, OpenError::Exposed(ref given) if given == at),
            "{error}"
        );
        let node = Node::builder("a")
            .listen_address(at)
            .insecure()
            .open()
            .await
            .unwrap();
        assert!(node.listen_addresses()[0].starts_with("0.0.0.0:"));
        let needs = Node::builder("a")
            .listen_address("tls/127.0.0.1:0")
            .open()
            .await
            .unwrap_err();
        assert!(needs.to_string().contains("needs an identity"), "{needs}");
    });
}
