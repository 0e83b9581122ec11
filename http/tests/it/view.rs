//! Pages: metrics and actors, and that they are closed unless they are mounted.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::registry::{Group, Name};
use greenroom::spool::Spool;
use greenroom::supervise::{Restarts, Supervisor};
use greenroom::trace::{Level, Lines};
use greenroom::{Context, Reply, Runtime};
use greenroom_http::prometheus_client::collector::Collector;
use greenroom_http::prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use greenroom_http::prometheus_client::metrics::counter::ConstCounter;
use greenroom_http::{Limits, actors_page, metrics};

use crate::support::{Served, number, patient, plain, served, served_on, until};

#[test]
fn pages_are_off_unless_they_are_mounted() {
    let served = plain();
    for page in ["/metrics", "/actors"] {
        assert_eq!(served.get(page).status, 404);
    }
}

#[test]
fn metrics_count_requests_limits_workers_and_spools() {
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let spool = runtime.block_on(async {
        let worker = |mut cx: Context<(u32, greenroom::Reply<u32>)>| async move {
            while let Some((number, reply)) = cx.recv().await {
                reply.send(number);
            }
        };
        let spool = Spool::builder(move |_| greenroom::actor(worker).spawn())
            .workers(3)
            .spawn()
            .unwrap();
        assert_eq!(spool.ask(7).await, Ok(7));
        spool
    });
    let page = metrics().service("own \"spool\"", &spool);
    let limits = Limits {
        uri: 50,
        ..patient()
    };
    let served = served(|builder, _| builder.mount(page).limits(limits));
    let mut client = served.client();
    for (uri, times) in [("/Xy", 3), ("/Xy?zz=1", 2), ("/nothing", 1)] {
        for _ in 0..times {
            client.get(uri);
        }
    }
    assert_eq!(served.get(&format!("/{}", "x".repeat(60))).status, 414);
    let response = client.get("/metrics");
    let media = response.header("content-type").unwrap();
    assert!(media.starts_with("application/openmetrics-text"), "{media}");
    let page = response.body;
    let is = |line: &str, expected: f64| assert_eq!(number(&page, line), Some(expected), "{page}");
    is(
        "greenroom_http_requests_total{type=\"Xy\",status=\"200\"}",
        3.0,
    );
    is(
        "greenroom_http_requests_total{type=\"Xy\",status=\"400\"}",
        2.0,
    );
    is(
        "greenroom_http_requests_total{type=\"\",status=\"404\"}",
        1.0,
    );
    is(
        "greenroom_http_requests_total{type=\"\",status=\"414\"}",
        1.0,
    );
    is("greenroom_http_limits_total{limit=\"uri\"}", 1.0);
    is("greenroom_http_connections_total", 2.0);
    is(
        "greenroom_spool_answered_total{spool=\"own \\\"spool\\\"\"}",
        1.0,
    );
    is("greenroom_spool_idle{spool=\"own \\\"spool\\\"\"}", 3.0);
    assert!(number(&page, "greenroom_turns_total{worker=\"1\"}").is_some());
    assert!(number(&page, "greenroom_actors").unwrap() >= 3.0);
    assert!(page.ends_with("# EOF\n"));
    assert_eq!(
        number(
            &client.get("/metrics").body,
            "greenroom_http_connections_total"
        ),
        Some(2.0)
    );
}

/// Counts how often it was asked.
#[derive(Debug, Default)]
struct Asked(AtomicU64);

impl Collector for Asked {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let asked = ConstCounter::new(self.0.fetch_add(1, Ordering::Relaxed) + 1);
        let kind = asked.metric_type();
        let encoder = encoder.encode_descriptor("asked", "How often", None, kind)?;
        asked.encode(encoder)
    }
}

#[test]
fn a_program_may_add_numbers_of_its_own() {
    let served = served(|builder, _| builder.mount(metrics().collector(Asked::default())));
    for times in 1..3 {
        let page = served.get("/metrics").body;
        assert_eq!(number(&page, "asked_total"), Some(times.into()), "{page}");
    }
}

#[test]
fn the_page_of_actors_shows_names_as_texts() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let evil =
        greenroom::actor(|mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} });
    let evil = evil
        .name("<script>alert('&\"')</script>")
        .on(&served.runtime)
        .spawn();
    let response = served.get("/actors");
    assert_eq!(response.status, 200);
    assert!(!response.body.contains("<script>"), "{}", response.body);
    let text = "<td>&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;</td>";
    assert!(response.body.contains(text), "{}", response.body);
    assert!(response.body.contains("<td>http connection</td>"));
    let policy = response.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(response.header("refresh"), Some("2"));
    drop(evil);
}

