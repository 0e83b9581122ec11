//! The page of the console: its lines, who may look, and what is never sent.

mod schema;

use std::collections::BTreeMap;

use greenroom::market::{Job, Market};
use greenroom::registry::{Group, Keyed, Name};
use greenroom::spool::Spool;
use greenroom::supervise::{Restarts, Supervisor};
use greenroom::trace::{Level, Lines};
use greenroom::{Builder, Context, Handle, Reply, Runtime, actor};
use greenroom_http::{Mount, Section, ServerBuilder, console, metrics};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::streams::chunk;
use crate::support::{Client, Response, Served, number, served, served_at, until};

const PAGE: &str = "/console/v1";

fn often() -> Mount {
    console().refresh(Duration::from_millis(10))
}

fn with(
    page: Mount,
) -> impl FnOnce(ServerBuilder, &Handle<crate::support::Message, ()>) -> ServerBuilder {
    |builder, _| builder.mount(page).mount(metrics())
}

/// A viewer of the console, which checks each line.
struct Viewer {
    client: Client,
    lines: Vec<Value>,
    /// What has come of the next line.
    text: String,
    seq: u64,
}

impl Viewer {
    fn new(served: &Served) -> Self {
        let mut client = served.client();
        let head = client.get(PAGE);
        assert_eq!(head.status, 200, "{}", head.body);
        assert_eq!(head.header("content-type"), Some("application/x-ndjson"));
        Viewer {
            client,
            lines: Vec::new(),
            text: String::new(),
            seq: 0,
        }
    }

    /// Returns the next line, or nothing at the end.
    fn line(&mut self) -> Option<Value> {
        while self.lines.is_empty() {
            let more = chunk(&mut self.client);
            if more.is_empty() {
                assert_eq!(self.text, "", "the last line has an end");
                return None;
            }
            assert!(!more.contains('\u{1b}'));
            self.text += &more;
            let end = self.text.rfind('\n').map_or(0, |end| end + 1);
            let rest = self.text.split_off(end);
            let lines = std::mem::replace(&mut self.text, rest);
            let lines = lines.lines().map(|it| serde_json::from_str(it).unwrap());
            self.lines.extend(lines);
        }
        let line = self.lines.remove(0);
        schema::check(&line).unwrap();
        if let Some(seq) = line["seq"].as_u64() {
            assert_eq!(seq, self.seq + 1, "there is no gap");
            self.seq = seq;
        }
        Some(line)
    }

    /// Waits for an event that is meant.
    fn event(&mut self, event: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.line().unwrap();
            if line["event"] == event && is_meant(&line) {
                return line;
            }
        }
    }
}

fn sink(runtime: &Runtime, name: &str) -> Handle<String, ()> {
    let sink = |mut cx: Context<String>| async move { while cx.recv().await.is_some() {} };
    actor(sink).name(name).on(runtime).spawn()
}

