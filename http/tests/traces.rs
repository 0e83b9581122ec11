//! Traces that go on from process to process, over real sockets, with the feature `tracing`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Once;

use greenroom::trace::{CarriedSpan, Propagation, Tracer, Tracing};
use greenroom::{Address, Context, Reply, Runtime, spawn};
use greenroom_http::{Client, HttpRequest, HttpResponse, Server};
use serde::{Deserialize, Serialize};
use tracing::{Span, info_span};
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan;

/// The trace of a span that has come from elsewhere, kept in the span.
struct Joined(String);

/// Calls `f` with the data of a span.
fn with_registry<R>(span: &Span, f: impl FnOnce(&Registry, &tracing::Id) -> R) -> Option<R> {
    span.with_subscriber(|(id, dispatch)| f(dispatch.downcast_ref::<Registry>().unwrap(), id))
}

/// Returns the context of a span: the trace of the nearest span that has joined one, or one of its own.
fn context(span: &Span) -> Option<String> {
    with_registry(span, |registry, id| {
        let scope: Vec<_> = registry.span(id).unwrap().scope().collect();
        let joined = scope.iter().find_map(|span| {
            let extensions = span.extensions();
            extensions.get::<Joined>().map(|joined| joined.0.clone())
        });
        let root = scope.last().unwrap().id().into_u64();
        let trace = joined.unwrap_or_else(|| format!("{root:032x}"));
        format!("00-{trace}-{:016x}-01", id.into_u64())
    })
}

fn join(span: &Span, context: &str) {
    let trace = context.split('-').nth(1).unwrap().to_owned();
    with_registry(span, |registry, id| {
        let span = registry.span(id).unwrap();
        span.extensions_mut().insert(Joined(trace));
    });
}

fn runtime(tracer: impl Tracer) -> Runtime {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        tracing::subscriber::set_global_default(Registry::default()).unwrap();
    });
    let runtime = Runtime::builder().workers(2).tracer(tracer);
    runtime.driver(greenroom_http::driver()).build().unwrap()
}

fn propagating() -> Runtime {
    runtime(Tracing.propagating(Propagation::parent().remote(context, join)))
}

#[derive(Serialize, Deserialize)]
struct Ask {}

type Question = (Ask, Reply<Option<String>>);

/// Answers with the context of the handler.
async fn answers(mut cx: Context<Question>) {
    while let Some((_, reply)) = cx.recv().await {
        reply.send(CarriedSpan::current_context());
    }
}

/// Answers what an actor elsewhere answers.
async fn asks(mut cx: Context<Question>, far: Address<Question>) {
    while let Some((ask, reply)) = cx.recv().await {
        reply.send(far.ask(|reply| (ask, reply)).await.unwrap());
    }
}

/// Answers with the field of the request.
async fn fields(mut cx: Context<(HttpRequest, Reply<HttpResponse>)>) {
    while let Some((request, reply)) = cx.recv().await {
        let fields = request.headers.get_all("traceparent").iter();
        let fields: Vec<_> = fields.map(|field| field.to_str().unwrap()).collect();
        let body = serde_json::to_string(&fields).unwrap();
        reply.send(HttpResponse::new(200, body).header("content-type", "application/json"));
    }
}

fn serve(runtime: &Runtime, address: Address<Question>) -> Server {
    let server = Server::bind("127.0.0.1:0").on("Ask", &address, |ask, reply| (ask, reply));
    runtime.block_on(async { server.listen().await }).unwrap()
}

/// Asks a server with these fields in the head, and returns the body.
fn get(server: SocketAddr, fields: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    let head = "GET /a/Ask HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    stream
        .write_all(format!("{head}{fields}\r\n").as_bytes())
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn trace_of(body: &str) -> String {
    let context: String = serde_json::from_str(body).unwrap();
    context.split('-').nth(1).unwrap().to_owned()
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn field() -> String {
    format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\n")
}

#[test]
fn a_request_is_handled_in_the_trace_that_it_names() {
    let runtime = propagating();
    let server = serve(&runtime, spawn!(answers(_), on = &runtime).address());
    assert_eq!(trace_of(&get(server.local_addr(), &field())), TRACE);
    runtime.block_on(server.stop());
}

#[test]
fn a_request_without_a_well_formed_trace_is_handled_in_one_of_its_own() {
    let runtime = propagating();
    let server = serve(&runtime, spawn!(answers(_), on = &runtime).address());
    let twice = field().repeat(2);
    let upper = field().to_uppercase();
    for fields in ["", "traceparent: 00-0-0-0\r\n", &twice, &upper] {
        let trace = trace_of(&get(server.local_addr(), fields));
        assert_ne!(trace, TRACE, "{fields:?}");
    }
    runtime.block_on(server.stop());
}

#[test]
fn a_trace_goes_on_from_a_server_through_its_client_to_the_next_server() {
    let (near, far) = (propagating(), propagating());
    let last = serve(&far, spawn!(answers(_), on = &far).address());
    let client = near
        .block_on(async { Client::connect(last.local_addr()).open() })
        .unwrap();
    let first = spawn!(asks(_, client.address("Ask")), on = &near);
    let first = serve(&near, first.address());
    assert_eq!(trace_of(&get(first.local_addr(), &field())), TRACE);
    near.block_on(first.stop());
    far.block_on(last.stop());
}

/// Asks a server that answers with the field of the request, within a span.
fn fields_sent(from: &Runtime) -> Vec<String> {
    let far = propagating();
    let fields = spawn!(fields(_), on = &far);
    let server = Server::bind("127.0.0.1:0").unknown(&fields.address(), |ask, reply| (ask, reply));
    let server = far.block_on(async { server.listen().await }).unwrap();
    let sent = from.block_on(async {
        let client = Client::connect(server.local_addr()).open().unwrap();
        let address: Address<(Ask, Reply<Vec<String>>)> = client.address("Ask");
        let request = address.request(|reply| (Ask {}, reply));
        let request = request.into_future();
        let span = info_span!("asks");
        let mut request = std::pin::pin!(request);
        std::future::poll_fn(|cx| span.in_scope(|| request.as_mut().poll(cx))).await
    });
    far.block_on(server.stop());
    sent.unwrap()
}

#[test]
fn a_client_names_the_span_that_asks_in_one_field() {
    let sent = fields_sent(&propagating());
    assert_eq!(sent.len(), 1);
    assert!(
        sent[0].starts_with("00-") && sent[0].len() == 55,
        "{sent:?}"
    );
}

#[test]
fn without_the_option_a_client_names_no_span_and_a_server_reads_none() {
    assert_eq!(fields_sent(&runtime(Tracing)), [""; 0]);
    let runtime = runtime(Tracing);
    let server = serve(&runtime, spawn!(answers(_), on = &runtime).address());
    assert_eq!(get(server.local_addr(), &field()), "null");
    runtime.block_on(server.stop());
}