#[test]
fn at_most_a_thousand_actors_are_shown() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let spawn = |_| {
        let idle =
            greenroom::actor(
                |mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} },
            );
        idle.name("idle").on(&served.runtime).spawn()
    };
    let actors: Vec<_> = (0..100_000).map(spawn).collect();
    let body = served.get("/actors").body;
    // They, the actor of the server, its listener and this connection.
    let text = "100003 actors, of which 1000 are shown";
    assert!(body.contains(text), "{body:.2000}");
    // The workers have rows, too, and each table a head.
    assert_eq!(body.matches("<tr>").count(), 1000 + 2 + 2);
    assert!(body.len() < 300_000, "{}", body.len());
    drop(actors);
}

async fn reader_connection(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

/// Returns a part of the page of actors: from the head of the table to its end.
fn table(served: &Served, query: &str) -> String {
    let response = served.get(&format!("/actors{query}"));
    assert_eq!(response.status, 200, "{query}");
    let (_, table) = response
        .body
        .split_once("<table class=\"actors\">")
        .unwrap();
    table.split("</table>").next().unwrap().to_owned()
}

#[test]
fn equal_actors_are_one_row_with_their_count() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let spawn = |_| {
        greenroom::actor(reader_connection)
            .on(&served.runtime)
            .spawn()
    };
    let actors: Vec<_> = (0..32).map(spawn).collect();
    let rows = table(&served, "?group=1&sort=id&filter=reader");
    assert_eq!(rows.matches("<tr>").count(), 2, "{rows}");
    let link = "?sort=id&amp;filter=reader%5Fconnection";
    let row = format!("<tr><td>32</td><td><a href=\"{link}\">reader_connection</a></td>");
    assert!(rows.contains(&row), "{rows}");
    // The link leads to all of them, the oldest first.
    let rows = table(&served, &link.replace("&amp;", "&"));
    let first = format!("<a href=\"?id={0}\">{0}</a>", actors[0].id());
    assert_eq!(rows.matches(">reader_connection<").count(), 32);
    assert!(
        rows.split("<tr>").nth(2).unwrap().contains(&first),
        "{rows}"
    );
}

#[test]
fn the_query_sorts_and_what_is_unknown_in_it_is_ignored() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let spawn = |name| {
        greenroom::actor(reader_connection)
            .name(name)
            .on(&served.runtime)
            .spawn()
    };
    let actors = ["sorts b", "sorts c", "sorts a"].map(spawn);
    let names = |query: &str| {
        let rows = table(&served, query);
        let names = rows.split("<td>sorts ").skip(1);
        names.map(|rest| rest[..1].to_owned()).collect::<String>()
    };
    assert_eq!(names("?sort=name&filter=sorts"), "abc");
    assert_eq!(names("?sort=name&order=desc&filter=sorts"), "cba");
    assert_eq!(names("?sort=id&filter=sorts"), "bca");
    let rows = table(&served, "?sort=name&filter=sorts");
    let head = "<th aria-sort=\"ascending\"><a href=\"?sort=name&amp;order=desc&amp;filter=sorts\"";
    assert!(rows.contains(head), "{rows}");
    // A page that does not refresh itself has a field for the filter.
    let paused = served.get("/actors?pause=1&filter=%3Cscript%3E");
    assert_eq!(paused.header("refresh"), None);
    assert!(
        paused.body.contains("value=\"&lt;script&gt;\""),
        "{}",
        paused.body
    );
    assert!(!paused.body.contains("<script>"), "{}", paused.body);
    // All are shown, in some order.
    let odd = names("?sort=%3Cscript%3E&order=1&id=x&group=%FF&%&=&filter=sorts");
    assert!(odd.len() == 3 && ["a", "b", "c"].iter().all(|name| odd.contains(name)));
    drop(actors);
}