#[test]
fn everything_comes_first_and_then_what_changes() {
    let served = served(with(often()));
    let cart = sink(&served.runtime, "cart");
    let mut viewer = Viewer::new(&served);
    let first = viewer.line().unwrap();
    assert_eq!(
        (&first["protocol"], &first["pid"]),
        (&json!(1), &json!(std::process::id()))
    );
    let features = first["features"].as_array().unwrap();
    assert!(features.contains(&json!("counting")) && features.contains(&json!("sampled")));
    assert!(!features.contains(&json!("observer")));
    assert_eq!(viewer.line().unwrap(), json!({"seq": 1, "event": "reset"}));
    let mut actors = BTreeMap::new();
    let runtime = loop {
        let line = viewer.line().unwrap();
        match line["event"].as_str().unwrap() {
            "actor" => actors.insert(line["id"].as_u64().unwrap(), line),
            _ => break line,
        };
    };
    let seen = &actors[&cart.id()];
    assert_eq!(
        (&seen["name"], &seen["messages"]),
        (&json!("cart"), &json!(0))
    );
    assert_eq!(seen["handle"], json!(true));
    assert_eq!(runtime["event"], "runtime");
    assert_eq!(runtime["workers"].as_array().unwrap().len(), 2);
    assert_eq!(runtime["actors"], json!(actors.len()));
    assert_eq!(viewer.line().unwrap()["event"], "tick");
    for _ in 0..3 {
        cart.tell("a secret".to_owned()).unwrap();
    }
    let is_cart = |line: &Value| line["id"] == json!(cart.id());
    let is_idle = |line: &Value| line["messages"] == 3 && line["state"] == "waiting";
    let seen = viewer.event("actor", |line| is_cart(line) && is_idle(line));
    assert_eq!(seen["waits"], json!([{"for": "message"}]));
    assert_eq!(seen["mailbox"], json!(0));
    assert!(viewer.event("runtime", |_| true)["messages"].as_u64() >= Some(3));
    cart.kill();
    viewer.event("ended", is_cart);
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let served = served(with(often()));
    let idle = sink(&served.runtime, "idle");
    let mut viewer = Viewer::new(&served);
    let is_idle = |line: &Value| line["id"] == json!(idle.id());
    // It may be seen once more, in the first turn.
    viewer.event("actor", |line| is_idle(line) && line["state"] == "waiting");
    for _ in 0..5 {
        while let Some(line) = viewer.line().filter(|line| line["event"] != "tick") {
            assert!(!is_idle(&line) && line["event"] != "reset", "{line}");
        }
    }
}

#[test]
fn contents_of_messages_and_control_characters_are_never_sent() {
    let served = served(with(often()));
    let full = actor(|cx: Context<String>| async move {
        std::future::pending::<()>().await;
        drop(cx);
    });
    let full = full.name("full\u{1b}[2J\n").on(&served.runtime).spawn();
    full.tell("a secret".to_owned()).unwrap();
    let mut viewer = Viewer::new(&served);
    let line = viewer.event("actor", |line| {
        line["id"] == json!(full.id()) && line["mailbox"] == 1
    });
    assert_eq!(line["name"], "full\u{1b}[2J\n");
    assert!(!line.to_string().contains("secret"));
}

#[test]
fn an_actor_is_sent_with_its_parent_its_place_its_state_and_its_last_fault() {
    let lines = Lines::to(std::io::sink(), Level::Debug);
    let runtime = Runtime::builder().workers(2).tracer(lines);
    let served = served_at("127.0.0.1:0", runtime, |builder, _| builder.mount(often()));
    let runtime = &served.runtime;
    let nail = runtime.spawn_pinned("nail").unwrap();
    // Restarted at each message, with a state.
    let shaky = |mut cx: Context<&'static str>| async move {
        cx.trace_state("READY");
        if let Some(text) = cx.recv().await {
            panic!("{text}");
        }
    };
    let restarts = Restarts::on_fault();
    let shaky = actor(shaky).capacity(9).restart(restarts).on(&nail).spawn();
    let (_tree, child) = runtime.block_on(async {
        let tree = Supervisor::builder().name("tree").spawn().unwrap();
        let child = |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} };
        let child = tree.start(actor(child)).unwrap();
        (tree, child)
    });
    let mut viewer = Viewer::new(&served);
    let is = |line: &Value, id: u64| line["id"] == json!(id);
    let first = viewer.event("actor", |line| is(line, shaky.id()));
    assert_eq!(
        (&first["capacity"], &first["thread"], first.get("fault")),
        (&json!(9), &json!("nail"), None)
    );
    let mut again = Viewer::new(&served);
    let tree = again.event("actor", |line| line["name"] == "tree");
    let mut again = Viewer::new(&served);
    let child = again.event("actor", |line| is(line, child.id()));
    assert_eq!(
        (&child["parent"], child.get("capacity")),
        (&tree["id"], None)
    );
    shaky.tell("a bomb").unwrap();
    let is_ready = |line: &Value| line["machine"] == "READY" && line["restarts"] == 1;
    let after = |line: &Value| is(line, shaky.id()) && is_ready(line);
    let after = viewer.event("actor", after);
    assert_eq!(after["fault"], "a bomb");
}

