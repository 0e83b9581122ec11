//! One request through three actors on two nodes, as one tree of OpenTelemetry.
//!
//! A web server asks the actor `front`. That asks `stock` on another node, over the network, and `stock`
//! asks `prices` beside it. greenroom knows nothing of OpenTelemetry: the function [`tracer`] has all that
//! both have to do with each other.
//!
//! It prints:
//!
//! ```text
//! GET Order
//!   front Order
//!     stock/1
//!       stock Stock
//!         prices Price
//! ```

mod tree;

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use greenroom::trace::{Propagation, Tracer, Tracing};
use greenroom::{Address, Context, Reply, Runtime, spawn};
use greenroom_cluster::{Node, Remote, RemoteAddress};
use greenroom_http::Server;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use serde::{Deserialize, Serialize};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

/// The name of the field in which W3C has the context of a span.
const FIELD: &str = "traceparent";

/// Returns a tracer whose spans go on from process to process.
fn tracer() -> impl Tracer {
    let context = |span: &Span| {
        let mut fields = HashMap::new();
        TraceContextPropagator::new().inject_context(&span.context(), &mut fields);
        fields.remove(FIELD)
    };
    let join = |span: &Span, context: &str| {
        let fields = HashMap::from([(FIELD.to_owned(), context.to_owned())]);
        // It fails only without a layer of OpenTelemetry.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&fields));
    };
    Tracing.propagating(Propagation::parent().remote(context, join))
}

/// How many pieces of an article there are, and what each costs.
type Offer = (u32, u32);

#[derive(Deserialize)]
struct Item {
    item: String,
}

struct Order(Item, Reply<Offer>);

/// Asks the actor on the other node.
async fn front(mut cx: Context<Order>, stock: RemoteAddress<Stock>) {
    while let Some(Order(Item { item }, reply)) = cx.recv().await {
        if let Ok(offer) = stock.ask(|reply| Stock { item, reply }).await {
            reply.send(offer);
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Stock {
    item: String,
    #[serde(with = "greenroom_cluster::reply")]
    reply: Reply<Offer>,
}

impl Remote for Stock {
    const KIND: &'static str = "stock/1";
}

/// Knows how many pieces there are, and asks what they cost.
async fn stock(mut cx: Context<Stock>, prices: Address<Price>) {
    while let Some(Stock { item, reply }) = cx.recv().await {
        if let Ok(price) = prices.ask(|reply| Price { item, reply }).await {
            reply.send((7, price));
        }
    }
}

struct Price {
    item: String,
    reply: Reply<u32>,
}

async fn prices(mut cx: Context<Price>) {
    while let Some(Price { item, reply }) = cx.recv().await {
        reply.send(item.len() as u32);
    }
}

fn get(server: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(server)?;
    let request = "GET /Order?item=tea HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// Serves one request, by two nodes. Returns the response.
fn serve() -> Result<String, Box<dyn Error>> {
    let shop = Runtime::builder().tracer(tracer()).build()?;
    let desk = Runtime::builder().tracer(tracer());
    let desk = desk.driver(greenroom_http::driver()).build()?;

    // On one machine:
    let prices = spawn!(prices(_), on = &shop);
    let stock = spawn!(stock(_, prices.address()), on = &shop);
    let node = Node::builder("shop").listen_address("127.0.0.1:0").traces();
    let node = shop.block_on(node.open())?;
    let _published = node.publish("stock", &stock)?;

    // On another one:
    let response = desk.block_on(async {
        let own = Node::builder("desk")
            .seeds(node.listen_addresses())
            .traces();
        let own = own.open().await?;
        let front = spawn!(front(_, own.lookup("stock").await?));
        let server = Server::bind("127.0.0.1:0").on("Order", &front.address(), Order);
        let server = server.listen().await?;
        let address = server.local_addr();
        let response = greenroom::unblock(move || get(address)).await?;
        server.stop().await;
        own.close().await;
        Ok::<String, Box<dyn Error>>(response)
    });
    shop.block_on(node.close());
    response
}

/// Serves a request, and returns the tree of its spans.
fn traced() -> Result<String, Box<dyn Error>> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder();
    let provider = provider.with_simple_exporter(exporter.clone()).build();
    // Without the turns of actors, which have the level `DEBUG`.
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("otel"));
    let subscriber = tracing_subscriber::registry()
        .with(LevelFilter::INFO)
        .with(layer);
    tracing::subscriber::set_global_default(subscriber)?;
    let response = serve()?;
    if !response.ends_with("[7,3]") {
        return Err(format!("another answer: {response}").into());
    }
    provider.force_flush()?;
    Ok(tree::of_trace("GET Order", exporter.get_finished_spans()?))
}

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", traced()?);
    Ok(())
}

#[test]
fn a_request_through_three_actors_on_two_nodes_is_one_tree() {
    let expected = [
        "GET Order",
        "  front Order",
        "    stock/1",
        "      stock Stock",
        "        prices Price",
    ];
    let tree = traced().unwrap();
    assert_eq!(tree.lines().collect::<Vec<_>>(), expected);
}