#[test]
fn the_page_of_an_actor_shows_whose_answer_it_waits_for() {
    let served = served_on(
        Runtime::builder().workers(2).endless_waits(true),
        |builder, _| builder.mount(actors_page()),
    );
    let keeper = greenroom::actor(|mut cx: Context<Reply<u32>>| async move {
        let mut kept = Vec::new();
        while let Some(reply) = cx.recv().await {
            kept.push(reply);
        }
    });
    let keeper = keeper.name("keeper <b>\u{1}").on(&served.runtime).spawn();
    let address = keeper.address();
    let asker = greenroom::actor(|_: Context<u32>| async move {
        let _ = address.ask(|reply| reply).await;
    });
    let asker = asker.name("asker").on(&served.runtime).spawn();
    let page = format!("/actors?id={}", asker.id());
    let wait = format!(
        "the answer of <a href=\"?id={0}\">&quot;keeper &lt;b&gt;\\u{{1}}&quot; #{0}</a>",
        keeper.id()
    );
    until(&wait, || served.get(&page).body.contains(&wait));
    let body = served.get(&page).body;
    for text in [
        "&quot;asker&quot; #",
        "view.rs:",
        "<tr><th>state</th><td>waiting</td></tr>",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
    // A control character is in no page.
    let mut keeper_page = String::new();
    until("the keeper waits", || {
        keeper_page = served.get(&format!("/actors?id={}", keeper.id())).body;
        keeper_page.contains("waits for</th><td>a message</td>")
    });
    assert!(!keeper_page.contains('\u{1}'));
    let id = asker.id();
    asker.kill();
    drop(asker);
    until("the actor has ended", || served.get(&page).status == 404);
    assert!(
        served
            .get(&page)
            .body
            .contains(&format!("There is no actor {id}"))
    );
}

#[test]
fn the_page_says_that_messages_wait_and_none_is_handled() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let held = greenroom::actor(|cx: Context<u32>| async move {
        std::future::pending::<()>().await;
        drop(cx);
    });
    let held = held.name("held").on(&served.runtime).spawn();
    held.tell(1).unwrap();
    until("it is stalled", || {
        table(&served, "?filter=held&sort=wait").contains("<td>stalled</td>")
    });
    let page = format!("/actors?id={}", held.id());
    until("so does its own page", || {
        served.get(&page).body.contains("<th>wait</th><td>stalled<")
    });
    let body = served.get("/actors").body;
    assert!(body.contains("The wait estimates"), "{body}");
}

#[test]
fn the_tree_has_each_actor_below_its_parent() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let (tree, child) = served.runtime.block_on(async {
        let tree = Supervisor::builder().name("tree <b>").spawn().unwrap();
        let lower = tree.supervisor(Supervisor::builder().name("lower"));
        let child = greenroom::actor(reader_connection).name("child");
        let child = lower.unwrap().start(child).unwrap();
        (tree, child)
    });
    let rows = table(&served, "?tree&sort=name");
    let at = |text: &str| rows.find(text).unwrap_or_else(|| panic!("{text}: {rows}"));
    let places = [
        "<td>tree &lt;b&gt;<",
        "<td>└ lower<",
        "<td>\u{2003}└ child<",
    ]
    .map(at);
    assert!(places.is_sorted(), "{rows}");
    let between = &rows[places[0]..places[2]];
    assert_eq!(between.matches("<tr>").count(), 2, "{rows}");
    // One whose parent is not shown stands alone, and groups are no tree.
    assert!(table(&served, "?tree&filter=child").contains("<td>child<"));
    let groups = served.get("/actors?group=1&tree").body;
    assert!(
        groups.contains(">child</a>") && !groups.contains('└'),
        "{groups}"
    );
    // The pages of two of them lead to each other.
    let body = served.get(&format!("/actors?id={}", child.id())).body;
    let (_, link) = body.split_once("<th>parent</th><td><a href=\"").unwrap();
    let (link, _) = link.split_once('"').unwrap();
    let body = served.get(&format!("/actors{link}")).body;
    let link = format!(
        "<th>children</th><td><a href=\"?id={0}\">&quot;child&quot; #{0}</a></td>",
        child.id()
    );
    assert!(
        body.contains(&link) && body.contains("tree &lt;b&gt;"),
        "{body}"
    );
    drop(tree);
}

