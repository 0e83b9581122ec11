//! The demo: three nodes, of which one is killed and started again.
//!
//! Its nodes end with it, unless it is killed itself.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::front::Front;
use crate::{Options, Trouble};

const SHARDS: usize = 3;

/// The shard that is killed.
const VICTIM: usize = 1;

/// Returns whether the victim was missing when it was dead, and nothing before and after.
pub async fn run(given: &Options, folder: &Path, word: &str) -> Result<bool, Trouble> {
    let certificates = tempfile::tempdir()?;
    let (mut options, limit) = (Options::default(), given.limit);
    if given.tls {
        certify(certificates.path())?;
        options.identity = Some(certificates.path().to_owned());
    }
    let mut shards = Vec::new();
    for shard in 0..SHARDS {
        shards.push(Shard::start(shard, &options, folder).await?);
        // All others find each other by the first one.
        options.seeds = vec![shards[0].address.clone()];
    }
    let mut front = Front::open(options.node("front".into()).open().await?).await?;
    let before = front.ask(word, limit).await;
    print!("{before}\nkill -9 of shard {VICTIM}\n");

    drop(shards.remove(VICTIM));
    let meanwhile = front.ask(word, limit).await;
    print!("{meanwhile}\nshard {VICTIM} starts again\n");

    shards.push(Shard::start(VICTIM, &options, folder).await?);
    let after = front.ask(word, limit).await;
    print!("{after}");
    let is_alone = meanwhile.missing.keys().eq([&VICTIM]);
    Ok(before.missing.is_empty() && is_alone && after == before)
}

/// The process of a node. Dropping this kills it.
struct Shard {
    process: Child,
    address: String,
}

impl Shard {
    /// Starts a node, and waits until it prints where it listens.
    async fn start(shard: usize, options: &Options, folder: &Path) -> Result<Shard, Trouble> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["node", "--listen", "127.0.0.1:0"]);
        command.args([format!("--shard={shard}"), format!("--of={SHARDS}")]);
        command.args(options.seeds.iter().map(|seed| format!("--seeds={seed}")));
        if let Some(identity) = &options.identity {
            command.arg("--identity").arg(identity);
        }
        command.arg("--").arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        greenroom::unblock(move || {
            let (process, address) = (command.spawn()?, String::new());
            let mut started = Shard { process, address };
            let mut line = String::new();
            let stdout = started.process.stdout.take().map(BufReader::new);
            stdout.ok_or("no stdout")?.read_line(&mut line)?;
            print!("{line}");
            let address = line.trim_end().rsplit_once(" at ");
            started.address = address.ok_or("a node has not started")?.1.to_owned();
            Ok(started)
        })
        .await
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // A process that has ended cannot be killed. On Unix this is kill -9.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes an authority, and a certificate and a key for each node.
fn certify(folder: &Path) -> Result<(), Trouble> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    fs::write(folder.join("ca.pem"), authority.pem())?;
    let shards = (0..SHARDS).map(|shard| format!("shard-{shard}"));
    for name in shards.chain(["front".to_owned()]) {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([name.clone()])?.signed_by(&key, &authority)?;
        fs::write(folder.join(format!("{name}.pem")), certificate.pem())?;
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem())?;
    }
    Ok(())
}
