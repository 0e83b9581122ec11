//! Measures greenroom-http beside hyper on tokio, and an actor's table beside that of axum.
//!
//! The servers, the load and the comparison are modes of one program, each in its own process.

mod idle;
mod load;
mod memory;
mod process;
mod rounds;
mod servers;
mod table;
mod texture;

use std::error::Error;

use servers::Kind;

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "http-bench run [ROUNDS [REQUESTS]]
http-bench serve greenroom|undriven|tokio|texture-greenroom|texture-axum
http-bench load PID PORT PATH REQUESTS
http-bench idle SERVER";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["run"] => rounds::run(9, 100_000),
        ["run", rounds] => rounds::run(rounds.parse()?, 100_000),
        ["run", rounds, requests] => rounds::run(rounds.parse()?, requests.parse()?),
        ["serve", name] => servers::serve(Kind::of(name)?),
        ["load", pid, port, path, requests] => {
            let load = load::run(pid.parse()?, port.parse()?, path, requests.parse()?)?;
            println!("{} {} {}", load.rate, load.p99, load.processor);
            Ok(())
        }
        ["idle", name] => {
            println!("{:?}", idle::measure(Kind::of(name)?)?);
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