#[test]
fn an_actor_is_found_by_what_it_is_registered_as_and_its_page_has_it() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let spawn = || {
        greenroom::actor(reader_connection)
            .on(&served.runtime)
            .spawn()
    };
    let (cart, other) = (spawn(), spawn());
    let name = Name::<u32>::new("<checkout>").on(&served.runtime);
    name.register(&cart).unwrap();
    let group = Group::<u32>::new("carts").on(&served.runtime);
    group.join(&cart).unwrap();
    for filter in ["%3Ccheckout", "CARTS"] {
        let rows = table(&served, &format!("?filter={filter}"));
        assert_eq!(rows.matches("<tr>").count(), 2, "{rows}");
        assert!(rows.contains(&format!("?id={}", cart.id())), "{rows}");
    }
    let page = |id| served.get(&format!("/actors?id={id}")).body;
    let (cart, other) = (page(cart.id()), page(other.id()));
    for row in [
        "<th>names</th><td>&lt;checkout&gt;</td>",
        "<th>groups</th><td>carts</td>",
    ] {
        assert!(cart.contains(row), "{cart}");
    }
    assert!(
        !cart.contains("<th>key") && !other.contains("<th>names"),
        "{cart}{other}"
    );
}

#[test]
fn the_page_of_an_actor_has_its_last_faults_and_where_it_runs() {
    let lines = Lines::to(std::io::sink(), Level::Debug).keep(1_000_000);
    let runtime = Runtime::builder().workers(2).tracer(lines);
    let served = served_on(runtime, |builder, _| builder.mount(actors_page()));
    let nail = served.runtime.spawn_pinned("nail").unwrap();
    let shaky = |mut cx: Context<&'static str>| async move {
        cx.trace_state("READY");
        if let Some(text) = cx.recv().await {
            panic!("{text}");
        }
    };
    let shaky = greenroom::actor(shaky)
        .capacity(9)
        .restart(Restarts::on_fault());
    let shaky = shaky.on(&nail).spawn();
    let page = format!("/actors?id={}", shaky.id());
    let body = served.get(&page).body;
    assert!(!body.contains("Last faults"), "{body}");
    for text in ["first", "second <b>"] {
        shaky.tell(text).unwrap();
    }
    let mut body = String::new();
    until("it has failed twice, and waits again", || {
        body = served.get(&page).body;
        let ready = ["restarts</th><td>2<", "state</th><td>waiting<", "READY<"];
        ready.iter().all(|text| body.contains(text))
    });
    for text in [
        "<th>state</th><td>waiting<",
        "<th>machine</th><td>READY<",
        "<th>thread</th><td>nail<",
        "<th>mailbox</th><td>0 of 9<",
        "<th>last fault</th><td>second &lt;b&gt;<",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
    let (_, faults) = body.split_once("Last faults").unwrap();
    let at = |text: &str| faults.find(text).unwrap();
    let (second, first) = (at("panicked: second &lt;b&gt;"), at("panicked: first"));
    assert!(second < first, "{faults}");
    let (_, trace) = faults.split_once("Last lines of the trace").unwrap();
    let at = |text: &str| {
        trace
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {trace}"))
    };
    assert!(at("Received &amp;str") < at("second &lt;b&gt;"), "{trace}");

    // They stay when the actor has ended, which the list of all shows, too.
    shaky.kill();
    until("it has ended", || served.get(&page).status == 404);
    for page in [&page, "/actors"] {
        let body = served.get(page).body;
        assert!(body.contains("panicked: second &lt;b&gt;"), "{body}");
    }
}

#[test]
fn the_page_of_actors_says_how_exact_its_figures_are() {
    let sampled = "one turn in 64 is timed";
    let uncounted = "Nothing is counted";
    let notes = |builder: greenroom::Builder| {
        let served = served_on(builder.workers(2), |builder, _| {
            builder.mount(actors_page())
        });
        let body = served.get("/actors").body;
        (body.contains(sampled), body.contains(uncounted))
    };
    assert_eq!(notes(Runtime::builder()), (true, false));
    assert_eq!(
        notes(Runtime::builder().observer(greenroom::Measure)),
        (false, false)
    );
    assert_eq!(notes(Runtime::builder().counting(false)), (false, true));
}

#[test]
fn the_page_of_actors_has_charts_and_a_style_of_its_own_and_nothing_else() {
    let served = served(|builder, _| builder.mount(actors_page()));
    let response = served.get("/actors");
    assert_eq!(response.body.matches("<svg ").count(), 2);
    for text in [
        ">Turns and messages, a second<",
        "prefers-color-scheme:dark",
        "width=device-width",
    ] {
        assert!(response.body.contains(text), "{text}");
    }
    let policy = response.header("content-security-policy").unwrap();
    assert!(policy.contains("style-src 'sha256-"), "{policy}");
    assert!(
        !policy.contains("script-src") && !policy.contains("unsafe"),
        "{policy}"
    );
    for other in ["<script", "<link", "src=", " style=", "http://", "https://"] {
        // The name of the language of the pictures is an address that nothing asks.
        let body = response.body.replace("http://www.w3.org/2000/svg", "");
        assert!(!body.contains(other), "{other}");
    }
}