#[test]
fn an_actor_is_sent_again_when_its_names_change() {
    let served = served(with(often()));
    let cart = sink(&served.runtime, "cart");
    let mut viewer = Viewer::new(&served);
    let is_cart = |line: &Value| line["id"] == json!(cart.id());
    let first = viewer.event("actor", is_cart);
    let keys = ["names", "groups", "key"];
    assert_eq!(keys.map(|key| first.get(key)), [None; 3]);
    let name = Name::<String>::new("checkout\u{1b}").on(&served.runtime);
    let group = Group::<String>::new("carts").on(&served.runtime);
    name.register(&cart).unwrap();
    group.join(&cart).unwrap();
    let named = viewer.event("actor", |line| {
        is_cart(line) && line.get("groups").is_some()
    });
    assert_eq!(named["names"], json!(["checkout\u{1b}"]));
    assert_eq!(named["groups"], json!(["carts"]));
    name.unregister();
    let without = |line: &Value| is_cart(line) && line.get("names").is_none();
    assert_eq!(viewer.event("actor", without)["groups"], json!(["carts"]));
}

#[test]
fn texts_of_a_program_are_sent_up_to_a_length() {
    let served = served(with(often()));
    let long = "é".repeat(1000);
    let cart = sink(&served.runtime, &long);
    let sink = |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} };
    let set = Keyed::builder(move |_| actor(sink)).on(&served.runtime);
    let set = set.label(|key: &String| key.clone()).build().unwrap();
    let keyed = served.runtime.block_on(set.get_or_spawn(&long)).unwrap();
    for number in 0..100 {
        let name = Name::owned(format!("{number:03}{long}"));
        name.on(&served.runtime).register(&cart).unwrap();
    }
    let mut viewer = Viewer::new(&served);
    let sent = "é".repeat(200);
    let mut all: BTreeMap<u64, Value> = BTreeMap::new();
    while let Some(line) = viewer.line().filter(|line| line["event"] != "tick") {
        all.insert(line["id"].as_u64().unwrap_or(0), line);
    }
    let (cart, keyed) = (&all[&cart.id()], &all[&keyed.id()]);
    assert_eq!((&cart["name"], &keyed["key"]), (&json!(sent), &json!(sent)));
    let names = cart["names"].as_array().unwrap();
    assert_eq!(names.len(), 16);
    assert_eq!(names[0].as_str().unwrap().chars().count(), 200);
}

#[test]
fn a_fault_is_logged_once_and_also_to_those_who_come_later() {
    let served = served(with(often()));
    let bomb = |mut cx: Context<()>| async move {
        if cx.recv().await.is_some() {
            panic!("a bomb");
        }
    };
    let mut viewer = Viewer::new(&served);
    let mut texts = Vec::new();
    for restarts in [Restarts::on_fault(), Restarts::when(|_| false)] {
        let goes_on = texts.is_empty();
        let began = SystemTime::now();
        let bomb = actor(bomb).restart(restarts).on(&served.runtime).spawn();
        bomb.tell(()).unwrap();
        let log = viewer.event("log", |_| true);
        assert_eq!(log["actor"], json!(bomb.id()));
        assert_eq!(log["level"], if goes_on { "warning" } else { "error" });
        let at = UNIX_EPOCH + Duration::from_millis(log["at_ms"].as_u64().unwrap());
        // Clocks differ by a little.
        assert!(at + Duration::from_secs(1) > began && at <= SystemTime::now());
        let text = log["text"].as_str().unwrap();
        assert!(text.contains("panicked: a bomb"), "{text}");
        texts.push(text.to_owned());
    }
    let mut later = Viewer::new(&served);
    let all = [(); 2].map(|()| later.event("log", |_| true)["text"].clone());
    assert_eq!(json!(texts), json!(all));
    for viewer in [&mut viewer, &mut later] {
        for _ in 0..3 {
            while let Some(line) = viewer.line().filter(|line| line["event"] != "tick") {
                assert_ne!(line["event"], "log", "{line}");
            }
        }
    }
}

