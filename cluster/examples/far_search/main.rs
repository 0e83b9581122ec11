//! This example searches the files of a folder with several nodes. Each has an index of a part.
//!
//! ```text
//!               ┌──> shard-0: index/0/3
//!  front ──ask──┼──> shard-1: index/1/3      a node, and the name of its actor: shard 1 of 3
//!               └──> shard-2: index/2/3
//! ```
//!
//! The front asks all shards at once and merges the answers that come in time. It says which
//! shards are missing. The demo starts three nodes, kills one with kill -9, and starts it again:
//!
//! ```console
//! $ cargo run --example far_search -- demo src incarnation
//! ```
//!
//! The same by hand, with a terminal for each node, which Ctrl-C ends:
//!
//! ```console
//! $ far_search node --shard 0 --of 3 --listen 127.0.0.1:7000 src
//! $ far_search node --shard 1 --of 3 --listen 127.0.0.1:7001 --seeds 127.0.0.1:7000 src
//! $ far_search node --shard 2 --of 3 --listen 127.0.0.1:7002 --seeds 127.0.0.1:7000 src
//! $ far_search ask --seeds 127.0.0.1:7000,127.0.0.1:7002 incarnation
//! ```
//!
//! One seed suffices to find all nodes. Another one helps if the first one is down.
//!
//! `--limit N` sets how many lines are shown. `demo --tls` makes certificates. Other commands take
//! `--identity DIR`, a folder with `ca.pem`, and with `NAME.pem` and `NAME.key` of the node. It is
//! called `shard-K`, and a front is called as `--name` says.
//!
//! The exit status is 0 if all shards have answered, 1 if some are missing, and 2 if none could be
//! asked. That of the demo is 0 if one shard was missing while its node was dead, and none before
//! and after.

mod demo;
mod front;
mod index;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use greenroom::spawn;
use greenroom_cluster::{Node, NodeBuilder};

use front::Front;
use index::{Index, index};

const USAGE: &str =
    "usage: far_search node [OPTIONS] FOLDER | ask [OPTIONS] WORD | demo [OPTIONS] FOLDER WORD";

/// Any error that ends the program.
type Trouble = Box<dyn Error + Send + Sync>;

#[derive(Default)]
struct Options {
    /// The command and its arguments.
    values: Vec<String>,
    shard: u8,
    of: u8,
    listen: Option<String>,
    seeds: Vec<String>,
    identity: Option<PathBuf>,
    name: Option<String>,
    limit: u32,
    tls: bool,
}

impl Options {
    /// Returns the builder of a node, with this name unless another one is given.
    fn node(&self, name: String) -> NodeBuilder {
        let name = self.name.clone().unwrap_or(name);
        let mut builder = Node::builder(&name).seeds(&self.seeds);
        if let Some(listen) = &self.listen {
            builder = builder.listen_address(listen);
        }
        if let Some(folder) = &self.identity {
            let file = |ending| folder.join(format!("{name}.{ending}"));
            builder = builder.identity(file("pem"), file("key"), folder.join("ca.pem"));
        }
        builder
    }
}

fn main() -> ExitCode {
    let options = parse().map_err(Trouble::from);
    match options.and_then(|options| greenroom::run(run(options))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(trouble) => {
            eprintln!("far_search: {trouble}");
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let mut options = Options::default();
    (options.of, options.limit) = (1, 20);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("shard") => options.shard = parser.value()?.parse()?,
            Long("of") => options.of = parser.value()?.parse()?,
            Long("listen") => options.listen = Some(parser.value()?.string()?),
            Long("seeds") => {
                let seeds = parser.value()?.string()?;
                options.seeds.extend(seeds.split(',').map(str::to_owned));
            }
            Long("identity") => options.identity = Some(parser.value()?.into()),
            Long("name") => options.name = Some(parser.value()?.string()?),
            Long("limit") => options.limit = parser.value()?.parse()?,
            Long("tls") => options.tls = true,
            Value(value) => options.values.push(value.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}

/// Runs a command. Returns whether all shards have answered as they should.
async fn run(options: Options) -> Result<bool, Trouble> {
    let values: Vec<&str> = options.values.iter().map(String::as_str).collect();
    match values[..] {
        ["node", folder] => serve(&options, folder.into()).await,
        ["ask", word] => {
            // Of two nodes with the same name, the older one is cut.
            let name = format!("front-{}", std::process::id());
            let mut front = Front::open(options.node(name).open().await?).await?;
            let answer = front.ask(word, options.limit).await;
            print!("{answer}");
            Ok(answer.missing.is_empty())
        }
        ["demo", folder, word] => demo::run(&options, folder.as_ref(), word).await,
        _ => Err(USAGE.into()),
    }
}

/// Serves a shard until Ctrl-C comes.
async fn serve(options: &Options, folder: PathBuf) -> Result<bool, Trouble> {
    let (shard, of) = (options.shard.into(), options.of.into());
    if shard >= of {
        return Err(format!("there is no shard {shard} of {of}: they begin with 0").into());
    }
    let part = greenroom::unblock(move || Index::read(&folder, shard, of)).await?;
    let lines = part.lines();
    let node = options.node(format!("shard-{shard}")).open().await?;
    let actor = spawn!(index(_, part), name = "index", capacity = 64);
    let _published = node.publish(&index::name(shard, of), &actor)?;
    let at = node.listen_addresses().join(",");
    println!("shard {shard}: {lines} lines, listening at {at}");
    greenroom::ctrl_c().await?;
    node.close().await;
    Ok(true)
}
