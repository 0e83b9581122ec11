//! Addresses of names.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use greenroom::unblock;

/// Returns the addresses of a name with a port, of which there is at least one. It may take long.
pub(crate) async fn resolve(name: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let name = name.to_owned();
    let found = unblock(move || name.to_socket_addrs().map(Vec::from_iter)).await?;
    match found.is_empty() {
        true => Err(io::Error::other("the name has no address")),
        false => Ok(found),
    }
}
