//! Measures greenroom-http beside hyper and axum, on tokio.
//!
//! The servers, the load and the comparison are modes of one program, each in its own process.

mod green;
mod idle;
mod load;
mod memory;
mod peers;
mod process;
mod rounds;
mod servers;
mod speed;
mod table;
mod wrk;

use std::error::Error;

use rounds::Shape;
use servers::Kind;

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "http-bench run [ROUNDS [REQUESTS]]
http-bench wide|processes|wrk [ROUNDS [REQUESTS]]
http-bench speed
http-bench serve page|hyper|actor|task|actors|tasks|spool|pool
http-bench load PORT SERVER CONNECTIONS REQUESTS
http-bench idle SERVER";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["speed"] => speed::check(),
        ["serve", name] => servers::serve(Kind::of(name)?),
        ["load", port, name, connections, requests] => {
            let kind = Kind::of(name)?;
            load::run(port.parse()?, kind, connections.parse()?, requests.parse()?)
        }
        ["idle", name] => {
            println!("{:?}", idle::measure(Kind::of(name)?)?);
            Ok(())
        }
        [shape] => rounds::run(Shape::of(shape).ok_or(USAGE)?, 9, 100_000),
        [shape, rounds] => rounds::run(Shape::of(shape).ok_or(USAGE)?, rounds.parse()?, 100_000),
        [shape, rounds, requests] => {
            let shape = Shape::of(shape).ok_or(USAGE)?;
            rounds::run(shape, rounds.parse()?, requests.parse()?)
        }
        _ => Err(USAGE.into()),
    }
}
