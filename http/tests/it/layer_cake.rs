//! Clients and servers on layer_cake, byte by byte, and the program itself.
//!
//! `GREENROOM_LAYER_CAKE` names a Python that has the package `seven-layer-cake`. Without it, the other
//! side is played.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use greenroom::{Address, AskError, Context, Refusal, RefusalKind, Reply, Runtime, spawn};
use greenroom_http::{Answers, Client, Server, ServerBuilder};
use serde::{Deserialize, Serialize};

use crate::support::{self, Served, Xy, patient, served};

/// A message with a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Count {
    #[serde(default)]
    words: BTreeMap<String, i64>,
}

type Table = Vec<Vec<f64>>;

enum Cake {
    Xy(Xy, Reply<Table>),
    Count(Count, Reply<BTreeMap<String, i64>>),
}

/// Answers as the server of the document does, and refuses large tables.
async fn cake(mut cx: Context<Cake>) {
    while let Some(message) = cx.recv().await {
        match message {
            Cake::Xy(Xy { x, .. }, reply) if x > 100 => {
                reply.refuse(Refusal::of(RefusalKind::Overloaded, format!("{x} columns")));
            }
            Cake::Xy(Xy { x, y }, reply) => reply.send(vec![vec![0.5; x as usize]; y as usize]),
            Cake::Count(Count { words }, reply) => {
                let doubled = words.into_iter().map(|(word, count)| (word, 2 * count));
                reply.send(doubled.collect());
            }
        }
    }
}

fn registered(builder: ServerBuilder, address: &Address<Cake>) -> ServerBuilder {
    let builder = builder.on("Xy", address, Cake::Xy);
    builder.on("Count", address, Cake::Count).layer_cake()
}

/// What a client on layer_cake sends.
fn posted(name: &str, json: &str) -> String {
    let length = json.len();
    format!(
        "POST /{name} HTTP/1.1\r\nUser-Agent: layer-cake\r\nContent-Length: {length}\r\n\
         Content-Type: application/json\r\n\r\n{json}"
    )
}

fn kinds() -> Served {
    served(|builder, _| builder.layer_cake())
}