#[test]
fn metrics_have_open_connections_requests_in_flight_and_messages() {
    let served = served(|builder, _| builder.mount(metrics()));
    let mut client = served.client();
    let mut of = |line: &str| number(&client.get("/metrics").body, line).unwrap();
    assert_eq!(of("greenroom_http_open_connections"), 1.0);
    assert_eq!(of("greenroom_http_requests_in_flight"), 0.0);
    let before = of("greenroom_messages_total");
    let mut open = served.client();
    open.send("GET /Act?how=keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let kept = served.kept();
    assert_eq!(of("greenroom_http_open_connections"), 2.0);
    assert_eq!(of("greenroom_http_requests_in_flight"), 1.0);
    kept.send(1);
    assert_eq!(open.response().status, 200);
    until("no request is in flight", || {
        of("greenroom_http_requests_in_flight") == 0.0
    });
    until("the message is counted", || {
        of("greenroom_messages_total") > before
    });
    let after = of("greenroom_messages_total");
    drop(open);
    until("one connection is open", || {
        of("greenroom_http_open_connections") == 1.0
    });
    // What actors that have ended had handled stays.
    assert!(of("greenroom_messages_total") >= after);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        of(&format!("greenroom_build_info{{version=\"{version}\"}}")),
        1.0
    );
}

#[test]
fn metrics_have_the_durations_of_requests_by_type() {
    let served = served(|builder, _| builder.mount(metrics()));
    let mut client = served.client();
    for uri in ["/Xy", "/Xy", "/nothing"] {
        client.get(uri);
    }
    let page = client.get("/metrics").body;
    let is = |line: &str, expected: f64| assert_eq!(number(&page, line), Some(expected), "{page}");
    let name = "http_server_request_duration_seconds";
    is(&format!("{name}_count{{http_route=\"Xy\"}}"), 2.0);
    is(
        &format!("{name}_bucket{{le=\"+Inf\",http_route=\"Xy\"}}"),
        2.0,
    );
    is(&format!("{name}_count{{http_route=\"\"}}"), 1.0);
    let sum = number(&page, &format!("{name}_sum{{http_route=\"Xy\"}}")).unwrap();
    assert!(sum > 0.0, "{page}");
    // A type that was not asked has none, and the buckets only grow.
    assert!(
        !page.contains(&format!("{name}_count{{http_route=\"Kinds\"}}")),
        "{page}"
    );
    let buckets = page
        .lines()
        .filter(|line| line.contains("_bucket") && line.contains("\"Xy\""));
    let buckets = buckets.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert!(buckets.collect::<Vec<_>>().is_sorted());
    assert!(page.contains(&format!("# UNIT {name} seconds")), "{page}");
}

#[test]
fn the_names_of_the_metrics_are_those_of_the_documentation() {
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let spool = runtime.block_on(async { Spool::<u32, u32>::external().spawn().unwrap() });
    let served = served(|builder, _| builder.mount(metrics().service("a", &spool)));
    let page = served.get("/metrics").body;
    let mut types: Vec<_> = page
        .lines()
        .filter_map(|it| it.strip_prefix("# TYPE "))
        .collect();
    types.sort_unstable();
    let documented = [
        "greenroom_actors gauge",
        "greenroom_ask_duration_seconds histogram",
        "greenroom_build info",
        "greenroom_http_connections counter",
        "greenroom_http_limits counter",
        "greenroom_http_open_connections gauge",
        "greenroom_http_refused_callers counter",
        "greenroom_http_requests counter",
        "greenroom_http_requests_in_flight gauge",
        "greenroom_injector gauge",
        "greenroom_local_queue gauge",
        "greenroom_messages counter",
        "greenroom_parks counter",
        "greenroom_spool_answered counter",
        "greenroom_spool_average_seconds gauge",
        "greenroom_spool_busy gauge",
        "greenroom_spool_deaths counter",
        "greenroom_spool_idle gauge",
        "greenroom_spool_lost counter",
        "greenroom_spool_refused counter",
        "greenroom_spool_waiting gauge",
        "greenroom_steals counter",
        "greenroom_tasks gauge",
        "greenroom_turn_duration_seconds histogram",
        "greenroom_turns counter",
        "greenroom_waiting_messages gauge",
        "http_server_request_duration_seconds histogram",
    ];
    assert_eq!(types, documented);
}
