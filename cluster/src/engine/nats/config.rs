//! The configuration of a server whose users are nodes.
//!
//! A user may publish only under the name of its node, and receive only what is meant for it.

use std::fmt::Write;

use super::{GONE, Nats};
use crate::engine::broker::{patterns_from, patterns_to, token};

/// What is the same for all nodes. The account of the nodes receives which connections have ended.
const HEAD: &str = r#"# The files of the server: its certificate, its key, and the authority of the nodes.
tls {
  cert_file: "server.pem"
  key_file: "server.key"
  ca_file: "ca.pem"
  # The user is the one that has a DNS name of the certificate.
  verify_and_map: true
}

# A connection that is half open ends within 3 s.
ping_interval: "1s"
ping_max: 2
max_payload: 1MB
max_pending: 64MB
write_deadline: "10s"

system_account: SYS
accounts {
  SYS {
    exports: [ { stream: "$SYS.ACCOUNT.*.DISCONNECT" } ]
  }
"#;

impl Nats {
    /// Returns the configuration of a server, `nats-server.conf`, that has these nodes as users.
    ///
    /// Another node is another user: add it, and have the server reload (`nats-server --signal
    /// reload`). No link ends by that. A permission that an operator adds is a promise that is taken
    /// away: who may publish under another name can speak as that node.
    ///
    /// ```
    /// let config = greenroom_cluster::Nats::server_config(["shop", "desk"]);
    /// assert!(config.contains(r#"user: "shop""#));
    /// ```
    pub fn server_config<S: AsRef<str>>(nodes: impl IntoIterator<Item = S>) -> String {
        let mut config = HEAD.to_owned();
        // A text takes all that is written.
        let _ = writeln!(config, "  NODES {{");
        let _ = writeln!(
            config,
            "    imports: [ {{ stream: {{ account: SYS, subject: \"$SYS.ACCOUNT.NODES.DISCONNECT\" }}, to: \"{GONE}\" }} ]"
        );
        let _ = writeln!(config, "    users: [");
        for node in nodes {
            config += &user(node.as_ref());
        }
        config + "    ]\n  }\n}\n"
    }
}

/// Returns what a node may publish, and what it may receive.
pub(super) fn permissions(node: &str) -> [Vec<String>; 2] {
    let mut publish = patterns_from(node);
    publish.push("$SYS.REQ.USER.INFO".into());
    let mut subscribe = patterns_to(node);
    subscribe.extend([GONE.into(), format!("_INBOX.{}.>", token(node))]);
    [publish, subscribe]
}

/// Returns the user that a node is.
fn user(node: &str) -> String {
    let [publish, subscribe] = permissions(node).map(|all| quoted_list(&all));
    let user = quoted(node);
    format!(
        "      {{ user: {user}, permissions: {{\n          publish: {publish}\n          \
         subscribe: {subscribe} }} }}\n"
    )
}

fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns a text as the parser of the server reads it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\r' => quoted += "\\r",
            _ => quoted.push(char),
        }
    }
    quoted + "\""
}