#[test]
fn a_worker_that_is_held_is_sent_with_the_actor_that_holds_it() {
    let runtime = Runtime::builder()
        .workers(2)
        .long_turns(Duration::from_secs(3600));
    let served = served_at("127.0.0.1:0", runtime, |builder, _| builder.mount(often()));
    let (begins, begun) = std::sync::mpsc::channel();
    let (opens, gate) = std::sync::mpsc::channel::<()>();
    let holder = |_cx: Context<()>| async move {
        begins.send(()).unwrap();
        let _ = gate.recv();
    };
    let holder = actor(holder).on(&served.runtime).spawn();
    begun.recv().unwrap();
    let mut viewer = Viewer::new(&served);
    let line = viewer.event("actor", |line| line["id"] == json!(holder.id()));
    assert!(line["thread"].as_str().is_some(), "{line}");
    let held = |line: &Value| {
        let mut workers = line["workers"].as_array().unwrap().iter();
        workers.any(|worker| worker["runs"]["id"] == json!(holder.id()))
    };
    viewer.event("runtime", held);
    drop(opens);
    viewer.event("runtime", |line| !held(line));
}

#[test]
fn sections_and_services_are_part_of_each_refresh() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (spool, market, set) = runtime.block_on(async {
        let worker = |mut cx: Context<(u32, Reply<u32>)>| async move {
            while let Some((number, reply)) = cx.recv().await {
                reply.send(number);
            }
        };
        let spool = Spool::builder(move |_| actor(worker).spawn()).workers(3);
        let spool = spool.spawn().unwrap();
        assert_eq!(spool.ask(7).await, Ok(7));
        let market = Market::<()>::builder().build().unwrap();
        let job = market.offer(Job::new(|| 7)).await.unwrap();
        assert_eq!(job.await.unwrap(), 7);
        market.drain().await;
        let sink = |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} };
        let set = Keyed::builder(move |_: u32| actor(sink)).build().unwrap();
        set.tell(&1, ()).unwrap();
        set.tell(&2, ()).unwrap();
        (spool, market, set)
    });
    let page = often().service("tables", &spool);
    let page = page.service("carts", &set).service("prints", &market);
    let page = page.section("nodes", || Section::new(["never"]));
    let page = page.section("broken", || panic!("a secret"));
    let page = page.section("nodes", || {
        let shop = ["shop".into(), 2.into(), 0.5.into(), f64::NAN.into()];
        Section::new(["node", "links", "load", "odd"]).row(shop)
    });
    let served = served(with(page));
    let mut viewer = Viewer::new(&served);
    for _ in 0..2 {
        let spools = viewer.event("section", |_| true);
        assert_eq!(spools["name"], "spools");
        assert_eq!(spools["rows"][0][0], "tables");
        assert_eq!(spools["rows"][0][5], 1, "{spools}");
        let markets = viewer.line().unwrap();
        assert_eq!(markets["name"], "markets");
        let columns = markets["columns"].as_array().unwrap();
        let finished = columns.iter().position(|name| name == "finished").unwrap();
        assert_eq!(markets["rows"][0][0], "prints (stopped)");
        assert_eq!(markets["rows"][0][finished], 1, "{markets}");
        let sets = viewer.line().unwrap();
        assert_eq!(sets["name"], "keyed actors");
        assert_eq!(sets["rows"], json!([["carts", 2]]));
        let nodes = viewer.line().unwrap();
        assert_eq!(nodes["name"], "nodes");
        assert_eq!(nodes["rows"], json!([["shop", 2, 0.5, "NaN"]]));
        assert_eq!(viewer.line().unwrap()["event"], "tick");
    }
}

