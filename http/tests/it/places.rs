//! Listeners that a program gives, and sockets of Unix.

use std::net::TcpListener;

use greenroom_http::{ListenProblem, Server, ServerBuilder};

use crate::support::{Client, patient, until};

fn listen(
    builder: ServerBuilder,
) -> Result<(greenroom::Runtime, Server), greenroom_http::ListenError> {
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let server = runtime.block_on(runtime.spawn(builder.listen()))?;
    Ok((runtime, server))
}

fn page() -> greenroom_http::HttpResponse {
    greenroom_http::HttpResponse::new(200, "hello")
}

#[test]
fn a_server_takes_a_listener_that_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // A client that comes before the server waits for it.
    let mut early = Client::new(address);
    let (_runtime, server) = listen(Server::from_listener(listener).index(page())).unwrap();
    assert_eq!(server.local_addr(), address);
    assert_eq!(early.get("/").body, "hello");
}

#[test]
fn a_given_listener_that_other_machines_reach_needs_an_exposed_server() {
    let any = || TcpListener::bind("0.0.0.0:0").unwrap();
    let listener = any();
    let address = listener.local_addr().unwrap().to_string();
    let error = listen(Server::from_listener(listener)).unwrap_err();
    assert_eq!(error.problem(), &ListenProblem::NotLoopback);
    assert_eq!(error.address(), address);
    drop(listen(Server::from_listener(any()).expose()).unwrap());
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};

    use greenroom_http::Limits;

    use super::*;

    /// A folder of a test, which is removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("greenroom-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn socket(&self) -> PathBuf {
            self.0.join("socket")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn bind(path: &Path) -> greenroom_http::ServerBuilder {
        Server::bind_path(path).limits(patient())
    }

    fn ask(path: &Path, fields: &str) -> String {
        let mut client = UnixStream::connect(path).unwrap();
        let request =
            format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_server_listens_at_a_path_that_only_its_user_reaches() {
        let folder = Folder::new("path");
        let path = folder.socket();
        let (runtime, server) = listen(bind(&path).index(page())).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let answer = ask(&path, "");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
        runtime.block_on(async move { server.stop().await });
        assert!(!path.exists(), "the file is removed");
    }

    #[test]
    fn a_server_that_is_dropped_removes_its_file() {
        let folder = Folder::new("dropped");
        let path = folder.socket();
        let (_runtime, server) = listen(bind(&path)).unwrap();
        drop(server);
        until("the file is removed", || !path.exists());
    }

    #[test]
    fn a_socket_is_replaced_only_if_nobody_listens() {
        let folder = Folder::new("left");
        let path = folder.socket();
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "it is left by its program");
        let (_runtime, _server) = listen(bind(&path).index(page())).unwrap();
        assert!(ask(&path, "").ends_with("hello"));
        let error = listen(bind(&path)).unwrap_err();
        assert!(
            error.to_string().contains("Address already in use"),
            "{error}"
        );
        assert!(ask(&path, "").ends_with("hello"));
        let file = folder.0.join("file");
        fs::write(&file, "text").unwrap();
        assert!(listen(Server::bind_path(&file)).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
    }

    #[test]
    fn a_file_that_has_come_in_place_of_the_socket_stays() {
        let folder = Folder::new("other");
        let path = folder.socket();
        let (runtime, server) = listen(bind(&path)).unwrap();
        fs::rename(&path, folder.0.join("away")).unwrap();
        fs::write(&path, "text").unwrap();
        runtime.block_on(async move { server.stop().await });
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }

    #[test]
    fn the_file_of_a_given_listener_stays() {
        let folder = Folder::new("given");
        let path = folder.socket();
        let listener = UnixListener::bind(&path).unwrap();
        let (runtime, server) = listen(Server::from_listener(listener).index(page())).unwrap();
        assert!(ask(&path, "").ends_with("hello"));
        runtime.block_on(async move { server.stop().await });
        assert!(path.exists());
    }

    #[test]
    fn all_clients_of_a_path_are_one() {
        let folder = Folder::new("peer");
        let path = folder.socket();
        let limits = Limits {
            connections_a_peer: 1,
            ..patient()
        };
        let stream = || futures_lite::stream::pending::<String>();
        let page = greenroom_http::Mount::stream("/", "text/plain", stream);
        let builder = Server::bind_path(&path).mount(page).limits(limits);
        let (_runtime, _server) = listen(builder.count_loopback()).unwrap();
        let mut first = UnixStream::connect(&path).unwrap();
        first
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut begin = [0; 12];
        first.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        let mut second = String::new();
        let mut client = UnixStream::connect(&path).unwrap();
        client.read_to_string(&mut second).unwrap();
        assert!(second.starts_with("HTTP/1.1 503"), "{second}");
    }
}
