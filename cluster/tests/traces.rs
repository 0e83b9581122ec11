//! Traces that go on from node to node, with the feature `tracing`.

use std::sync::Once;
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::time::sleep;
use greenroom::trace::{CarriedSpan, Propagation, Tracing};
use greenroom::{Builder, Context, Reply, Runtime, spawn};
use greenroom_cluster::{Node, NodeBuilder, Remote, RemoteAddress, SimNet};
use serde::{Deserialize, Serialize};
use tracing::{Span, info_span};
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan;

/// Longer than a machine stops.
const LONG: Duration = Duration::from_secs(60);

/// The trace of a span that has come from elsewhere, kept in the span.
struct Joined(String);

fn with_registry<R>(span: &Span, f: impl FnOnce(&Registry, &tracing::Id) -> R) -> Option<R> {
    span.with_subscriber(|(id, dispatch)| f(dispatch.downcast_ref::<Registry>().unwrap(), id))
}

/// Returns the trace of the nearest span that has joined one, or the name of the root.
fn context(span: &Span) -> Option<String> {
    with_registry(span, |registry, id| {
        let scope: Vec<_> = registry.span(id).unwrap().scope().collect();
        let joined = scope.iter().find_map(|span| {
            let extensions = span.extensions();
            extensions.get::<Joined>().map(|joined| joined.0.clone())
        });
        joined.unwrap_or_else(|| scope.last().unwrap().name().to_owned())
    })
}

fn join(span: &Span, context: &str) {
    with_registry(span, |registry, id| {
        let span = registry.span(id).unwrap();
        span.extensions_mut().insert(Joined(context.to_owned()));
    });
}

fn builder() -> Builder {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        tracing::subscriber::set_global_default(Registry::default()).unwrap();
    });
    let tracer = Tracing.propagating(Propagation::parent().remote(context, join));
    Runtime::builder().tracer(tracer)
}

#[derive(Serialize, Deserialize)]
enum Probe {
    Trace(#[serde(with = "greenroom_cluster::reply")] Reply<Option<String>>),
}

impl Remote for Probe {
    const KIND: &'static str = "probe/1";
}

/// Answers with the trace of the handler.
async fn probe(mut cx: Context<Probe>) {
    while let Some(Probe::Trace(reply)) = cx.recv().await {
        reply.send(CarriedSpan::current_context());
    }
}

/// Polls a future within a span of this name.
async fn within<F: Future>(name: &'static str, future: F) -> F::Output {
    let span = match name {
        "first" => info_span!("first"),
        _ => info_span!("second"),
    };
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| span.in_scope(|| future.as_mut().poll(cx))).await
}

/// Opens two nodes on two runtimes, the second one with a probe. Calls `f` with an address of that.
fn with_nodes((here, there): (bool, bool), f: impl AsyncFnOnce(RemoteAddress<Probe>)) {
    let [near, far] = [(); 2].map(|()| builder().workers(2).build().unwrap());
    let option = |node: NodeBuilder, is_on: bool| if is_on { node.traces() } else { node };
    let probe = spawn!(probe(_), on = &far, name = "probe");
    let (node, published) = far.block_on(async {
        let node = Node::builder("far").listen_address("127.0.0.1:0");
        let node = option(node, there).open().await.unwrap();
        let published = node.publish("probe", &probe).unwrap();
        (node, published)
    });
    near.block_on(async {
        let desk = Node::builder("near").seeds(node.listen_addresses());
        let desk = option(desk, here).open().await.unwrap();
        f(desk.lookup::<Probe>("probe").timeout(LONG).await.unwrap()).await;
        desk.close().await;
    });
    drop(published);
    far.block_on(node.close());
}

#[test]
fn a_message_to_another_node_is_handled_in_the_trace_of_its_sender() {
    with_nodes((true, true), async |far| {
        for name in ["first", "second"] {
            let trace = within(name, far.ask(Probe::Trace).into_future()).await;
            assert_eq!(trace.unwrap().as_deref(), Some(name));
        }
    });
}

/// Keeps the first message until the others wait, and then handles all.
async fn slow(mut cx: Context<Probe>) {
    sleep(Duration::from_secs(60)).await;
    while let Some(Probe::Trace(reply)) = cx.recv().await {
        reply.send(CarriedSpan::current_context());
    }
}

#[test]
fn a_message_that_waits_for_room_keeps_its_trace() {
    // Its time is virtual, so all messages have come when the actor begins.
    let runtime = builder().policy(Simulated::new(1)).build().unwrap();
    runtime.block_on(async {
        let net = SimNet::new();
        let node = Node::builder("far")
            .net(&net)
            .traces()
            .open()
            .await
            .unwrap();
        let slow = spawn!(slow(_), name = "slow", capacity = 1);
        let _published = node.publish("probe", &slow).unwrap();
        let desk = Node::builder("near")
            .net(&net)
            .traces()
            .open()
            .await
            .unwrap();
        let far = desk.lookup::<Probe>("probe").timeout(LONG).await.unwrap();
        let names = ["first", "second", "first"];
        let asks = names.map(|name| within(name, far.ask(Probe::Trace).into_future()));
        let traces = futures::future::join_all(asks).await;
        let traces: Vec<_> = traces
            .into_iter()
            .map(|trace| trace.unwrap().unwrap())
            .collect();
        assert_eq!(traces, names);
    });
}

#[test]
fn nodes_without_the_option_understand_those_with_it_and_have_no_traces() {
    for options in [(true, false), (false, true), (false, false)] {
        with_nodes(options, async |far| {
            let trace = within("first", far.ask(Probe::Trace).into_future()).await;
            // Its handler is the root of a trace.
            assert_eq!(trace.unwrap().as_deref(), Some("handle"), "{options:?}");
        });
    }
}
