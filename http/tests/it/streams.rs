//! Pages that go on: chunks, ends, slow viewers, and what counts.

use std::collections::VecDeque;
use std::io::Read;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_lite::{Stream, stream};
use greenroom_http::{Limits, Mount, ServerBuilder, metrics};

use crate::support::{Client, Served, number, patient, served, until};

/// Long enough that nothing but its end is seen, and short enough to wait for it.
const SHORT: Duration = Duration::from_millis(100);

/// The streams of a page, all of which have the same texts.
#[derive(Clone, Default)]
struct Tap(Arc<Mutex<TapState>>);

#[derive(Default)]
struct TapState {
    texts: VecDeque<String>,
    is_over: bool,
    waker: Option<Waker>,
    begun: usize,
    dropped: usize,
}

impl Tap {
    fn page(&self) -> Mount {
        let tap = self.clone();
        Mount::stream("/events", "text/plain", move || {
            tap.0.lock().unwrap().begun += 1;
            TapStream(tap.clone())
        })
    }

    fn change(&self, change: impl FnOnce(&mut TapState)) {
        let mut state = self.0.lock().unwrap();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.inspect(Waker::wake_by_ref);
    }

    fn send(&self, text: &str) {
        self.change(|state| state.texts.push_back(text.to_owned()));
    }

    fn count(&self) -> (usize, usize) {
        let state = self.0.lock().unwrap();
        (state.begun, state.dropped)
    }
}

struct TapStream(Tap);

impl Stream for TapStream {
    type Item = String;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        let mut state = self.0.0.lock().unwrap();
        match state.texts.pop_front() {
            Some(text) => Poll::Ready(Some(text)),
            None if state.is_over => Poll::Ready(None),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for TapStream {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().dropped += 1;
    }
}

fn tapped(more: impl FnOnce(ServerBuilder) -> ServerBuilder) -> (Served, Tap) {
    let tap = Tap::default();
    let page = tap.page();
    (
        served(|builder, _| more(builder.mount(page).mount(metrics()))),
        tap,
    )
}

/// Begins to view the page, and reads its head.
fn view(served: &Served) -> Client {
    let mut client = served.client();
    let head = client.get("/events");
    assert_eq!((head.status, &*head.body), (200, ""));
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    client
}

/// Reads a chunk. The last one is empty.
pub fn chunk(client: &mut Client) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        client.0.read_exact(&mut byte).unwrap();
        line.extend(byte);
    }
    let length = String::from_utf8(line).unwrap();
    let length = usize::from_str_radix(length.trim_end(), 16).unwrap();
    let mut data = vec![0; length + 2];
    client.0.read_exact(&mut data).unwrap();
    data.truncate(length);
    String::from_utf8(data).unwrap()
}

/// Returns a page that always has more.
fn flood() -> Mount {
    let texts = || stream::repeat("x".repeat(64 << 10));
    Mount::stream("/flood", "text/plain", texts)
}

#[test]
fn a_stream_comes_in_chunks_and_its_connection_goes_on() {
    let (served, tap) = tapped(|builder| builder);
    let mut viewer = view(&served);
    for text in ["one", "two"] {
        tap.send(text);
        assert_eq!(chunk(&mut viewer), text);
    }
    tap.change(|state| state.is_over = true);
    assert_eq!(chunk(&mut viewer), "");
    assert_eq!(viewer.get("/Xy").body, "[[0.5]]");
    assert_eq!(tap.count(), (1, 1));
    let page = served.get("/metrics").body;
    assert_eq!(
        number(&page, "greenroom_http_requests_in_flight"),
        Some(0.0)
    );
}