/// Sends bytes, and reads to the end of the answer's body.
fn answer(served: &Served, bytes: &str) -> String {
    let mut client = served.client();
    client.send(bytes);
    let mut all = Vec::new();
    let mut byte = [0];
    while client.read(&mut byte).unwrap() == 1 {
        all.push(byte[0]);
        let text = String::from_utf8_lossy(&all);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        // Other servers do not capitalize it.
        let length = head.split_once("Content-Length: ");
        let length = length.or_else(|| head.split_once("content-length: "));
        let (_, length) = length.unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        if body.len() == length {
            break;
        }
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn a_client_on_layer_cake_is_answered_as_it_reads() {
    let served = kinds();
    let text = answer(&served, &posted("Xy", r#"{"value":{"x":2,"y":2}}"#));
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(
        text.contains("\r\nContent-Type: application/json\r\n"),
        "{text}"
    );
    // Exactly as its client looks it up.
    assert!(text.contains("\r\nContent-Length: "), "{text}");
    let table = r#"{"value":["vector<vector<float8>>",[[0.5,0.5],[0.5,0.5]],[]]}"#;
    assert!(text.ends_with(&format!("\r\n\r\n{table}")), "{text}");
    let text = answer(
        &served,
        &posted("Kinds", r#"{"value":{"map":[["a",1],["b",2]]}}"#),
    );
    assert!(text.contains(r#""map":[["a",1],["b",2]]"#), "{text}");
    let text = answer(&served, &posted("Act", r#"{"value":{"how":"busy"}}"#));
    // Its client reads phrases of 16 bytes at most.
    assert!(text.starts_with("HTTP/1.1 503 Server Error\r\n"), "{text}");
    let fault = r#"{"value":["layer_cake.point_runtime.Busy",{"condition":"busy","explanation":"come again","error_code":null,"exit_status":null},[]]}"#;
    assert!(text.ends_with(fault), "{text}");
    let text = answer(&served, &posted("Xy", r#"{"value":{"z":1}}"#));
    let said = "cannot recover request \"/Xy\" (unknown key \"z\" in \"Xy\" body)";
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
    assert!(text.ends_with(&format!("\r\n\r\n{said}")), "{text}");
}

#[test]
fn a_host_is_missing_only_where_layer_cake_is_served() {
    let bytes = posted("Xy", "{}");
    assert!(answer(&kinds(), &bytes).starts_with("HTTP/1.1 200 "));
    let plain = support::plain();
    assert!(answer(&plain, &bytes).starts_with("HTTP/1.1 400 "));
    let enveloped = served(|builder, _| builder.answers(Answers::Envelope));
    assert!(answer(&enveloped, &bytes).starts_with("HTTP/1.1 400 "));
}

#[test]
fn the_first_error_of_the_order_is_the_one_that_is_told() {
    let served = support::plain();
    for (query, why) in [
        ("x=a&z=1&flag", "no conversion for \"x\""),
        ("z=1&x=a&flag", "unknown key \"z\""),
        ("flag&z=1&x=a", "unexpected field \"flag\""),
        ("x=1&flag&z=1", "unexpected field \"flag\""),
        ("x=1&z=%4", "incomplete escape"),
    ] {
        let response = served.get(&format!("/Xy?{query}"));
        let body = response.body.replace('\\', "");
        assert!(
            response.status == 400 && body.contains(why),
            "{query}: {body}"
        );
    }
}

/// A server that answers the next requests with these bodies. Returns its address, and what it gets.
fn plays(bodies: &'static [&'static str]) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let plays = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut requests = Vec::new();
        for body in bodies {
            let mut request = Vec::new();
            let mut byte = [0];
            while !is_whole(&request) {
                assert_eq!(stream.read(&mut byte).unwrap(), 1, "{request:?}");
                request.push(byte[0]);
            }
            requests.push(String::from_utf8(request).unwrap());
            let length = body.len();
            let is_fault = body.contains("point_runtime");
            let status = if is_fault {
                "500 Server Error"
            } else {
                "200 OK"
            };
            let head = format!("HTTP/1.1 {status}\r\nServer: Layer-Cake-API-server/1.0");
            let fields = format!("Content-Length: {length}\r\nContent-Type: application/json");
            write!(stream, "{head}\r\n{fields}\r\n\r\n{body}").unwrap();
        }
        requests
    });
    (address, plays)
}

/// Returns whether a request is here with its body. Names of fields count as they are.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let (_, length) = head
        .split_once("Content-Length: ")
        .expect("a title-cased length");
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    body.len() == length
}

#[test]
fn a_client_for_layer_cake_sends_what_its_server_reads() {
    let (address, plays) = plays(&[
        r#"{"value":["map<unicode,integer8>",[["a",2]],[]]}"#,
        r#"{"value":["layer_cake.point_runtime.Overloaded",{"condition":"2 columns","explanation":null,"error_code":null,"exit_status":null},[]]}"#,
    ]);
    let words = BTreeMap::from([("a".to_owned(), 1)]);
    greenroom::run(async {
        let client = Client::connect(address).layer_cake().path("/cake/");
        // The server takes one. The answer may come to its asker before its connection is free again.
        let client = client.connections(1).open().unwrap();
        let count = client.address::<Count, BTreeMap<String, i64>>("Xy_z");
        let asked = count.ask(|reply| (Count { words }, reply)).await;
        assert_eq!(asked, Ok(BTreeMap::from([("a".to_owned(), 2)])));
        let table = client.address::<Xy, Table>("api/Xy");
        let asked = table.ask(|reply| (Xy { x: 2, y: 2 }, reply)).await;
        let Err(AskError::Refused(refusal)) = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(refusal.kind(), RefusalKind::Overloaded);
    });
    let requests = plays.join().unwrap();
    assert!(
        requests[0].starts_with("POST /cake/Xy_z HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(
        requests[0].contains("\r\nContent-Type: application/json\r\n"),
        "{requests:?}"
    );
    assert!(
        requests[0].ends_with(r#"{"value":{"words":[["a",1]]}}"#),
        "{requests:?}"
    );
    assert!(
        requests[1].starts_with("POST /cake/api/Xy HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(
        requests[1].ends_with(r#"{"value":{"x":2,"y":2}}"#),
        "{requests:?}"
    );
}

/// A program on layer_cake, which ends with this value.
struct Program(Child);

impl Program {
    fn start(python: &str, script: &str, arguments: &[String]) -> Program {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layer_cake");
        let mut command = Command::new(python);
        command
            .arg("-B")
            .arg(script)
            .args(arguments)
            .current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Program(command.spawn().unwrap())
    }

    fn lines(&mut self) -> impl Iterator<Item = String> {
        let out = BufReader::new(self.0.stdout.take().unwrap());
        out.lines().map(Result::unwrap)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a port that was free just now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn python() -> Option<String> {
    let python = std::env::var("GREENROOM_LAYER_CAKE").ok();
    if python.is_none() {
        eprintln!("SKIPPED layer_cake: GREENROOM_LAYER_CAKE is not set");
    }
    python
}

#[test]
fn the_client_of_layer_cake_asks_actors_here() {
    let Some(python) = python() else { return };
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let actor = spawn!(cake(_), on = &runtime);
    let builder = registered(
        Server::bind("127.0.0.1:0").limits(patient()),
        &actor.address(),
    );
    let server = runtime.block_on(builder.listen()).unwrap();
    let port = format!("--port={}", server.local_addr().port());
    let mut client = Program::start(&python, "cake_client.py", &[port]);
    let answers: Vec<String> = client.lines().collect();
    let expected = [
        "[[0.5, 0.5], [0.5, 0.5]]",
        "{'a': 2, 'b': 4}",
        "Overloaded overloaded 200 columns",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn a_client_here_asks_all_variants_of_the_server_of_layer_cake() {
    let Some(python) = python() else { return };
    for variant in ["one", "each", "worker", "spool"] {
        let port = free_port();
        let arguments = [format!("--variant={variant}"), format!("--port={port}")];
        let mut server = Program::start(&python, "cake_server.py", &arguments);
        assert_eq!(
            server.lines().next().as_deref(),
            Some("listens"),
            "{variant}"
        );
        greenroom::run(async {
            let client = Client::connect(format!("127.0.0.1:{port}")).layer_cake();
            let client = client.open().unwrap();
            let table = client.address::<Xy, Table>("Xy");
            for x in 1..=20 {
                let asked = table.ask(|reply| (Xy { x, y: 2 }, reply)).await;
                assert_eq!(asked, Ok(vec![vec![0.5; x as usize]; 2]), "{variant}");
            }
            let words = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
            let count = client.address::<Count, BTreeMap<String, i64>>("Count");
            let doubled = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 4)]);
            let asked = count.ask(|reply| (Count { words }, reply)).await;
            assert_eq!(asked, Ok(doubled), "{variant}");
            let asked = table.ask(|reply| (Xy { x: 200, y: 2 }, reply)).await;
            let Err(AskError::Refused(refusal)) = asked else {
                panic!("{variant}: {asked:?}");
            };
            assert_eq!(refusal.kind(), RefusalKind::Overloaded);
            assert!(refusal.to_string().contains("200 columns"), "{refusal}");
        });
    }
}
