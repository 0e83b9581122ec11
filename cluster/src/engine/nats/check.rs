//! What a running server lacks for a node.
//!
//! It connects as the node, and compares what the server says with the configuration that this
//! package prints.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::Client;
use futures_lite::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{GONE, Nats, config, disconnected, options};
use crate::error::OpenError;

/// How long the server may take to report a connection that has ended.
const REPORT: Duration = Duration::from_secs(1);

/// The `max_payload` of a server with its defaults.
const USUAL_PAYLOAD: usize = 1 << 20;

impl Nats {
    /// Connects as the node `name`, and returns what the server lacks, each as a sentence. It is
    /// empty if the server has what [`server_config`](Nats::server_config) says, as far as a client
    /// sees that: pings, `max_pending` and `write_deadline` are not told to clients.
    ///
    /// It waits for the server: at most some seconds.
    ///
    /// # Errors
    /// As [`open`](crate::NodeBuilder::open): no server is reached, or it does not know the node.
    ///
    /// # Cancel safety
    /// Cancel safe: the connection ends by itself.
    pub async fn check(self, name: impl Into<String>) -> Result<Vec<String>, OpenError> {
        let name = name.into();
        options::on_thread(move |lacks| async move {
            let checked = self.lacks(&name).await;
            // The caller may have gone.
            drop(lacks.send(checked));
        })
        .await
    }

    async fn lacks(&self, name: &str) -> Result<Vec<String>, OpenError> {
        let (events, _) = mpsc::unbounded_channel();
        let client = self.connect(name, 0, events).await?;
        let mut lacks = Vec::new();
        let most = client.max_payload();
        if most < USUAL_PAYLOAD {
            lacks.push(format!(
                "max_payload is {most}: larger messages are refused"
            ));
        }
        let info = options::user_info(&client)
            .await
            .map_err(OpenError::Server)?;
        lacks.extend(permission_lacks(name, &info));
        if !self.reports_ends(&client, name).await? {
            let text = "the account does not receive which connections end: \
                        a node that is killed is lost after 1.5 leases";
            lacks.push(text.into());
        }
        Ok(lacks)
    }

    /// Returns whether the server reports that another connection has ended.
    async fn reports_ends(&self, client: &Client, name: &str) -> Result<bool, OpenError> {
        let failed = |error: String| OpenError::Server(error);
        let reports = client.subscribe(GONE).await;
        let mut reports = reports.map_err(|error| failed(error.to_string()))?;
        let flushed = client.flush().await;
        flushed.map_err(|error| failed(error.to_string()))?;
        // Whether the account gets such reports shows only by the end of a connection.
        let (events, _) = mpsc::unbounded_channel();
        let other = self.connect(name, 0, events).await?;
        let info = other.server_info();
        let connection = format!("{}/{}", info.server_id, info.client_id);
        drop(other);
        let reported = async {
            while let Some(report) = reports.next().await {
                if disconnected(&report.payload).as_ref() == Some(&connection) {
                    return true;
                }
            }
            false
        };
        Ok(tokio::time::timeout(REPORT, reported)
            .await
            .unwrap_or(false))
    }
}

/// Compares what the user may do with what it is to.
fn permission_lacks(name: &str, info: &Value) -> Vec<String> {
    let mut lacks = Vec::new();
    let [publish, subscribe] = config::permissions(name);
    let given = |what: &str| {
        let given = info.pointer(&format!("/data/permissions/{what}"));
        given.filter(|given| !given.is_null())
    };
    if given("responses").is_some() {
        lacks.push("the user may answer any question: it can speak as another node".into());
    }
    for (kind, expected) in [("publish", publish), ("subscribe", subscribe)] {
        if let Some(denied) = given(&format!("{kind}/deny")) {
            lacks.push(format!("the user is not to {kind} {denied}"));
        }
        let allowed = given(&format!("{kind}/allow"));
        let Some(allowed) = allowed.and_then(Value::as_array) else {
            lacks.push(format!(
                "the user may {kind} everything: nobody vouches for a sender"
            ));
            continue;
        };
        let allowed: BTreeSet<&str> = allowed.iter().filter_map(Value::as_str).collect();
        let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
        for missing in expected.difference(&allowed) {
            lacks.push(format!("the user may not {kind} {missing:?}"));
        }
        for more in allowed.difference(&expected) {
            lacks.push(format!("the user may also {kind} {more:?}"));
        }
    }
    lacks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn info() -> Value {
        let [publish, subscribe] = config::permissions("shop");
        json!({"data": {"permissions": {
            "publish": {"allow": publish},
            "subscribe": {"allow": subscribe},
        }}})
    }

    #[test]
    fn a_user_with_the_permissions_of_the_printed_configuration_lacks_nothing() {
        assert_eq!(permission_lacks("shop", &info()), [""; 0]);
    }

    #[test]
    fn permissions_that_differ_are_named() {
        let change = |path: &str, value: Value| {
            let mut info = info();
            info["data"]["permissions"][path] = value;
            permission_lacks("shop", &info)
        };
        let lacks = change("responses", json!({"max": 1}));
        assert!(lacks[0].contains("speak as another node"), "{lacks:?}");
        let lacks = change("publish", Value::Null);
        assert!(lacks[0].contains("publish everything"), "{lacks:?}");
        let lacks = change("subscribe", json!({"allow": ["gr.to.shop.*", ">"]}));
        let wrong = |what: &str| lacks.iter().any(|lack| lack.contains(what));
        assert!(wrong(r#"also subscribe ">""#), "{lacks:?}");
        assert!(wrong(r#"not subscribe "gr.find.*.*""#), "{lacks:?}");
        let [publish, _] = config::permissions("shop");
        let lacks = change(
            "publish",
            json!({"allow": publish, "deny": ["gr.to.desk.shop"]}),
        );
        assert_eq!(lacks, [r#"the user is not to publish ["gr.to.desk.shop"]"#]);
    }
}