#[test]
fn a_stream_answers_heads_and_other_methods_as_other_pages_do() {
    let (served, tap) = tapped(|builder| builder);
    let mut client = served.client();
    let mut ask = |method: &str| {
        client.send(format!(
            "{method} /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ));
        client.response_to(method == "HEAD").unwrap()
    };
    let head = ask("HEAD");
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("text/plain"));
    assert_eq!(head.header("cache-control"), Some("no-store"));
    let options = ask("OPTIONS");
    assert_eq!(options.header("allow"), Some("GET, HEAD, OPTIONS"));
    assert_eq!(ask("POST").status, 405);
    assert_eq!(ask("HEAD").status, 200);
    let (begun, dropped) = tap.count();
    assert_eq!(begun, dropped, "the head alone leaves no stream");
}

#[test]
fn a_stream_of_a_client_of_http_1_0_ends_with_its_connection() {
    let (served, tap) = tapped(|builder| builder);
    let mut old = served.client();
    old.send("GET /events HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let head = old.response();
    assert_eq!(head.header("transfer-encoding"), None);
    tap.change(|state| {
        state.texts.push_back("text".to_owned());
        state.is_over = true;
    });
    let mut text = String::new();
    old.0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
}

#[test]
fn a_stop_of_the_server_ends_its_streams() {
    let (served, tap) = tapped(|builder| builder);
    let mut viewer = view(&served);
    tap.send("one");
    assert_eq!(chunk(&mut viewer), "one");
    let server = served.server;
    let report = served.runtime.block_on(async move { server.stop().await });
    assert_eq!((report.finished, report.cut), (1, 0));
    assert_eq!(chunk(&mut viewer), "");
    assert!(viewer.is_closed());
    assert_eq!(tap.count(), (1, 1));
}

#[test]
fn a_stream_that_has_nothing_to_send_is_neither_slow_nor_idle() {
    let limits = Limits {
        idle_time: SHORT,
        answer_time: SHORT,
        write_time: SHORT,
        ..patient()
    };
    let (served, tap) = tapped(|builder| builder.limits(limits));
    let mut viewer = view(&served);
    tap.send("one");
    assert_eq!(chunk(&mut viewer), "one");
    // The idle time of others begins later, and is over.
    for _ in 0..5 {
        let mut other = served.client();
        assert_eq!(other.get("/metrics").status, 200);
        assert!(other.is_closed());
    }
    tap.send("two");
    assert_eq!(chunk(&mut viewer), "two");
    // Afterwards it is as idle as any other one.
    tap.change(|state| state.is_over = true);
    assert_eq!(chunk(&mut viewer), "");
    assert!(viewer.is_closed());
}

#[test]
fn a_viewer_that_takes_nothing_is_cut_and_others_are_served() {
    let limits = Limits {
        write_time: SHORT,
        ..patient()
    };
    let served = served(|builder, _| builder.mount(flood()).mount(metrics()).limits(limits));
    let mut slow = served.client();
    assert_eq!(slow.get("/flood").status, 200);
    let line = "greenroom_http_limits_total{limit=\"write_time\"}";
    until("the viewer is cut", || {
        assert_eq!(served.get("/Xy").status, 200);
        number(&served.get("/metrics").body, line) == Some(1.0)
    });
    let mut rest = Vec::new();
    // A cut may show as a reset.
    let _ = slow.0.read_to_end(&mut rest);
    assert!(
        !rest.ends_with(b"0\r\n\r\n"),
        "nothing says that it is whole"
    );
}

#[test]
fn the_bytes_that_a_viewer_has_not_taken_count() {
    let limits = Limits {
        unsent: 1000,
        ..patient()
    };
    let served = served(|builder, _| builder.mount(flood()).limits(limits));
    let mut slow = served.client();
    assert_eq!(slow.get("/flood").status, 200);
    until("no actor is asked", || served.get("/Xy").status == 503);
    // The system may have taken more meanwhile.
    until("no page goes on", || served.get("/flood").status == 503);
    slow.reset();
    until("actors are asked", || served.get("/Xy").status == 200);
}

#[test]
fn a_viewer_is_a_connection_of_its_client_and_never_idle() {
    let limits = Limits {
        connections_a_peer: 1,
        ..patient()
    };
    let (served, tap) = tapped(|builder| builder.count_loopback().limits(limits));
    let mut viewer = view(&served);
    assert_eq!(served.client().response().status, 503);
    tap.send("one");
    assert_eq!(chunk(&mut viewer), "one");
}

#[test]
fn a_viewer_that_is_gone_leaves_no_stream() {
    let (served, tap) = tapped(|builder| builder);
    let viewer = view(&served);
    viewer.reset();
    until("the stream is dropped", || tap.count() == (1, 1));
}

#[test]
fn no_page_of_another_site_reads_a_stream() {
    let (served, tap) = tapped(|builder| builder);
    for site in ["cross-site", "same-site"] {
        let mut client = served.client();
        client.send(format!(
            "GET /events HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: {site}\r\n\r\n"
        ));
        assert_eq!(client.response().status, 403);
    }
    assert_eq!(tap.count(), (0, 0));
    let line = "greenroom_http_refused_callers_total{cause=\"site\"}";
    assert_eq!(number(&served.get("/metrics").body, line), Some(2.0));
}

#[test]
fn a_stream_that_panics_ends_its_connection_alone() {
    let page = Mount::stream("/panics", "text/plain", || {
        stream::poll_fn(|_| -> Poll<Option<String>> { panic!("a secret") })
    });
    let cannot = Mount::stream("/cannot", "text/plain", || -> stream::Empty<String> {
        panic!("a secret")
    });
    let served = served(|builder, _| builder.mount(page).mount(cannot));
    let mut viewer = served.client();
    viewer.send("GET /panics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut all = String::new();
    viewer.0.read_to_string(&mut all).unwrap();
    assert!(
        !all.contains("0\r\n\r\n") && !all.contains("secret"),
        "{all}"
    );
    assert_eq!(served.get("/cannot").status, 500);
    assert_eq!(served.get("/Xy").status, 200);
}
