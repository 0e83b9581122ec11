//! The counter of bare async-nats: subjects instead of actors, at the settings of greenroom.

use std::future::Future;
use std::time::Duration;

use async_nats::rustls::crypto::ring;
use async_nats::{Client, ConnectOptions};
use futures::StreamExt;

use crate::client::{Counter, SLOWNESS, at_workers, measure};
use crate::kinds::{tokio_runtime, until_closed};
use crate::nats_server::PASSWORD;
use crate::{Outcome, certificates};

/// The bytes of a number.
const NUMBER: usize = 8;

/// The messages that a subscription keeps: as many as that of greenroom with 64 peers, its default.
const CAPACITY: usize = 81_920;

async fn connect(name: &str, address: &str, is_tls: bool) -> Outcome<Client> {
    let mut options = ConnectOptions::new()
        .name(name)
        .no_echo()
        .ping_interval(Duration::from_secs(1))
        .subscription_capacity(CAPACITY);
    if is_tls {
        // This program has several providers, of which rustls chooses none.
        let _ = ring::default_provider().install_default();
        let [certificate, key] =
            ["pem", "key"].map(|end| certificates::path(&format!("{name}.{end}")));
        options = options
            .require_tls(true)
            .add_root_certificates(certificates::path("authority.pem"))
            .add_client_certificate(certificate, key);
    } else {
        options = options.user_and_password(name.into(), PASSWORD.into());
    }
    Ok(options.connect(address).await?)
}

/// Counts the numbers, and answers requests with the count.
async fn tally(client: Client) -> Outcome<()> {
    let mut messages = client.subscribe("tally").await?;
    // The numbers that have come in their order.
    let mut count: u64 = 0;
    while let Some(message) = messages.next().await {
        match (message.reply, message.payload.len()) {
            (Some(reply), _) => {
                let answer = count.to_le_bytes().to_vec();
                client.publish(reply, answer.into()).await?;
            }
            (None, NUMBER) => count += u64::from(message.payload[..] == count.to_le_bytes()),
            (None, _) => tokio::time::sleep(SLOWNESS).await,
        }
    }
    Ok(())
}

pub fn serve(address: &str, is_tls: bool) -> Outcome<()> {
    let runtime = tokio_runtime()?;
    runtime.block_on(async {
        let client = connect("server", address, is_tls).await?;
        let served = tokio::spawn(tally(client.clone()));
        // The subscription is with the server when it answers a ping.
        client.flush().await?;
        drop(served);
        Outcome::Ok(())
    })?;
    until_closed(address)
}

pub fn client(is_tls: bool, figure: &str, address: &str, size: u64) -> Outcome<()> {
    let runtime = tokio_runtime()?;
    let (figure, address) = (figure.to_owned(), address.to_owned());
    runtime.block_on(at_workers::<Client, _>(async move {
        let client = connect("client", &address, is_tls).await?;
        measure(client, &figure, size).await
    }))
}

impl Counter for Client {
    async fn add(&self, number: u64) -> Outcome<()> {
        let number = number.to_le_bytes().to_vec();
        Ok(self.publish("tally", number.into()).await?)
    }

    async fn load(&self, bytes: Vec<u8>) -> Outcome<()> {
        Ok(self.publish("tally", bytes.into()).await?)
    }

    async fn count(&self) -> Outcome<u64> {
        let answer = self.request("tally", "".into()).await?;
        Ok(u64::from_le_bytes(answer.payload[..].try_into()?))
    }

    async fn lost(&self) {
        // Nothing waits for the end of another client.
        std::future::pending().await
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }
}
