//! The file of a socket of Unix: only its user reaches it, and it is removed at the end.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf, absolute};

use socket2::{Domain, SockAddr, Socket, Type};

/// The connections that wait to be accepted, as many as those of TCP.
const BACKLOG: i32 = 128;

/// A file that is removed when this is dropped, unless another one has come in its place.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// The device, and the number of the file there.
    file: (u64, u64),
}

impl SocketFile {
    /// Listens at a path. A socket that a program has left there is replaced.
    pub(super) fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
        let path = absolute(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        let address = SockAddr::unix(&path)?;
        match socket.bind(&address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left(&path) => {
                fs::remove_file(&path)?;
                socket.bind(&address)?;
            }
            bound => bound?,
        }
        let file = identity(&path)?;
        let own = SocketFile { path, file };
        // Nobody can connect before it listens, so no other user ever can.
        fs::set_permissions(&own.path, Permissions::from_mode(0o600))?;
        socket.listen(BACKLOG)?;
        Ok((OwnedFd::from(socket).into(), own))
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|it| (it.dev(), it.ino()))
}

/// Returns whether a socket is there at which nobody listens.
fn is_left(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let refuses = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).is_err_and(refuses)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            // What cannot be removed is replaced by the next program.
            let _ = fs::remove_file(&self.path);
        }
    }
}
