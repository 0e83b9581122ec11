//! Where a program listens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a program listens: a URL, or the path of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A host and a port, such as `127.0.0.1:5050`.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// Why a word is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadEndpoint(String);

impl fmt::Display for BadEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadEndpoint {}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(word: &str) -> Result<Self, BadEndpoint> {
        let Some((scheme, rest)) = word.split_once("://") else {
            return match word {
                "" => Err(BadEndpoint(
                    "a URL or the path of a socket is missing".to_owned(),
                )),
                // A path has a slash; such a file would be `./shop:5050`.
                host if !host.contains('/') && has_port(host) => Err(BadEndpoint(format!(
                    "{host:?} is the path of no socket: a URL is like http://{host}"
                ))),
                path => Ok(Endpoint::Unix(PathBuf::from(path))),
            };
        };
        if scheme != "http" {
            let text = format!("{scheme}: only http is known; a tunnel of ssh keeps it secret");
            return Err(BadEndpoint(text));
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_path = matches!(path, "" | "console/v1");
        if host.is_empty() || !is_path || host.contains(['@', '?', '#', ' ']) {
            return Err(BadEndpoint(format!(
                "{word:?} is not like http://127.0.0.1:5050"
            )));
        }
        Ok(Endpoint::Tcp(match has_port(host) {
            true => host.to_owned(),
            false => format!("{host}:80"),
        }))
    }
}

fn has_port(host: &str) -> bool {
    let end = host.rsplit_once(':');
    end.is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(host) => write!(f, "http://{host}"),
            Endpoint::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn an_endpoint_is_a_url_or_a_path() {
        let tcp = |host: &str| Ok(Endpoint::Tcp(host.to_owned()));
        assert_eq!("http://127.0.0.1:5050".parse(), tcp("127.0.0.1:5050"));
        assert_eq!("http://[::1]:5050/".parse(), tcp("[::1]:5050"));
        assert_eq!("http://shop/console/v1".parse(), tcp("shop:80"));
        assert_eq!("/run/shop".parse(), Ok(Endpoint::Unix("/run/shop".into())));
        assert_eq!("./a:1".parse(), Ok(Endpoint::Unix("./a:1".into())));
        for word in [
            "",
            "https://shop",
            "http://",
            "http://shop/actors",
            "127.0.0.1:5050",
        ] {
            assert!(word.parse::<Endpoint>().is_err(), "{word}");
        }
    }
}
