//! Pages: metrics and actors, and that they are closed unless they are mounted.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::Context;
use greenroom::spool::Spool;
use greenroom_http::prometheus_client::collector::Collector;
use greenroom_http::prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use greenroom_http::prometheus_client::metrics::counter::ConstCounter;
use greenroom_http::{Limits, actors_page, metrics};

use crate::support::{number, plain, served};

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
    let page = metrics().spool("own \"spool\"", &spool);
    let limits = Limits {
        uri: 50,
        ..Limits::default()
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
    assert!(body.len() < 200_000, "{}", body.len());
    drop(actors);
}

#[test]
fn the_names_of_the_metrics_are_those_of_the_documentation() {
    let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
    let spool = runtime.block_on(async { Spool::<u32, u32>::external().spawn().unwrap() });
    let served = served(|builder, _| builder.mount(metrics().spool("a", &spool)));
    let page = served.get("/metrics").body;
    let mut types: Vec<_> = page
        .lines()
        .filter_map(|it| it.strip_prefix("# TYPE "))
        .collect();
    types.sort_unstable();
    let documented = [
        "greenroom_actors gauge",
        "greenroom_http_connections counter",
        "greenroom_http_limits counter",
        "greenroom_http_refused_callers counter",
        "greenroom_http_requests counter",
        "greenroom_injector gauge",
        "greenroom_local_queue gauge",
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
        "greenroom_turns counter",
        "greenroom_waiting_messages gauge",
    ];
    assert_eq!(types, documented);
}