#[test]
fn at_most_four_viewers_look() {
    let served = served(with(often()));
    let mut viewers = [(); 4].map(|()| Viewer::new(&served));
    let fifth = served.get(PAGE);
    assert_eq!(fifth.status, 503);
    assert!(
        fifth.text().contains("four viewers look already"),
        "{}",
        fifth.text()
    );
    // One that asks for the head alone takes no place of a viewer.
    for viewer in &mut viewers {
        viewer.event("tick", |_| true);
    }
    let [gone, ..] = viewers;
    gone.client.reset();
    until("there is room", || {
        let mut client = served.client();
        client.send(format!("HEAD {PAGE} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        client.response_to(true).unwrap().status == 200
    });
    Viewer::new(&served).event("tick", |_| true);
    let line = "greenroom_http_limits_total{limit=\"viewers\"}";
    assert!(number(&served.get("/metrics").body, line) >= Some(1.0));
}

#[test]
fn a_program_that_stops_its_server_says_the_end() {
    let served = served(with(often()));
    let mut viewer = Viewer::new(&served);
    viewer.event("tick", |_| true);
    let server = served.server;
    let report = served.runtime.block_on(async move { server.stop().await });
    assert_eq!(report.cut, 0);
    viewer.event("end", |line| line["why"] == "the server has stopped");
    assert_eq!(viewer.line(), None);
}

fn ask(client: &mut Client, host: &str, fields: &str) -> Response {
    client.send(format!(
        "GET {PAGE} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
    ));
    client.response()
}

#[test]
fn a_console_with_a_token_is_shown_to_those_who_have_it() {
    let served = served(with(often().token("right")));
    let ask = |fields: &str| ask(&mut served.client(), "localhost", fields);
    for wrong in [
        "",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Basic right\r\n",
    ] {
        let refused = ask(wrong);
        assert_eq!(refused.status, 401, "{wrong}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        assert!(
            refused.text().contains("needs its token"),
            "{}",
            refused.text()
        );
    }
    assert_eq!(ask("Authorization: Bearer right\r\n").status, 200);
    let other = "Authorization: Bearer right\r\nSec-Fetch-Site: cross-site\r\n";
    assert_eq!(ask(other).status, 403);
    let line = "greenroom_http_refused_callers_total{cause=\"token\"}";
    assert_eq!(number(&served.get("/metrics").body, line), Some(3.0));
}

#[test]
fn no_page_of_another_site_reads_the_console() {
    let served = served(with(often()));
    let mut client = served.client();
    let site = "Sec-Fetch-Site: cross-site\r\n";
    assert_eq!(ask(&mut client, "localhost", site).status, 403);
}

/// Returns the address at which other machines reach this one, if there is one.
fn reached(server: std::net::SocketAddr) -> Option<std::net::SocketAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback()).then(|| (own, server.port()).into())
}

#[test]
fn other_machines_need_a_token() {
    let runtime = || -> Builder { Runtime::builder().workers(2) };
    for token in [None, Some("right")] {
        let page = match token {
            Some(token) => often().token(token),
            None => often(),
        };
        let served = served_at("0.0.0.0:0", runtime(), |builder, _| {
            builder.expose().mount(page)
        });
        let Some(address) = reached(served.server.local_addr()) else {
            return;
        };
        let host = address.to_string();
        let mut client = Client::new(address);
        let right = "Authorization: Bearer right\r\n";
        match token {
            None => {
                let refused = ask(&mut client, &host, right);
                assert_eq!(refused.status, 403);
                assert!(
                    refused.text().contains("console().token(..)"),
                    "{}",
                    refused.text()
                );
            }
            Some(_) => {
                assert_eq!(ask(&mut client, &host, "").status, 401);
                assert_eq!(ask(&mut client, &host, right).status, 200);
            }
        }
    }
}
