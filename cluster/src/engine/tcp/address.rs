//! Addresses of nodes, as a user writes them.
//!
//! `tls/host:port`, `tcp/host:port` or `host:port`. The last one is the bare form of all of them.

use std::io;
use std::net::{TcpListener, ToSocketAddrs};

use crate::error::OpenError;

/// Splits off the protocol. Returns the rest, or what is wrong: links of a node are all of one kind.
pub(crate) fn bare(given: &str, is_tls: bool) -> Result<String, String> {
    let (protocol, rest) = match given.split_once('/') {
        Some((protocol, rest)) => (Some(protocol), rest),
        None => (None, given),
    };
    // Links of a node are all TLS or all plain.
    match protocol {
        Some("tls") if !is_tls => Err(format!("{given:?} needs an identity")),
        Some("tcp") if is_tls => Err(format!("{given:?} is plain, and the node has an identity")),
        None | Some("tls" | "tcp") => Ok(()),
        Some(_) => Err(format!(
            "{given:?} begins neither with \"tls/\" nor with \"tcp/\""
        )),
    }?;
    match rest.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(rest.into()),
        _ => Err(format!(
            "{given:?} is no host and port, as in \"127.0.0.1:7447\""
        )),
    }
}

/// Binds an address, given and bare. Returns the listener, and the address under which others may
/// dial it.
pub(crate) fn bind(
    given: &str,
    bare: &str,
    may_be_exposed: bool,
) -> Result<(TcpListener, Option<String>), OpenError> {
    let failed = |error: io::Error| OpenError::Listen(given.into(), error);
    let addresses: Vec<_> = bare.to_socket_addrs().map_err(failed)?.collect();
    if !may_be_exposed && addresses.iter().any(|at| !at.ip().is_loopback()) {
        return Err(OpenError::Exposed(given.into()));
    }
    let listener = TcpListener::bind(&addresses[..]).map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    let host = bare.rsplit_once(':').map_or("", |(host, _)| host);
    let is_any = at.ip().is_unspecified();
    let is_name = host
        .trim_matches(['[', ']'])
        .parse::<std::net::IpAddr>()
        .is_err();
    // `0.0.0.0` cannot be dialled, and a name may lead to more than one address.
    let dialled = match (is_any, is_name) {
        (true, _) => None,
        (false, true) => Some(format!("{host}:{}", at.port())),
        (false, false) => Some(at.to_string()),
    };
    Ok((listener, dialled))
}
