//! Measures greenroom-cluster beside kameo, ractor_cluster, a blocking ping and bare async-nats.
//!
//! The server, the client and the comparison are modes of one program, each in its own process.

mod certificates;
mod client;
mod green;
mod kameo_peer;
mod kinds;
mod nats_peer;
mod nats_server;
mod nodes;
mod ping;
mod process;
mod ractor_peer;
mod rounds;
mod table;

use std::error::Error;

use kinds::Kind;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "cluster-bench run [ROUNDS [SIZE]]
cluster-bench figure KIND FIGURE SIZE
cluster-bench serve KIND [NATS]
cluster-bench client KIND FIGURE ADDRESS SIZE
cluster-bench nodes

KIND: greenroom greenroom-tls kameo ractor ping, and at a NATS server greenroom-nats
      greenroom-nats-tls greenroom-nats-three async-nats async-nats-tls
FIGURE: ask many send flood idle killed stopped
SIZE: the number of sequential asks; other figures depend on it";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["run"] => rounds::run(5, 20_000),
        ["run", rounds] => rounds::run(rounds.parse()?, 20_000),
        ["run", rounds, size] => rounds::run(rounds.parse()?, size.parse()?),
        ["figure", kind, figure, size] => {
            certificates::write()?;
            println!(
                "{:?}",
                rounds::figure(Kind::of(kind)?, figure, size.parse()?)?
            );
            Ok(())
        }
        ["nodes"] => {
            certificates::write()?;
            println!("{:.1} KiB a node", nodes::slope()? / 1024.0);
            Ok(())
        }
        ["serve", kind] => kinds::serve(Kind::of(kind)?, ""),
        ["serve", kind, nats] => kinds::serve(Kind::of(kind)?, nats),
        ["client", kind, figure, address, size] => {
            kinds::client(Kind::of(kind)?, figure, address, size.parse()?)
        }
        _ => Err(USAGE.into()),
    }
}
