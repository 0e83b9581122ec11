//! `greenroom-cluster nats-config`: prints the configuration of a NATS server, or checks one.

use std::path::PathBuf;
use std::process::ExitCode;

use greenroom_cluster::Nats;
use lexopt::prelude::*;

const HELP: &str = "\
greenroom-cluster nats-config --nodes NAME[,NAME]..
    Prints a nats-server.conf in which these nodes are users.

greenroom-cluster nats-config --check SERVER --nodes NAME --identity CERT KEY CA
    Connects with a server as a node, and prints what the server lacks.

    A client does not see ping_interval, ping_max, max_pending and write_deadline of its server:
    compare those of the server with what is printed, or with /varz at its http_port.

    The variable NATS_PASSWORD has the password of the node, if it has one. Then --identity may be
    missing.
";

/// The variable with the password. Other users of a machine see arguments, and no variables.
const PASSWORD: &str = "NATS_PASSWORD";

/// What is to be done.
#[derive(Default)]
struct Arguments {
    nodes: Vec<String>,
    server: Option<String>,
    identity: Option<[PathBuf; 3]>,
}

fn main() -> ExitCode {
    let done = arguments().and_then(run);
    done.unwrap_or_else(|error| {
        eprintln!("{error}\n\n{HELP}");
        ExitCode::from(2)
    })
}

fn arguments() -> Result<Arguments, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut arguments = Arguments::default();
    match parser.next()? {
        Some(Value(command)) if command == "nats-config" => {}
        Some(Long("help") | Short('h')) => {
            print!("{HELP}");
            std::process::exit(0);
        }
        Some(other) => return Err(other.unexpected()),
        None => return Err("no command".into()),
    }
    while let Some(argument) = parser.next()? {
        match argument {
            Long("nodes") => {
                let names = parser.value()?.string()?;
                arguments.nodes = names.split(',').map(Into::into).collect();
            }
            Long("check") => arguments.server = Some(parser.value()?.string()?),
            Long("identity") => {
                let mut file = || parser.value().map(PathBuf::from);
                arguments.identity = Some([file()?, file()?, file()?]);
            }
            _ => return Err(argument.unexpected()),
        }
    }
    match arguments.nodes.is_empty() || arguments.nodes.iter().any(String::is_empty) {
        true => Err("no nodes, or one without a name".into()),
        false => Ok(arguments),
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, lexopt::Error> {
    let Some(server) = arguments.server else {
        print!("{}", Nats::server_config(&arguments.nodes));
        return Ok(ExitCode::SUCCESS);
    };
    let password = std::env::var(PASSWORD).ok();
    if arguments.identity.is_none() && password.is_none() {
        return Err(format!("no identity, and no {PASSWORD}").into());
    }
    let mut nats = Nats::servers([server]);
    if let Some([certificate, key, authority]) = arguments.identity {
        nats = nats.identity(certificate, key, authority);
    }
    if let Some(password) = password {
        nats = nats.password(password);
    }
    let [node] = &arguments.nodes[..] else {
        return Err("a check is that of one node".into());
    };
    let checked = greenroom::run(nats.check(node));
    let lacks = checked.map_err(|error| error.to_string())?;
    lacks.iter().for_each(|lack| println!("{lack}"));
    Ok(match lacks.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
